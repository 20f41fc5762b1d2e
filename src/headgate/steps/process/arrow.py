"""What a user writes in a vectorised process function: handlers of Arrow batches, column states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from datetime import datetime
from typing import ClassVar, Generic, TypeVar, cast

import pyarrow as pa
from pyspark.sql.types import StructType

from headgate.steps.process.codecs import Codec
from headgate.steps.process.declare import DeclaredState, Process, declared_codec

T = TypeVar("T")


class ColumnState(ABC, Generic[T]):
    """One value of each key of a batch, as an Arrow column."""

    @abstractmethod
    def get(self) -> pa.Array:
        """The values of `ctx.keys`, one after the other; null where a key has none."""

    @abstractmethod
    def set(self, values: pa.Array) -> None:
        """Keep a value for each of `ctx.keys`; null forgets."""


class DeclaredColumn(DeclaredState):
    """A state that handlers see as a column; it is kept as a value state is."""

    def __init__(self, value: Codec) -> None:
        super().__init__("value", value)


def column_state(type: type[T]) -> ColumnState[T]:
    """Declare one value a key for a vectorised function.

    Example: `seen = hg.column_state(int)`
    """
    return cast(ColumnState[T], DeclaredColumn(declared_codec(type, "column_state")))


class ArrowContext(ABC):
    """What a vectorised handler gets besides its rows."""

    keys: pa.RecordBatch
    """The keys of the batch, one row each; columns are named as in the first input."""
    key_of: pa.Array
    """For each row the number of its key in `keys`."""
    timestamps: pa.Array
    """For each row its event time, or null."""

    @property
    @abstractmethod
    def watermark(self) -> datetime:
        """Where event time is; `datetime.min` before the first row."""

    @property
    @abstractmethod
    def processing_time(self) -> datetime:
        """The time of the batch: the same when the batch is replayed."""

    @abstractmethod
    def count(self, metric: str, by: int = 1) -> None:
        """Count something; it is shown with the step's other counters."""


class ArrowProcess(Process):
    """A process function over Arrow batches: the rows of many keys in one call.

    Example:

        class Count(hg.ArrowProcess):
            gives = "page STRING, seen BIGINT"
            seen = hg.column_state(int)

            def on_visits(self, rows, ctx):
                more = np.bincount(ctx.key_of, minlength=len(ctx.keys))
                seen = pc.add(pc.fill_null(self.seen.get(), 0), pa.array(more))
                self.seen.set(seen)
                yield pa.record_batch({"page": ctx.keys["page"], "seen": seen})

    `gives` names the columns of the batches that handlers yield: DDL, a StructType or a dataclass.
    """

    gives: ClassVar[str | StructType | type | None] = None
