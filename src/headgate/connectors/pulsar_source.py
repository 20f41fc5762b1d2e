"""A Pulsar topic to read."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import StructType

from headgate.connectors.base import Source, Start, not_available
from headgate.schemas import Schema, to_struct


@dataclass(frozen=True)
class PulsarSource(Source):
    """A Pulsar topic to read.

    >>> PulsarSource("pulsar://localhost:6650", "users", schema="id BIGINT").describe()
    'pulsar://localhost:6650/users'
    """

    url: str
    topic: str
    schema: Schema
    start: Start = "earliest"
    subscription: str | None = None

    def struct(self) -> StructType:
        return to_struct(self.schema)

    def describe(self) -> str:
        return f"{self.url}/{self.topic}"

    def check(self) -> None:
        raise not_available("Pulsar", "a log: or kafka:// address")
