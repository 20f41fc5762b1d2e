"""PythonSink: a sink of the user's own, that tasks write and the driver commits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.types import StructType

from headgate.base.errors import GraphError
from headgate.base.packing import packed, travels
from headgate.connectors.base import Sink, SinkSpec
from headgate.connectors.python.batch import Batch, check_staged
from headgate.jvm.python_sinks import BatchWriter

if TYPE_CHECKING:
    import pyarrow as pa


class PythonSink(Sink):
    """A sink to subclass: `write` runs in the tasks, then `commit` on the driver, as in PySpark.

    Delivery is at least once: a batch may be written again after a crash, with the same rows and
    the same `batch.token`. A subclass that skips a batch whose token it already has sets
    `exactly_once = True`. A subclass that commits in `write`, partition by partition, also sets
    `by_task = True`; a repeated batch then has the same rows in each partition.

    >>> class Counted(PythonSink):
    ...     def write(self, rows, batch, partition):
    ...         return sum(part.num_rows for part in rows)
    ...     def commit(self, batch, messages):
    ...         print(batch.number, sum(messages))
    >>> Counted().describe()
    'python:Counted'
    """

    exactly_once: bool = False
    by_task: bool = False

    def write(self, rows: Iterator[pa.RecordBatch], batch: Batch, partition: int) -> Any:
        """Write the rows of a partition, in a Python worker; the return value goes to `commit`.

        It is not called for a partition without rows. Spark may try a partition again, and ignores
        what a failed attempt returned.
        """
        raise NotImplementedError

    def commit(self, batch: Batch, messages: Sequence[Any]) -> None:
        """Make the batch visible, on the driver; `messages` are what `write` returned, in order."""

    def abort(self, batch: Batch, messages: Sequence[Any]) -> None:
        """Clean up after a `write` or `commit` raised; `messages` are from the finished writes."""

    def config(self) -> Mapping[str, Any]:
        """Settings that make it a different sink if they change: plain JSON values, no secrets."""
        return {}

    def describe(self) -> str:
        return f"python:{type(self).__qualname__.rpartition('<locals>.')[2]}"

    def check(self) -> None:
        if type(self).write is PythonSink.write:
            raise GraphError(
                f"{type(self).__name__} has no method write",
                expected="def write(self, rows, batch, partition)",
                remedy="write one",
            )
        try:
            packed(self)
        except Exception as error:
            where = next((a for a, v in vars(self).items() if not travels(v)), None)
            raise GraphError(
                f"{type(self).__name__}{f'.{where}' if where else ''} cannot be sent to the"
                f" workers: {error}",
                remedy="make it in the method write",
            ) from error

    def check_rows(self, rows: StructType) -> None:
        check_staged(rows)

    def batch_writer(self, step: str) -> BatchWriter:
        from headgate.connectors.python.partitions import PartitionsWriter

        return PartitionsWriter(self, step)

    def spec(self) -> SinkSpec:
        delivery = "exactly_once" if self.exactly_once else "at_least_once"
        return SinkSpec("python", options={"delivery": delivery})
