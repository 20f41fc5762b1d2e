"""The embedded topic: folders of JSON lines with partitions and offsets, no broker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate import jvm
from headgate.base.errors import GraphError, NotFoundError
from headgate.base.schemas import Schema, to_struct
from headgate.base.topic_ids import TopicIds
from headgate.connectors import value_format
from headgate.connectors.base import (
    Decoding,
    Expr,
    Sink,
    SinkSpec,
    Source,
    StartPosition,
    start_option,
)
from headgate.connectors.log.files import TopicFiles
from headgate.connectors.log.topic import LogTopic
from headgate.connectors.missing import create_remedy
from headgate.connectors.value_format import ValueFormat, format_of

_SOURCE_OPTIONS = frozenset({"max_records", "format", *value_format.OPTIONS})
_SINK_OPTIONS = frozenset({"partitions"})
MAX_RECORDS = "1000000"


def _refuse_unknown(options: Mapping[str, str], known: frozenset[str], what: str) -> None:
    for name in options:
        if name not in known:
            raise GraphError(
                f"a log {what} has no option '{name}'",
                expected=", ".join(sorted(known)),
                remedy="correct or remove the option",
            )


@dataclass(frozen=True)
class LogSource(Source):
    """Reads an embedded topic.

    >>> LogSource("data/users", schema="id BIGINT, name STRING").describe()
    'log:data/users'
    """

    path: str
    schema: Schema
    start: StartPosition = "earliest"
    options: Mapping[str, str] = field(default_factory=dict)

    def struct(self) -> StructType:
        value = to_struct(self.schema)
        self._format.check(value, self.options)
        return value

    @property
    def _format(self) -> ValueFormat:
        name = self.options.get("format", value_format.JSON.name)
        return format_of(name, value_format.OF_TEXT, self.options)

    @property
    def gives_changes(self) -> bool:
        return self._format.gives_changes

    def decoding(self) -> Decoding:
        how = self._format
        return Decoding(how.kernel, settings=how.settings(self.options))

    def describe(self) -> str:
        return f"log:{self.path}"

    def check(self) -> None:
        _refuse_unknown(self.options, _SOURCE_OPTIONS, "source")
        start_option(self.start)
        self.decoding()
        if not TopicFiles(self.path).exists():
            raise NotFoundError(
                f"there is no topic at {self.describe()}",
                remedy=create_remedy(self.describe(), LogTopic(self.path).neighbours),
            )

    def earliest(self, spark: SparkSession) -> Mapping[str, int]:
        return {str(part): n for part, n in TopicFiles(self.path).start_offsets().items()}

    def topic_ids(self, spark: SparkSession) -> TopicIds:
        topic = TopicFiles(self.path)
        return TopicIds(None, {self.path: topic.id()} if topic.exists() else {})

    def records(self, spark: SparkSession, *, table: bool) -> DataFrame:
        # a batch takes every table row that is there, so that its stream rows find them
        limit = "0" if table else MAX_RECORDS
        return (
            spark.readStream.format(jvm.LOG_SOURCE)
            .option("path", str(Path(self.path).absolute()))
            .option("starting", start_option(self.start))
            .option("max_records", self.options.get("max_records", limit))
            .load()
        )


@dataclass(frozen=True)
class LogSink(Sink):
    """Writes to an embedded topic, exactly once; a missing topic is created.

    >>> LogSink("data/enriched", key="id").describe()
    'log:data/enriched'
    """

    path: str
    key: Expr | None = None
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def takes_changes(self) -> bool:
        return True

    def describe(self) -> str:
        return f"log:{self.path}"

    def check(self) -> None:
        _refuse_unknown(self.options, _SINK_OPTIONS, "sink")

    def spec(self) -> SinkSpec:
        path = str(Path(self.path).absolute())
        return SinkSpec("log", path, {"partitions": int(self.options.get("partitions", "1"))})
