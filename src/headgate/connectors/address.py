"""One address wherever a topic lives: log:PATH, kafka://servers/topic, pulsar://host:port/topic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.connectors.base import Expr, Sink, SinkSpec, Source, Start, not_available
from headgate.connectors.log import LogSink, LogSource
from headgate.errors import GraphError
from headgate.schemas import Schema, to_struct


@dataclass(frozen=True)
class Topic(Source, Sink):
    """A topic by its address, as a source (then it needs a schema) or as a sink."""

    address: str
    schema: Schema | None = None
    key: Expr | None = None
    start: Start = "earliest"
    options: Mapping[str, str] = field(default_factory=dict)

    def struct(self) -> StructType:
        if self.schema is None:
            raise GraphError(
                f"the topic {self.address} is read without a schema",
                remedy='give it one: topic(address, schema="id BIGINT, ...")',
            )
        return to_struct(self.schema)

    def describe(self) -> str:
        return self.address

    def check(self) -> None:
        path = self._path()
        if self.schema is None:
            LogSink(path, self.key, self.options).check()
        else:
            LogSource(path, self.schema, self.start, self.options).check()

    def records(self, spark: SparkSession, *, table: bool) -> DataFrame:
        source = LogSource(self._path(), self.struct(), self.start, self.options)
        return source.records(spark, table=table)

    def spec(self) -> SinkSpec:
        return LogSink(self._path(), self.key, self.options).spec()

    def _path(self) -> str:
        scheme, path = split_address(self.address)
        if scheme != "log":
            raise not_available(scheme.capitalize(), "a log: address")
        return path


def split_address(address: str) -> tuple[str, str]:
    """The scheme of an address and the rest.

    >>> split_address("log:data/orders")
    ('log', 'data/orders')
    """
    scheme, _, rest = address.partition(":")
    if scheme not in ("log", "kafka", "pulsar") or not rest.removeprefix("//"):
        raise GraphError(
            "the topic's address is not one",
            expected="log:PATH, kafka://host:port/topic or pulsar://host:port/topic",
            got=repr(address),
            remedy="write the address with its scheme",
        )
    return scheme, rest


def topic(
    address: str,
    *,
    schema: Schema | None = None,
    key: Expr | None = None,
    start: Start = "earliest",
    **options: str,
) -> Topic:
    """A topic by its address.

    >>> topic("log:data/orders", schema="id BIGINT").describe()
    'log:data/orders'
    """
    split_address(address)
    return Topic(address, schema, key, start, options)
