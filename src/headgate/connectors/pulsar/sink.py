"""A Pulsar topic to write, exactly once by names and numbers that the broker remembers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    MapType,
    StringType,
    StructType,
    VariantType,
)

from headgate import jvm
from headgate.base.errors import GraphError
from headgate.connectors.base import Expr, Finding, OutputOwner, Sink, SinkSpec
from headgate.connectors.options import choice
from headgate.connectors.parts import TIME, VALUE, Fit, is_text_map, written_type
from headgate.connectors.pulsar.admin import PulsarAdmin, PulsarAdminError
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.dedup import ensure_deduplication
from headgate.connectors.pulsar.live import find_pulsar_topics, java_access
from headgate.connectors.pulsar.names import PulsarTopicName, address_of

_OWNER = "headgate.owner."
_PROPERTIES = ArrayType(StructType().add("key", StringType()).add("value", StringType()))


@dataclass(frozen=True)
class PulsarSink(Sink):
    """A Pulsar topic to write.

    A message's value is the row as JSON, unless `value` replaces it (STRING or BINARY; null is a
    tombstone). Messages with a key go to the partition that Pulsar's own clients choose.
    `properties` is a MAP<STRING, STRING>, `event_time` a TIMESTAMP.

    Exactly once needs deduplication, which a start switches on for the topic. A task then sends the
    rows of a batch in the order of `order_by` and then of their contents, so set `order_by` if the
    order of messages with the same key matters. The access options are the same as for
    `PulsarSource`.

    >>> PulsarSink("pulsar://localhost:6650", "counts", key="url", order_by="at").describe()
    'pulsar://localhost:6650/counts'
    """

    url: str
    topic: str
    key: Expr | None = None
    value: Expr | None = None
    delivery: Literal["exactly_once", "at_least_once"] = "exactly_once"
    properties: Expr | None = None
    event_time: Expr | None = None
    order_by: Expr | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def exactly_once(self) -> bool:
        return self.delivery == "exactly_once"

    @property
    def takes_changes(self) -> bool:
        return True

    def describe(self) -> str:
        return address_of(self.url, self.topic)

    def hidden_columns(self) -> Mapping[str, Expr]:
        parts = {
            # first, since rows are sorted by their columns from left to right
            "order_by": self.order_by if self.exactly_once else None,
            "key": self.key,
            "value": self.value,
            "properties": self.properties,
            "event_time": self.event_time,
        }
        return {part: made for part, made in parts.items() if made is not None}

    @property
    def by_task(self) -> bool:
        return self.exactly_once

    @property
    def sorts(self) -> bool:
        return self.exactly_once

    def hidden_type(self, part: str, kind: DataType) -> DataType:
        written = written_type(part, kind, _PARTS)
        return _PROPERTIES if part == "properties" else written

    def hidden_column(self, part: str, made: Column) -> Column:
        return F.array_sort(F.map_entries(made)) if part == "properties" else made

    def check_rows(self, rows: StructType) -> None:
        if not self.exactly_once or self.value is not None:
            return
        for column in rows.fields:
            if (wrong := _unsortable(column.dataType)) is not None:
                raise GraphError(
                    f"the column '{column.name}' is or has a {wrong}, which cannot be sorted, and "
                    "rows of an exactly-once Pulsar sink are sorted",
                    got=column.dataType.simpleString().upper(),
                    remedy="write value=to_json(struct(*)), drop or convert the column, or set "
                    "delivery='at_least_once'",
                )

    def check(self) -> None:
        self._access.check()
        PulsarTopicName.parse(self.topic)
        choice({"delivery": self.delivery}, "delivery", ("exactly_once", "at_least_once"))

    @property
    def _access(self) -> PulsarAccess:
        return PulsarAccess.split(self.url, self.options, known=(), what="sink")[0]

    def live(self, spark: SparkSession) -> Sequence[Finding]:
        return find_pulsar_topics(spark, self._access, self.topic)

    def prepare(self, spark: SparkSession) -> Sequence[str]:
        if not self.exactly_once:
            return ()
        return ensure_deduplication(self._access, PulsarTopicName.parse(self.topic))

    def owner(self, job: str) -> OutputOwner | None:
        if not self.exactly_once:
            return None
        found = PulsarAdmin(self._access).properties(PulsarTopicName.parse(self.topic))
        stored = found.get(_OWNER + job)
        return OutputOwner(*stored.split(" ", 1)) if stored and " " in stored else None

    def set_owner(self, job: str, owner: OutputOwner) -> None:
        if self.exactly_once:
            # who may write need not be allowed to do this: then nobody is written down
            with suppress(PulsarAdminError):
                PulsarAdmin(self._access).set_property(
                    PulsarTopicName.parse(self.topic), _OWNER + job, f"{owner.id} {owner.home}"
                )

    def need_client(self, spark: SparkSession) -> None:
        jvm.need_pulsar(spark)

    def spec(self) -> SinkSpec:
        return SinkSpec(
            "pulsar",
            str(PulsarTopicName.parse(self.topic)),
            {"delivery": self.delivery, "access": java_access(self._access)},
        )


_PARTS = {
    "order_by": Fit(lambda kind: _unsortable(kind) is None, "something that can be sorted"),
    "properties": Fit(lambda kind: is_text_map(kind, StringType), "MAP<STRING, STRING>"),
    "event_time": TIME,
    "value": VALUE,
}


def _unsortable(kind: DataType) -> str | None:
    """The part of a type that has no order, by name."""
    if isinstance(kind, MapType | VariantType | CalendarIntervalType):
        return kind.typeName().upper()
    if isinstance(kind, ArrayType):
        return _unsortable(kind.elementType)
    if isinstance(kind, StructType):
        return next((w for f in kind.fields if (w := _unsortable(f.dataType))), None)
    return None
