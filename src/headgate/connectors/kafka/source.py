"""A Kafka topic to read, through Spark's own connector."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate import jvm
from headgate.base.errors import GraphError
from headgate.base.schemas import Schema, to_struct
from headgate.base.topic_ids import TopicIds
from headgate.connectors import value_format
from headgate.connectors.base import Decoding, Finding, Format, Source, StartPosition, start_option
from headgate.connectors.kafka.client import check_servers, find_topics, split_options
from headgate.connectors.kafka.names import is_topic
from headgate.connectors.metadata import KAFKA, Metadata, parse_metadata, with_metadata
from headgate.connectors.options import check_limit, choice
from headgate.connectors.registry import Registry
from headgate.connectors.value_format import ValueFormat, format_of

MAX_RECORDS = "1000000"
_OPTIONS = ("max_records", "on_data_loss", *value_format.OPTIONS)
# The first is an argument of its own; Spark refuses the others itself, with more words.
_RESERVED = (
    "bootstrap.servers", "key.deserializer", "value.deserializer", "auto.offset.reset",
    "enable.auto.commit", "interceptor.classes",
)  # fmt: skip
_CLIENT = {
    # rows of transactions that were rolled back are not read
    "isolation.level": "read_committed",
    # report a broker that is gone after seconds, not after minutes
    "default.api.timeout.ms": "20000",
    "request.timeout.ms": "15000",
    "max.poll.records": "10000",
    # A task reads up to an offset that is there, and then finds out where the topic ends. That
    # question waits behind a fetch for more, by default for half a second in each task.
    "fetch.max.wait.ms": "20",
}
_POLL_TIMEOUT_MS = "60000"


@dataclass(frozen=True)
class KafkaSource(Source):
    """A Kafka topic to read.

    `topic` may be a pattern (`orders-.*`) or several names separated by commas. `start` says where
    a new run begins: "earliest", "latest", a time, or an offset for each partition. `metadata` adds
    a record's key, topic, partition, offset, timestamp and headers as columns. Options with a dot
    are those of Kafka's Java client (`security.protocol`, `sasl.jaas.config`, ...).

    >>> KafkaSource("localhost:9092", "visits", schema="id BIGINT").describe()
    'kafka://localhost:9092/visits'
    >>> KafkaSource("localhost:9092", "visits", schema="id BIGINT",
    ...     metadata="timestamp AS visited_at").struct().names
    ['id', 'visited_at']
    """

    servers: str
    topic: str
    schema: Schema
    start: StartPosition = "earliest"
    format: Format = "json"
    options: Mapping[str, str] = field(default_factory=dict)
    metadata: str | Sequence[str] = ()

    def struct(self) -> StructType:
        value, how = to_struct(self.schema), self._format
        how.check(value, self.options)
        return with_metadata(value, self._metadata, raw=how.is_raw)

    @property
    def _format(self) -> ValueFormat:
        return format_of(self.format, value_format.ALL, self.options)

    @property
    def gives_changes(self) -> bool:
        return self._format.gives_changes

    @property
    def _metadata(self) -> list[Metadata]:
        return parse_metadata(self.metadata, KAFKA)

    def decoding(self) -> Decoding:
        how = self._format
        return Decoding(how.kernel, self._metadata, how.settings(self._options()[0]))

    def describe(self) -> str:
        return f"kafka://{self.servers}/{self.topic}"

    def check(self) -> None:
        check_servers(self.servers)
        own, _ = self._options()
        choice(own, "on_data_loss", ("fail", "continue"))
        check_limit(own.get("max_records", MAX_RECORDS))
        if isinstance(self.start, Mapping):
            self._check_offsets(self.start)
        else:
            start_option(self.start)
        self.decoding()
        self.struct()

    def _check_offsets(self, start: Mapping[int, int]) -> None:
        right = all(isinstance(n, int) and n >= 0 for pair in start.items() for n in pair)
        if not right or not is_topic(self.topic):
            raise GraphError(
                "the start offsets must be numbers by partition of one topic, for example "
                "{0: 1200, 1: 900}",
                got=repr(start),
                remedy="correct them; partitions that are left out start at the earliest record",
            )

    def check_table(self) -> None:
        if not is_topic(self.topic):
            raise GraphError(
                "a table must be read from one topic, because changes in two topics have no order",
                got=repr(self.topic),
                remedy="name one topic",
            )

    def _options(self) -> tuple[dict[str, str], dict[str, str]]:
        return split_options(self.options, known=_OPTIONS, reserved=_RESERVED, what="source")

    def _client(self) -> dict[str, str]:
        return {"bootstrap.servers": self.servers, **self._options()[1]}

    def cluster(self, spark: SparkSession) -> tuple[str, str] | None:
        return self.servers, jvm.kafka_cluster_id(spark, self._client())

    def live(self, spark: SparkSession) -> Sequence[Finding]:
        if self._is_pattern:
            found = [Finding(self.describe(), f"{self.describe()}: a pattern of topics")]
        else:
            found = find_topics(spark, self._client(), self.topic.split(","), right="READ")
        return [*found, *self._subject(spark)]

    def _subject(self, spark: SparkSession) -> list[Finding]:
        """What the registry says, if there is one, about the subject of the records."""
        own, _ = self._options()
        registry = Registry.of(own)
        if registry is None or ("subject" not in own and not is_topic(self.topic)):
            return []
        return [registry.find(spark, own.get("subject", f"{self.topic}-value"))]

    def earliest(self, spark: SparkSession) -> Mapping[str, int] | None:
        if not is_topic(self.topic):
            return None
        answer = jvm.kafka_topics(spark, self._client(), [self.topic])[self.topic]
        return answer.get("earliest")

    @property
    def _is_pattern(self) -> bool:
        return not is_topic(self.topic) and "," not in self.topic

    def topic_ids(self, spark: SparkSession) -> TopicIds | None:
        answer = jvm.kafka_topic_ids(spark, self._client(), self.topic, is_pattern=self._is_pattern)
        return None if "error" in answer else TopicIds.from_json(answer)

    @property
    def client_names_no_topic(self) -> bool:
        return True

    @property
    def may_lose(self) -> bool:
        return self._options()[0].get("on_data_loss") == "continue"

    def guarded(self) -> Mapping[str, Any]:
        return {"client": self._client(), "topic": self.topic, "pattern": self._is_pattern}

    def begin(self, spark: SparkSession, line: str, topics: Sequence[str]) -> str:
        places: dict[str, dict[str, int]] = json.loads(line)
        for name, answer in jvm.kafka_topics(spark, self._client(), sorted(places)).items():
            first: dict[str, int] | None = answer.get("earliest")
            if first is None:  # it is gone, or nobody answers: then the batch says so
                continue
            known = {} if name in topics else places[name]
            places[name] = {part: max(n, known.get(part, n)) for part, n in first.items()}
        return json.dumps(places, separators=(",", ":"))

    def records(self, spark: SparkSession, *, table: bool) -> DataFrame:
        jvm.need_kafka(spark)
        own, client = self._options()
        reader = spark.readStream.format(jvm.KAFKA_SOURCE)
        subscribe = "subscribePattern" if self._is_pattern else "subscribe"
        reader = reader.option(subscribe, self.topic)
        for name, value in {"bootstrap.servers": self.servers, **_CLIENT, **client}.items():
            reader = reader.option(f"kafka.{name}", value)
        for name, value in self._starting(spark).items():
            reader = reader.option(name, value)
        # a batch takes every table row that is there, so that its stream rows find them
        limit = own.get("max_records", None if table else MAX_RECORDS)
        if limit is not None:
            reader = reader.option("maxOffsetsPerTrigger", limit)
        if any(part == "headers" for _, part in self._metadata):
            reader = reader.option("includeHeaders", "true")
        lost = choice(own, "on_data_loss", ("fail", "continue"))
        reader = reader.option("failOnDataLoss", str(lost == "fail").lower())
        return reader.option("kafkaConsumer.pollTimeoutMs", _POLL_TIMEOUT_MS).load()

    def _starting(self, spark: SparkSession) -> dict[str, str]:
        if isinstance(self.start, datetime):
            # partitions that have nothing since then start with what comes next
            return {
                "startingTimestamp": start_option(self.start),
                "startingOffsetsByTimestampStrategy": "latest",
            }
        if not isinstance(self.start, Mapping):
            return {"startingOffsets": start_option(self.start)}
        answer = jvm.kafka_topics(spark, self._client(), [self.topic])[self.topic]
        there = [int(p) for p in answer.get("earliest") or {}]
        for partition in self.start:
            if there and partition not in there:
                raise GraphError(
                    f"{self.describe()} has no partition {partition}, but a start offset for it",
                    expected=f"0 to {max(there)}",
                    remedy="correct the start offsets",
                )
        earliest = -2
        offsets = {str(p): self.start.get(p, earliest) for p in there or self.start}
        return {"startingOffsets": json.dumps({self.topic: offsets})}
