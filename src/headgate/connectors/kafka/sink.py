"""A Kafka topic to write, exactly once by transactions of the kernel's writer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, StructType

from headgate import jvm
from headgate.base.durations import Duration, parse_duration
from headgate.base.errors import GraphError
from headgate.connectors import written_format
from headgate.connectors.base import Expr, Finding, SharedWriter, Sink, SinkSpec
from headgate.connectors.kafka.client import check_servers, find_topics, split_options
from headgate.connectors.kafka.names import is_topic
from headgate.connectors.options import choice
from headgate.connectors.parts import TEXT, TIME, VALUE, Fit, is_text_map, written_type
from headgate.connectors.written_format import WrittenFormat

MARKER_TOPIC = "headgate-markers"
_OPTIONS = ("marker_topic", *written_format.OPTIONS)
_RESERVED = (
    "bootstrap.servers", "transactional.id", "transaction.timeout.ms", "enable.idempotence",
    "acks", "key.serializer", "value.serializer", "partitioner.class", "interceptor.classes",
)  # fmt: skip
_PARTS = {
    "headers": Fit(
        lambda kind: is_text_map(kind, *TEXT), "MAP<STRING, STRING> or MAP<STRING, BINARY>"
    ),
    "timestamp": TIME,
    "value": VALUE,
}


@dataclass(frozen=True)
class KafkaSink(Sink):
    """A Kafka topic to write.

    A record's value is the row as JSON or, in the `format` "protobuf", as a message. With a
    registry, the `format` can also be "avro", and the value begins with the id of its schema.
    `value` replaces all this (STRING or BINARY; null is a tombstone). Kafka's own partitioner
    chooses the partition by `key`. `headers` is a map, `timestamp` a TIMESTAMP. All exactly-once
    Kafka sinks of a job share one transaction per task and batch.

    >>> KafkaSink("localhost:9092", "counts", key="url").describe()
    'kafka://localhost:9092/counts'
    """

    servers: str
    topic: str
    key: Expr | None = None
    value: Expr | None = None
    delivery: Literal["exactly_once", "at_least_once"] = "exactly_once"
    transaction_timeout: Duration = "10 minutes"
    headers: Expr | None = None
    timestamp: Expr | None = None
    format: Literal["json", "avro", "protobuf"] = "json"
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def exactly_once(self) -> bool:
        return self.delivery == "exactly_once"

    @property
    def takes_changes(self) -> bool:
        return True

    def describe(self) -> str:
        return f"kafka://{self.servers}/{self.topic}"

    def hidden_columns(self) -> Mapping[str, Expr]:
        parts = {
            "key": self.key,
            "value": self.value,
            "headers": self.headers,
            "timestamp": self.timestamp,
        }
        return {part: made for part, made in parts.items() if made is not None}

    @property
    def by_task(self) -> bool:
        return self.exactly_once

    def hidden_type(self, part: str, kind: DataType) -> DataType:
        return written_type(part, kind, _PARTS)

    @property
    def _written(self) -> WrittenFormat:
        own, _ = self._options()
        return WrittenFormat.of(self.format, own, has_value=self.value is not None)

    def check_rows(self, rows: StructType) -> None:
        self._written.check_rows(rows, self.topic)

    def check(self) -> None:
        check_servers(self.servers)
        if not is_topic(self.topic):
            raise GraphError(
                "a Kafka topic's name must be letters, digits, '.', '_' and '-', at most 249",
                got=repr(self.topic),
                remedy="name one topic",
            )
        choice({"delivery": self.delivery}, "delivery", ("exactly_once", "at_least_once"))
        timeout = parse_duration(self.transaction_timeout, what="transaction_timeout")
        if timeout.total_seconds() < 1:
            raise GraphError(
                "transaction_timeout must be longer than the longest batch, and at least 1 second",
                got=str(self.transaction_timeout),
                remedy="leave it out (10 minutes)",
            )
        own, _ = self._options()
        self._written.to_json()
        if not is_topic(own.get("marker_topic", MARKER_TOPIC)):
            raise GraphError(
                "marker_topic must be letters, digits, '.', '_' and '-', at most 249",
                got=repr(own["marker_topic"]),
                remedy="correct it",
            )

    def _options(self) -> tuple[dict[str, str], dict[str, str]]:
        return split_options(self.options, known=_OPTIONS, reserved=_RESERVED, what="sink")

    def _client(self) -> dict[str, str]:
        return {"bootstrap.servers": self.servers, **self._options()[1]}

    def cluster(self, spark: SparkSession) -> tuple[str, str] | None:
        return self.servers, jvm.kafka_cluster_id(spark, self._client())

    def live(self, spark: SparkSession) -> Sequence[Finding]:
        found = find_topics(spark, self._client(), [self.topic], right="WRITE")
        return [*found, *self._written.find(spark, self.topic)]

    def shared_writer(self) -> SharedWriter | None:
        if not self.exactly_once:
            return None
        options = self.spec().options or {}
        return SharedWriter(self.servers, (options["client"], options["marker_topic"]))

    def need_client(self, spark: SparkSession) -> None:
        jvm.need_kafka(spark)

    def transactions(self, spark: SparkSession, job: str) -> Sequence[str]:
        if not self.exactly_once:
            return ()
        found = jvm.kafka_open_transactions(spark, self._client(), job)
        return [
            f"{one['transactional_id']} on {', '.join(one.get('topics') or ['no topic yet'])}"
            f" ({one['state']})"
            for one in found
        ]

    def spec(self) -> SinkSpec:
        own, _ = self._options()
        timeout = parse_duration(self.transaction_timeout, what="transaction_timeout")
        return SinkSpec(
            "kafka",
            self.topic,
            {
                "delivery": self.delivery,
                "transaction_timeout_ms": int(timeout.total_seconds() * 1000),
                "marker_topic": own.get("marker_topic", MARKER_TOPIC),
                "client": self._client(),
                **self._written.to_json(),
            },
        )
