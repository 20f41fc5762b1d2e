"""What travels between the kernel and a Python worker: the columns, and the function."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql.types import BooleanType, DataType, StructField, StructType

from headgate.steps.process.codecs import Codec
from headgate.steps.process.engine import OnError
from headgate.steps.process.function import Process
from headgate.steps.process.records import RowOf
from headgate.steps.process.shape import Shape
from headgate.steps.process.types import codec_of_spark

KEY = "__hg_key"
ROW = "__hg_row"
OUTPUT = "__hg_given"

# What a row from the kernel is, in its columns flag and input: the first of a key, without state or
# with it; the timers of a key that has no rows; the batch's watermark and its time, and where
# entries of large lists and maps can be had.
SAME, FIRST, FIRST_WITH_STATE = 0, 1, 2
TIMERS, WATERMARK, CLOCK, PORT, SECRET = -1, -2, -3, -4, -5
# What a row to the kernel is, in its column kind: a row of the output with this number, or this.
PUT, DELETE, COUNT, PUT_NEW = -1, -2, -3, -4


def out_struct(schema: StructType) -> StructType:
    """The columns of an output, of which there is at least one."""
    return schema if schema.names else StructType([StructField("none", BooleanType())])


@dataclass(frozen=True)
class Wire:
    """A process function with the codecs of all that comes to it and from it."""

    step: str
    function: Process
    shape: Shape
    key: RowOf
    rows: tuple[Codec, ...]
    on_error: OnError

    @staticmethod
    def of(
        step: str,
        function: Process,
        shape: Shape,
        names: Sequence[str],
        keys: Sequence[DataType],
        rows: Sequence[DataType],
        on_error: OnError,
    ) -> Wire:
        """Codecs for the key and for the rows of each input."""
        codecs: list[Codec] = []
        for handler, kind in zip(shape.inputs, rows, strict=True):
            assert isinstance(kind, StructType)
            codecs.append(
                codec_of_spark(kind) if handler.row is None else handler.row.with_parts(kind.names)
            )
        key = RowOf([(n, codec_of_spark(k)) for n, k in zip(names, keys, strict=True)])
        return Wire(step, function, shape, key, tuple(codecs), on_error)
