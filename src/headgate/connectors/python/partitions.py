"""A batch of a PythonSink: a Spark job over its staged rows, then the commit on the driver."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from inspect import isgenerator
from typing import Any

from pyspark import TaskContext, cloudpickle
from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql import DataFrame

from headgate.base.packing import packed
from headgate.connectors.python.batch import Batch
from headgate.connectors.python.errors import UserCodeError
from headgate.connectors.python.sink import PythonSink
from headgate.failures.user_code import FAILURES

Messages = dict[int, bytes]
_LOG = logging.getLogger(__name__)


class _Ended(AccumulatorParam[Messages]):
    """Messages of tasks that have ended, by partition, also if the job fails after all."""

    def zero(self, value: Messages) -> Messages:
        return {}

    def addInPlace(self, value1: Messages, value2: Messages) -> Messages:
        return {**value1, **value2}


@dataclass(frozen=True)
class PartitionsWriter:
    """Writes the batches of one sink."""

    sink: PythonSink
    step: str

    def __call__(self, rows: DataFrame, request: Mapping[str, Any]) -> None:
        """Write a batch: all partitions, then the commit; else the abort."""
        batch = Batch.of(request)
        ended = rows.sparkSession.sparkContext.accumulator({}, _Ended())
        task = _task(_Work(self.sink, self.step, batch, tuple(request["tasks"])), ended)
        try:
            found = rows.mapInArrow(task, "partition INT, message BINARY").collect()
        except BaseException:
            self._abort(batch, ended.value)
            raise
        messages = {row.partition: bytes(row.message) for row in found}
        try:
            self.sink.commit(batch, _loaded(messages))
        except FAILURES as error:
            self._abort(batch, messages)
            raise UserCodeError(self.step, "commit", batch, error) from None

    def _abort(self, batch: Batch, messages: Messages) -> None:
        try:
            self.sink.abort(batch, _loaded(messages))
        except FAILURES:  # what went wrong first is to be reported
            _LOG.warning("abort of the sink %s failed, too", self.step, exc_info=True)


def _loaded(messages: Messages) -> list[Any]:
    return [cloudpickle.loads(messages[partition]) for partition in sorted(messages)]


@dataclass(frozen=True)
class _Work:
    sink: PythonSink
    step: str
    batch: Batch
    tasks: tuple[int, ...]
    """By the partition of the staged rows, the number of the task that staged them."""


def _task(work: _Work, ended: Accumulator[Messages]) -> Callable[[Iterator[Any]], Iterator[Any]]:
    payload, path = packed(work), [p for p in sys.path if p]

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        import sys

        # a local worker finds the modules that the driver has found
        sys.path += [p for p in path if p not in sys.path]
        from headgate.connectors.python.partitions import run_task

        partition, message, answer = run_task(payload, batches)
        ended.add({partition: message})
        yield answer

    return run


def run_task(payload: bytes, rows: Iterator[Any]) -> tuple[int, bytes, Any]:
    """Write a partition in a worker: its number, its message, and both for the driver."""
    import pyarrow as pa

    work: _Work = cloudpickle.loads(payload)
    context = TaskContext.get()
    assert context is not None, "it runs in a task"
    partition = work.tasks[context.partitionId()]
    try:
        given = work.sink.write(rows, work.batch, partition)
        if isgenerator(given):
            raise TypeError("write must return its message, got a generator: it must not yield")
        message: bytes = cloudpickle.dumps(given)  # type: ignore[no-untyped-call]
    except FAILURES as error:
        raise UserCodeError(work.step, "write", work.batch, error, partition) from error
    answer = pa.RecordBatch.from_arrays(
        [pa.array([partition], pa.int32()), pa.array([message], pa.binary())],
        ["partition", "message"],
    )
    return partition, message, answer
