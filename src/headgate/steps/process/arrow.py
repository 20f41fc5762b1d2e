"""What a user writes in a vectorised process function: handlers of Arrow batches, column states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import ClassVar, Generic, TypeVar, cast

import pyarrow as pa
from pyspark.sql.types import StructType

from headgate.steps.process.codecs import Codec
from headgate.steps.process.declare import DeclaredState, declared_codec
from headgate.steps.process.function import Process

T = TypeVar("T")


class ColumnState(ABC, Generic[T]):
    """One value for each key of a batch, as an Arrow column.

    In the example, `job_of` makes a job that passes `visits` to a function, keyed by page.

    >>> class Calls(hg.ArrowProcess):
    ...     gives = "page STRING, calls BIGINT"
    ...     calls = hg.column_state(int)
    ...     def on_visits(self, rows, ctx):
    ...         self.calls.set(pc.add(pc.fill_null(self.calls.get(), 0), 1))
    ...         yield pa.record_batch({"page": ctx.keys["page"], "calls": self.calls.get()})
    >>> job_driver(job_of(Calls())).send("visits", {"page": "home"}).run().rows("out")
    [{'page': 'home', 'calls': 1}]
    """

    @abstractmethod
    def get(self) -> pa.Array:
        """The values of `ctx.keys`, in their order; null where a key has none."""

    @abstractmethod
    def set(self, values: pa.Array) -> None:
        """Set a value for each of `ctx.keys`; null deletes a key's value."""


class DeclaredColumn(DeclaredState):
    """A state that handlers see as a column; it is kept as a value state is."""

    def __init__(self, value: Codec) -> None:
        super().__init__("value", value)


def column_state(type: type[T]) -> ColumnState[T]:
    """Declare one value per key for an `ArrowProcess`.

    >>> class Count(hg.ArrowProcess):
    ...     gives = "page STRING, seen BIGINT"
    ...     seen = hg.column_state(int)
    ...     def on_visits(self, rows, ctx): ...
    >>> job_of(Count()).describe().step("count").state_schema
    '(string) -> seen value<bigint>'
    """
    return cast(ColumnState[T], DeclaredColumn(declared_codec(type, "column_state")))


class ArrowContext(ABC):
    """What a handler of an `ArrowProcess` gets besides its rows.

    In the example, `job_of` makes a job that passes `visits` to a function, keyed by page.

    >>> class Sizes(hg.ArrowProcess):
    ...     gives = "keys BIGINT, rows BIGINT"
    ...     def on_visits(self, rows, ctx):
    ...         ctx.count("calls")
    ...         yield pa.record_batch({"keys": [len(ctx.keys)], "rows": [len(ctx.key_of)]})
    >>> t = job_driver(job_of(Sizes())).send("visits", {"page": "home"}, {"page": "home"}).run()
    >>> t.rows("out")
    [{'keys': 1, 'rows': 2}]
    """

    keys: pa.RecordBatch
    """The keys of the batch, one row each; columns are named as in the first input."""
    key_of: pa.Array
    """For each row the number of its key in `keys`."""
    timestamps: pa.Array
    """For each row its event time, or null."""

    @property
    @abstractmethod
    def watermark(self) -> datetime:
        """The job's watermark; `datetime.min` before the first row."""

    @property
    @abstractmethod
    def processing_time(self) -> datetime:
        """The time of the batch, which stays the same when the batch is repeated."""

    @abstractmethod
    def count(self, metric: str, by: int = 1) -> None:
        """Add to a counter, which is shown with the step's other counters."""


class ArrowProcess(Process):
    """A process function over Arrow batches: the rows of many keys in one call.

    `gives` names the columns of the batches that handlers yield: DDL, a StructType or a dataclass.

    >>> class Count(hg.ArrowProcess):
    ...     gives = "page STRING, seen BIGINT"
    ...     seen = hg.column_state(int)
    ...     def on_visits(self, rows, ctx):
    ...         more = np.bincount(ctx.key_of, minlength=len(ctx.keys))
    ...         seen = pc.add(pc.fill_null(self.seen.get(), 0), pa.array(more))
    ...         self.seen.set(seen)
    ...         yield pa.record_batch({"page": ctx.keys["page"], "seen": seen})
    >>> @hg.job("pages")
    ... def pages(job: hg.Job) -> None:
    ...     visits = job.source("visits", hg.topic("log:visits", schema="page STRING"))
    ...     counts = job.process("count", Count(), visits=visits.key_by("page"))
    ...     counts.sink("out", hg.topic("log:out"))
    >>> t = job_driver(pages).send("visits", {"page": "home"}, {"page": "home"}).run()
    >>> t.rows("out")
    [{'page': 'home', 'seen': 2}]
    """

    gives: ClassVar[str | StructType | type | None] = None
