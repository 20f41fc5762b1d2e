"""Kafka, as jobs name it. A job on Kafka addresses can be checked and tested with JobDriver."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from pyspark.sql.types import StructType

from headgate.connectors.base import Expr, Sink, Source, Start, not_available
from headgate.durations import Duration
from headgate.schemas import Schema, to_struct


@dataclass(frozen=True)
class KafkaSource(Source):
    """A Kafka topic to read.

    >>> KafkaSource("localhost:9092", "visits", schema="id BIGINT").describe()
    'kafka://localhost:9092/visits'
    """

    servers: str
    topic: str
    schema: Schema
    start: Start = "earliest"
    format: Literal["json", "avro", "raw"] = "json"
    options: Mapping[str, str] = field(default_factory=dict)

    def struct(self) -> StructType:
        return to_struct(self.schema)

    def describe(self) -> str:
        return f"kafka://{self.servers}/{self.topic}"

    def check(self) -> None:
        raise not_available("Kafka", "a log: address")


@dataclass(frozen=True)
class KafkaSink(Sink):
    """A Kafka topic to write.

    >>> KafkaSink("localhost:9092", "counts").describe()
    'kafka://localhost:9092/counts'
    """

    servers: str
    topic: str
    key: Expr | None = None
    value: Expr | None = None
    delivery: Literal["exactly_once", "at_least_once"] = "exactly_once"
    transaction_timeout: Duration = "10 minutes"

    def describe(self) -> str:
        return f"kafka://{self.servers}/{self.topic}"

    def check(self) -> None:
        raise not_available("Kafka", "a log: address")
