"""Pulsar, as jobs name it. A job on Pulsar addresses can be checked and tested with JobDriver."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql.types import StructType

from headgate.connectors.base import Expr, Sink, Source, Start, not_available
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


@dataclass(frozen=True)
class PulsarSink(Sink):
    """A Pulsar topic to write.

    >>> PulsarSink("pulsar://localhost:6650", "counts").describe()
    'pulsar://localhost:6650/counts'
    """

    url: str
    topic: str
    key: Expr | None = None

    def describe(self) -> str:
        return f"{self.url}/{self.topic}"

    def check(self) -> None:
        raise not_available("Pulsar", "a log: or kafka:// address")


def split_pulsar_address(rest: str) -> tuple[str, str]:
    """Service and topic of an address behind its scheme.

    >>> split_pulsar_address("//localhost:6650/users")
    ('pulsar://localhost:6650', 'users')
    """
    service, _, topic = rest.removeprefix("//").partition("/")
    return f"pulsar://{service}", topic
