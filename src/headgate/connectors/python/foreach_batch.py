"""ForeachBatchSink: a function on the driver gets each batch as a DataFrame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate.base.errors import GraphError
from headgate.connectors.base import Sink, SinkSpec
from headgate.connectors.python.batch import Batch, check_staged
from headgate.connectors.python.errors import UserCodeError
from headgate.failures.user_code import FAILURES
from headgate.jvm.python_sinks import BatchWriter


class ForeachBatchSink(Sink):
    """Passes rows to your own function, `function(rows, batch)`, which runs on the driver.

    `rows` is a DataFrame over the batch's rows, which are staged in the home, so the function can
    use it as often as it likes. A batch without rows is not passed on. Delivery is at least once: a
    batch may come again after a crash, with the same rows and the same `batch.token`. Set
    `exactly_once=True` if the function skips a batch whose token it already has.

    >>> def append(rows: DataFrame, batch: Batch) -> None:
    ...     rows.write.mode("overwrite").parquet(f"out/{batch.token}")
    >>> ForeachBatchSink(append, exactly_once=True).describe()
    'foreach_batch:append'
    """

    exactly_once: bool = False

    def __init__(
        self, function: Callable[[DataFrame, Batch], None], *, exactly_once: bool = False
    ) -> None:
        if not callable(function):
            raise GraphError(
                "function must take the rows and the batch",
                expected="a function of (rows: DataFrame, batch: hg.Batch)",
                got=repr(function),
                remedy="give a function",
            )
        self.function = function
        self.exactly_once = exactly_once

    def describe(self) -> str:
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return f"foreach_batch:{name.rpartition('<locals>.')[2]}"

    def check_rows(self, rows: StructType) -> None:
        check_staged(rows)

    def batch_writer(self, step: str) -> BatchWriter:
        def write(rows: DataFrame, request: Mapping[str, Any]) -> None:
            batch = Batch.of(request)
            try:
                self.function(rows, batch)
            except FAILURES as error:
                raise UserCodeError(step, self.describe().partition(":")[2], batch, error) from None

        return write

    def spec(self) -> SinkSpec:
        delivery = "exactly_once" if self.exactly_once else "at_least_once"
        return SinkSpec("python", options={"delivery": delivery})
