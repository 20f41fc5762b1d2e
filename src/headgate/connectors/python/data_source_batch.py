"""A batch of a data source: its stream writer, in the shape of a PythonSink."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql import Row
from pyspark.sql.conversion import ArrowTableToRowsConversion
from pyspark.sql.datasource import (
    DataSourceStreamArrowWriter,
    DataSourceStreamWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from headgate.connectors.python.batch import Batch
from headgate.connectors.python.sink import PythonSink

if TYPE_CHECKING:
    import pyarrow as pa


class DataSourceBatch(PythonSink):
    """The batch, and the writer that was made for it."""

    def __init__(self, writer: DataSourceStreamWriter, schema: StructType) -> None:
        self.writer, self.schema = writer, schema

    def write(self, rows: Iterator[pa.RecordBatch], batch: Batch, partition: int) -> Any:
        arrow = isinstance(self.writer, DataSourceStreamArrowWriter)
        message = self.writer.write(rows if arrow else _rows(rows, self.schema))
        if message is not None and not isinstance(message, WriterCommitMessage):
            got = type(message).__name__
            raise TypeError(f"write must return a WriterCommitMessage or None, got {got}")
        return message

    def commit(self, batch: Batch, messages: Sequence[Any]) -> None:
        self.writer.commit(list(messages), batch.number)

    def abort(self, batch: Batch, messages: Sequence[Any]) -> None:
        self.writer.abort(list(messages), batch.number)


def _rows(batches: Iterator[pa.RecordBatch], schema: StructType) -> Iterator[Row]:
    import pyarrow as pa

    for batch in batches:
        yield from ArrowTableToRowsConversion.convert(pa.Table.from_batches([batch]), schema)
