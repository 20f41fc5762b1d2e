"""One address wherever a topic lives: log:PATH, kafka://servers/topic, pulsar://host:port/topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import DataType, StructType

from headgate.base.errors import GraphError
from headgate.base.schemas import Schema
from headgate.base.secrets import protect_address
from headgate.base.topic_ids import TopicIds
from headgate.connectors.base import (
    Decoding,
    Expr,
    Finding,
    Format,
    OutputOwner,
    SharedWriter,
    Sink,
    SinkSpec,
    Source,
    StartPosition,
)
from headgate.connectors.kafka.client import split_kafka_address
from headgate.connectors.kafka.sink import KafkaSink
from headgate.connectors.kafka.source import KafkaSource
from headgate.connectors.log.connector import LogSink, LogSource
from headgate.connectors.options import choice
from headgate.connectors.pulsar.names import split_pulsar_address
from headgate.connectors.pulsar.sink import PulsarSink
from headgate.connectors.pulsar.source import PulsarSource

_KAFKA_SOURCE_FIELDS = ("format", "metadata")
_PULSAR_SOURCE_FIELDS = ("subscription", "format", "metadata", "compacted")
_PULSAR_SINK_FIELDS = ("value", "delivery", "properties", "event_time", "order_by")
_KAFKA_SINK_FIELDS = (
    "value", "delivery", "transaction_timeout", "headers", "timestamp", "format",
)  # fmt: skip


@dataclass(frozen=True)
class Topic(Source, Sink):
    """A topic by its address, as a source (which needs a schema) or as a sink.

    >>> Topic("kafka://localhost:9092/orders", key="user_id").describe()
    'kafka://localhost:9092/orders'
    """

    address: str
    schema: Schema | None = None
    key: Expr | None = None
    start: StartPosition = "earliest"
    options: Mapping[str, str] = field(default_factory=dict)

    def struct(self) -> StructType:
        return self._source.struct()

    def decoding(self) -> Decoding:
        return self._source.decoding()

    @property
    def gives_changes(self) -> bool:
        return self._source.gives_changes

    def describe(self) -> str:
        return self.address

    def check(self) -> None:
        # a topic may be both, in one job: what is read has a schema
        (self._sink if self.schema is None else self._source).check()

    def check_table(self) -> None:
        self._source.check_table()

    def check_stream(self) -> None:
        self._source.check_stream()

    def records(self, spark: SparkSession, *, table: bool) -> DataFrame:
        return self._source.records(spark, table=table)

    @property
    def positions_are_offsets(self) -> bool:
        return self._source.positions_are_offsets

    @property
    def keeps_unread(self) -> bool:
        return self._source.keeps_unread

    def earliest(self, spark: SparkSession) -> Mapping[str, int | str] | None:
        return self._source.earliest(spark)

    def topic_ids(self, spark: SparkSession) -> TopicIds | None:
        return self._source.topic_ids(spark)

    @property
    def client_names_no_topic(self) -> bool:
        return self._source.client_names_no_topic

    @property
    def may_lose(self) -> bool:
        return self._source.may_lose

    def begin(self, spark: SparkSession, line: str, topics: Sequence[str]) -> str:
        return self._source.begin(spark, line, topics)

    def guarded(self) -> Mapping[str, Any] | None:
        return self._source.guarded()

    def live(self, spark: SparkSession) -> Sequence[Finding]:
        return (self._sink if self.schema is None else self._source).live(spark)

    def cluster(self, spark: SparkSession) -> tuple[str, str] | None:
        return (self._sink if self.schema is None else self._source).cluster(spark)

    @property
    def exactly_once(self) -> bool:
        return self._sink.exactly_once

    def hidden_columns(self) -> Mapping[str, Expr]:
        return self._sink.hidden_columns()

    @property
    def takes_changes(self) -> bool:
        return self._sink.takes_changes

    @property
    def by_task(self) -> bool:
        return self._sink.by_task

    @property
    def sorts(self) -> bool:
        return self._sink.sorts

    def hidden_type(self, part: str, kind: DataType) -> DataType:
        return self._sink.hidden_type(part, kind)

    def hidden_column(self, part: str, made: Column) -> Column:
        return self._sink.hidden_column(part, made)

    def check_rows(self, rows: StructType) -> None:
        self._sink.check_rows(rows)

    def prepare(self, spark: SparkSession) -> Sequence[str]:
        return self._sink.prepare(spark)

    def shared_writer(self) -> SharedWriter | None:
        return self._sink.shared_writer()

    def need_client(self, spark: SparkSession) -> None:
        self._sink.need_client(spark)

    def transactions(self, spark: SparkSession, job: str) -> Sequence[str]:
        return self._sink.transactions(spark, job)

    def owner(self, job: str) -> OutputOwner | None:
        return self._sink.owner(job)

    def set_owner(self, job: str, owner: OutputOwner) -> None:
        self._sink.set_owner(job, owner)

    def spec(self) -> SinkSpec:
        return self._sink.spec()

    @property
    def _source(self) -> Source:
        if self.schema is None:
            raise GraphError(
                f"the topic {self.address} must have a schema to be read",
                remedy='give it one: topic(address, schema="id BIGINT, ...")',
            )
        scheme, rest = split_address(self.address)
        if scheme == "log":
            return LogSource(rest, self.schema, self.start, self.options)
        if scheme.startswith("pulsar"):
            return self._pulsar_source(self.schema)
        servers, name = split_kafka_address(rest)
        own, others = _split(self.options, _KAFKA_SOURCE_FIELDS)
        made = cast(Format, own.get("format", "json"))
        return KafkaSource(
            servers, name, self.schema, self.start, made, others, own.get("metadata", ())
        )

    def _pulsar_source(self, schema: Schema) -> Source:
        own, others = _split(self.options, _PULSAR_SOURCE_FIELDS)
        compacted = choice(
            {"compacted": own.get("compacted", "false")}, "compacted", ("false", "true")
        )
        return PulsarSource(
            *split_pulsar_address(self.address),
            schema,
            self.start,
            own.get("subscription"),
            cast(Format, own.get("format", "json")),
            own.get("metadata", ()),
            compacted == "true",
            others,
        )

    @property
    def _sink(self) -> Sink:
        scheme, rest = split_address(self.address)
        if scheme == "log":
            return LogSink(rest, self.key, self.options)
        if scheme.startswith("pulsar"):
            own, others = _split(self.options, _PULSAR_SINK_FIELDS)
            url, name = split_pulsar_address(self.address)
            return PulsarSink(url, name, self.key, options=others, **own)  # type: ignore[arg-type]
        servers, name = split_kafka_address(rest)
        own, others = _split(self.options, _KAFKA_SINK_FIELDS)
        return KafkaSink(servers, name, self.key, options=others, **own)  # type: ignore[arg-type]


def _split(
    options: Mapping[str, str], fields: Sequence[str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Options that are fields of the connector's class, and the others."""
    own = {name: value for name, value in options.items() if name in fields}
    return own, {name: value for name, value in options.items() if name not in fields}


def split_address(address: str) -> tuple[str, str]:
    """The scheme of an address and the rest.

    >>> split_address("log:data/orders")
    ('log', 'data/orders')
    """
    scheme, _, rest = address.partition(":")
    if scheme not in ("log", "kafka", "pulsar", "pulsar+ssl") or not rest.removeprefix("//"):
        raise GraphError(
            "the topic's address must be log:PATH, kafka://host:port/topic or "
            "pulsar://host:port/topic",
            got=repr(address),
            remedy="write the address with its scheme",
        )
    return scheme, rest


def topic(
    address: str,
    *,
    schema: Schema | None = None,
    key: Expr | None = None,
    start: StartPosition = "earliest",
    **options: str | int,
) -> Topic:
    """A topic by its address; the options depend on the system that the topic is in.

    `format` says how values encode the columns: "json" (default), "avro", "protobuf", "csv",
    "text", "raw", "debezium-json" or "debezium-avro". With a `registry`, values begin with the id
    of their schema.

    >>> topic("log:data/orders", schema="id BIGINT").describe()
    'log:data/orders'
    >>> topic("kafka://localhost:9092/orders", schema="id BIGINT", max_records=10_000).address
    'kafka://localhost:9092/orders'
    >>> topic("kafka://localhost:9092/orders", schema="id BIGINT", format="avro",
    ...     registry="https://registry:8081", registry_credentials="app:s3same-open").address
    'kafka://localhost:9092/orders'
    """
    protect_address(address)  # it may be refused, with its text
    split_address(address)
    return Topic(address, schema, key, start, {name: str(text) for name, text in options.items()})
