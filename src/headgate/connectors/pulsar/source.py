"""A Pulsar topic to read, through a Spark Python data source of our own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from weakref import WeakSet

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.base.errors import GraphError, HeadgateError
from headgate.base.schemas import Schema, to_struct
from headgate.base.topic_ids import TopicIds
from headgate.connectors import value_format
from headgate.connectors.base import Decoding, Finding, Format, Source, StartPosition, start_option
from headgate.connectors.extras import need_extra
from headgate.connectors.metadata import PULSAR, Metadata, parse_metadata, with_metadata
from headgate.connectors.options import check_limit, choice
from headgate.connectors.pulsar.admin import PulsarAdmin
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.ids import START, Place
from headgate.connectors.pulsar.names import PulsarTopicName, address_of
from headgate.connectors.value_format import ValueFormat, format_of

MAX_RECORDS = "500000"
_RAW = {"publish_time": "timestamp"}
_OPTIONS = ("max_records", "on_data_loss", *value_format.OPTIONS)
_sessions: WeakSet[SparkSession] = WeakSet()


@dataclass(frozen=True)
class PulsarSource(Source):
    """A Pulsar topic to read.

    `start` says where a new run begins: "earliest", "latest", a publish time, or the first message
    of each partition (`{0: "12:3"}`; other partitions begin at the earliest). With a durable
    `subscription`, the broker keeps everything that is not yet in a checkpoint, and each committed
    checkpoint is acknowledged. `metadata` adds a message's key, topic, partition, publish_time,
    event_time, message_id and properties as columns. `compacted` reads a table's topic as
    compaction left it.

    >>> PulsarSource("pulsar://localhost:6650", "users", schema="id BIGINT").describe()
    'pulsar://localhost:6650/users'
    >>> PulsarSource("pulsar://localhost:6650", "visits", schema="id BIGINT",
    ...     metadata="publish_time AS visited_at").struct().names
    ['id', 'visited_at']
    """

    url: str
    topic: str
    schema: Schema
    start: StartPosition | Mapping[int, str] = "earliest"
    subscription: str | None = None
    format: Format = "json"
    metadata: str | Sequence[str] = ()
    compacted: bool = False
    options: Mapping[str, str] = field(default_factory=dict)

    def struct(self) -> StructType:
        value = to_struct(self.schema)
        self._format.check(value, self.options)
        return with_metadata(value, self._metadata, raw=False)

    @property
    def _format(self) -> ValueFormat:
        return format_of(self.format, value_format.OF_TEXT, self.options)

    @property
    def gives_changes(self) -> bool:
        return self._format.gives_changes

    @property
    def _metadata(self) -> list[Metadata]:
        return parse_metadata(self.metadata, PULSAR)

    def decoding(self) -> Decoding:
        parts = [(column, _RAW.get(part, part)) for column, part in self._metadata]
        how = self._format
        return Decoding(how.kernel, parts, how.settings(self._access()[1]))

    def describe(self) -> str:
        return address_of(self.url, self.topic)

    def check(self) -> None:
        need_extra("pulsar", f"the source {self.describe()}")
        access, own = self._access()
        access.check()
        PulsarTopicName.parse(self.topic)
        self.decoding()
        choice(own, "on_data_loss", ("fail", "continue"))
        check_limit(own.get("max_records", MAX_RECORDS))
        if self.subscription is not None and not self.subscription.strip():
            raise GraphError("the subscription must have a name", remedy="name it, or leave it out")
        self._start()
        self.struct()

    def _start(self) -> str | dict[str, str]:
        if not isinstance(self.start, Mapping):
            return start_option(self.start)
        found = {}
        for partition, id in self.start.items():
            if not isinstance(partition, int) or partition < 0 or not isinstance(id, str):
                raise GraphError(
                    "start must be a message id for each partition, for example "
                    "{0: '12:3', 1: '14:0:5'}",
                    got=repr(self.start),
                    remedy="write ids as ledger:entry or ledger:entry:batch; partitions that are "
                    "left out start at the earliest",
                )
            found[str(partition)] = str(Place.parse(id))
        return found

    def _access(self) -> tuple[PulsarAccess, dict[str, str]]:
        return PulsarAccess.split(self.url, self.options, known=_OPTIONS, what="source")

    def check_stream(self) -> None:
        if self.compacted:
            raise GraphError(
                f"{self.describe()} must be read as a table, because it is compacted",
                remedy="read it as a table, or without compacted=True",
            )

    def live(self, spark: SparkSession) -> Sequence[Finding]:
        from headgate.connectors.pulsar.live import find_pulsar_topics

        return find_pulsar_topics(spark, self._access()[0], self.topic)

    @property
    def positions_are_offsets(self) -> bool:
        return False  # a message's id does not fit

    @property
    def keeps_unread(self) -> bool:
        return self.subscription is not None

    def earliest(self, spark: SparkSession) -> Mapping[str, str] | None:
        from headgate.connectors.pulsar.partition import first_places

        if self.compacted:
            return None
        return first_places(self._access()[0], str(PulsarTopicName.parse(self.topic)))

    def topic_ids(self, spark: SparkSession) -> TopicIds | None:
        topic = PulsarTopicName.parse(self.topic)
        try:
            created = PulsarAdmin(self._access()[0]).created(topic)
        except HeadgateError:  # ids of messages tell most of it, too
            return None
        return None if created is None else TopicIds(None, {str(topic): created})

    @property
    def may_lose(self) -> bool:
        return self._access()[1].get("on_data_loss") == "continue"

    def begin(self, spark: SparkSession, line: str, topics: Sequence[str]) -> str:
        if not topics:  # a reader at a message that is gone goes on with the next one
            return line
        count = PulsarAdmin(self._access()[0]).partitions(PulsarTopicName.parse(self.topic))
        return json.dumps({str(number): str(START) for number in range(count or 1)})

    def records(self, spark: SparkSession, *, table: bool) -> DataFrame:
        # the module needs Pulsar's client, which only those need who use Pulsar
        from headgate.connectors.pulsar.stream import ALWAYS, FORMAT, PulsarDataSource

        if spark not in _sessions:
            spark.dataSource.register(PulsarDataSource)
            _sessions.add(spark)
        access, own = self._access()
        parts = [part for _, part in self.decoding().metadata]
        options = {
            **access.options,
            "url": self.url,
            "topic": str(PulsarTopicName.parse(self.topic)),
            "columns": ",".join(dict.fromkeys((*ALWAYS, *parts))),
            "start": json.dumps(self._start()),
            "on_data_loss": own.get("on_data_loss", "fail"),
            "compacted": str(self.compacted).lower(),
        }
        # a batch takes every table row that is there, so that its stream rows find them
        limit = own.get("max_records", None if table else MAX_RECORDS)
        if limit is not None:
            options["max_records"] = limit
        if self.subscription is not None:
            options["subscription"] = self.subscription
        return spark.readStream.format(FORMAT).options(**options).load()
