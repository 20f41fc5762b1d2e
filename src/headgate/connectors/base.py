"""What every connector gives: raw records from a source, a place for rows from a sink."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import DataType, StringType, StructType

from headgate.base.errors import GraphError
from headgate.base.topic_ids import TopicIds
from headgate.failures import Reason

if TYPE_CHECKING:
    from headgate.jvm.python_sinks import BatchWriter

Expr: TypeAlias = Column | str
"""A column: a PySpark `Column`, or Spark SQL as text.

>>> str(hg.when("visits >= 10"))
'when visits >= 10 once'
"""
StartPosition: TypeAlias = Literal["earliest", "latest"] | datetime | Mapping[int, int]
"""Where a job without a checkpoint starts to read: an end, a time, or offsets by partition.

>>> hg.topic("log:orders", schema="id BIGINT", start=datetime(2026, 1, 1)).start.year
2026
>>> hg.topic("kafka://localhost:9092/orders", schema="id BIGINT", start={0: 100, 1: 250}).start[1]
250
"""
Format: TypeAlias = Literal[
    "json", "avro", "protobuf", "raw", "text", "csv", "debezium-json", "debezium-avro"
]


@dataclass(frozen=True)
class Decoding:
    """How a record's bytes become columns.

    The last columns of the source's struct are its `metadata`: (column, part of the record).
    """

    format: str = "json"
    """The name of the kernel's decoder."""
    metadata: Sequence[tuple[str, str]] = ()
    settings: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """What else the decoder needs; some of it may be secret."""


class Source:
    """Where a stream or a table comes from.

    >>> isinstance(hg.topic("log:orders", schema="id BIGINT"), hg.Source)
    True
    """

    def struct(self) -> StructType:
        """The columns of a record's value, then those of its metadata."""
        raise NotImplementedError

    def decoding(self) -> Decoding:
        """How the value is read, and what else of a record becomes columns."""
        return Decoding()

    @property
    def gives_changes(self) -> bool:
        """Whether a record may replace or delete the row of its key."""
        return False

    def describe(self) -> str:
        """An address that people recognise."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise if the source cannot be read at all, before anything is started."""

    def check_table(self) -> None:
        """Raise if the source cannot be a table, whose rows need one order for each key."""

    def check_stream(self) -> None:
        """Raise if the source cannot be a stream, whose rows must all be there."""

    def live(self, spark: SparkSession) -> Sequence[Finding]:
        """Ask the broker, if there is one, whether the source is there and may be read."""
        return ()

    def records(self, spark: SparkSession, *, table: bool) -> DataFrame:
        """The raw records: key, value, partition, offset, timestamp."""
        raise NotImplementedError

    def cluster(self, spark: SparkSession) -> tuple[str, str] | None:
        """The servers of the address, and the id of the Kafka cluster that they lead to."""
        return None

    @property
    def positions_are_offsets(self) -> bool:
        """Whether the positions of its rows have their partitions and offsets."""
        return True

    @property
    def keeps_unread(self) -> bool:
        """Whether the broker keeps what the newest checkpoint has not, however long it takes."""
        return False

    def earliest(self, spark: SparkSession) -> Mapping[str, int | str] | None:
        """The first offset that is still there, by partition; nothing if it is not known."""
        return None

    def topic_ids(self, spark: SparkSession) -> TopicIds | None:
        """What tells its topics from others of the same names; nothing if nobody answers."""
        return None

    @property
    def client_names_no_topic(self) -> bool:
        """Whether failures of its client may lack the broker and the topic that they are about."""
        return False

    @property
    def may_lose(self) -> bool:
        """Whether it continues although records are gone."""
        return False

    def begin(self, spark: SparkSession, line: str, topics: Sequence[str]) -> str:
        """A line of Spark's offset log with these topics at their beginning.

        In its other topics, partitions whose records are gone are at the first that is there.
        """
        return line

    def guarded(self) -> Mapping[str, Any] | None:
        """What the kernel needs to compare the ids in each batch, if it does so."""
        return None


@dataclass(frozen=True)
class Finding:
    """What a broker answered about a topic; `reason` is null if all is well."""

    about: str
    text: str
    reason: Reason | None = None


class Sink:
    """Where rows go.

    >>> hg.topic("log:enriched").exactly_once, hg.ConsoleSink().exactly_once
    (True, False)
    """

    key: Expr | None = None  # what partitions the sink's rows, if anything

    @property
    def exactly_once(self) -> bool:
        """Whether a replayed batch is written only once."""
        return True

    @property
    def takes_changes(self) -> bool:
        """Whether it knows keys, and can write that the row of a key is deleted."""
        return False

    def key_text(self, columns: Sequence[str]) -> str:
        """How a key of these columns is written in the job's code, where the sink takes changes."""
        names = ", ".join(columns)
        return f"'{names}'" if len(columns) == 1 else f"'to_json(struct({names}))'"

    @property
    def by_task(self) -> bool:
        """Whether each task commits its own part, so that a task's rows must never change."""
        return False

    @property
    def sorts(self) -> bool:
        """Whether the kernel sorts the sink's rows, task by task, by all that they contain."""
        return False

    def hidden_columns(self) -> Mapping[str, Expr]:
        """What the writer needs besides the row, by the part of a record that it becomes."""
        return {} if self.key is None else {"key": self.key}

    def hidden_type(self, part: str, kind: DataType) -> DataType:
        """The type of a hidden column as it is written; raise if it cannot be made of `kind`."""
        return StringType()

    def hidden_column(self, part: str, made: Column) -> Column:
        """A hidden column in the form of its `hidden_type`."""
        return made

    def check_rows(self, rows: StructType) -> None:
        """Raise if rows with these columns can never be written."""

    def with_rows(self, rows: StructType) -> Sink:
        """The sink for rows with these columns, if what it asks its system depends on them."""
        return self

    def in_session(self, spark: SparkSession) -> Sink:
        """The sink with what the job's session knows of it, or raise."""
        return self

    def prepare(self, spark: SparkSession) -> Sequence[str]:
        """Make the sink's system ready for a run, or raise; what was changed there, in sentences.

        The system has answered by now, and the sink's topic is there.
        """
        return ()

    def describe(self) -> str:
        """An address that people recognise."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise if the sink can never be written, before anything is started."""

    def live(self, spark: SparkSession) -> Sequence[Finding]:
        """Ask the broker, if there is one, whether the sink is there and may be written."""
        return ()

    def cluster(self, spark: SparkSession) -> tuple[str, str] | None:
        """The servers of the address, and the id of the Kafka cluster that they lead to."""
        return None

    def shared_writer(self) -> SharedWriter | None:
        """What the sink shares with others of its system in a task, if it does."""
        return None

    def need_client(self, spark: SparkSession) -> None:
        """Bring the jars that its writer needs to the session, unless they are there."""

    def transactions(self, spark: SparkSession, job: str) -> Sequence[str]:
        """The transactions of a job that are open in the sink's system, each in a sentence."""
        return ()

    def owner(self, job: str) -> OutputOwner | None:
        """Who writes there under the job's name, if the kernel is not the one to ask."""
        return None

    def set_owner(self, job: str, owner: OutputOwner) -> None:
        """Write down who writes there, if the kernel does not."""

    def config(self) -> Mapping[str, Any]:
        """What makes it a different sink if it changes, besides its address: plain JSON values."""
        return {}

    def batch_writer(self, step: str) -> BatchWriter | None:
        """What the kernel calls on the driver with a batch's rows, if Python writes them."""
        return None

    def spec(self) -> SinkSpec:
        """What the kernel's writer reads."""
        raise NotImplementedError


@dataclass(frozen=True)
class SharedWriter:
    """A writer that several sinks share, and the settings in which they must agree."""

    name: str
    settings: object


@dataclass(frozen=True)
class OutputOwner:
    """A job of a home, as the system of its sinks knows it."""

    id: str
    home: str


@dataclass(frozen=True)
class SinkSpec:
    """One sink as the kernel's writer knows it."""

    kind: str
    """The name of its SinkKind in the kernel."""
    path: str = ""
    options: Mapping[str, Any] | None = None

    def to_json(self, name: str, *, hidden: Sequence[str]) -> dict[str, Any]:
        """The sink's part of the writer's specification."""
        return {
            "name": name,
            "kind": self.kind,
            "path": self.path,
            "key": "__hg_key" if "key" in hidden else None,
            "hidden": list(hidden),
            **(self.options or {}),
        }


def start_option(start: StartPosition) -> str:
    """A start position as the kernel reads it: earliest, latest or epoch milliseconds."""
    if isinstance(start, datetime):
        return str(int(start.timestamp() * 1000))
    if isinstance(start, str) and start in ("earliest", "latest"):
        return start
    raise GraphError(
        "start must be 'earliest', 'latest' or a datetime",
        got=repr(start),
        remedy="correct it, or leave it out (earliest)",
    )
