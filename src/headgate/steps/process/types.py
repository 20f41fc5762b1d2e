"""Which codec a Python type or a Spark type has, and which of them fit each other."""

from __future__ import annotations

import dataclasses
import types
import typing
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    LongType,
    MapType,
    StringType,
    StructType,
    TimestampType,
)

from headgate.steps.process.codecs import AsIs, Codec, Date, DictOf, Exact, ListOf, Scalar, Time
from headgate.steps.process.records import Record, RowOf, Struct

_SCALARS: dict[Any, Codec] = {
    bool: Scalar(bool, BooleanType(), pa.bool_()),
    int: Scalar(int, LongType(), pa.int64(), bool),
    float: Scalar(float, DoubleType(), pa.float64(), int),
    str: Scalar(str, StringType(), pa.string()),
    bytes: Scalar(bytes, BinaryType(), pa.binary(), bytearray),
    Decimal: Exact(Decimal, DecimalType(38, 18), pa.decimal128(38, 18), int),
    datetime: Time(datetime, TimestampType(), pa.timestamp("us", "UTC")),
    date: Date(date, DateType(), pa.date32()),
}
TYPES = "bool, int, float, str, bytes, datetime, date, Decimal, list, dict or a dataclass"


class UnknownType(Exception):
    """A Python type that cannot be stored, and the field that has it."""

    def __init__(self, hint: Any, at: str) -> None:
        self.hint = hint.__name__ if isinstance(hint, type) else str(hint)
        self.at = at
        super().__init__(self.hint)


def codec_of(hint: Any, at: str = "", among: dict[str, Any] | None = None) -> Codec:
    """The codec of a Python type; `among` has names that annotations may use.

    >>> codec_of(dict[str, list[int]]).spark.simpleString()
    'map<string,array<bigint>>'
    """
    return _codec(hint, at, among, ())


def _codec(hint: Any, at: str, among: dict[str, Any] | None, inside: tuple[type, ...]) -> Codec:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        present = [a for a in arguments if a is not type(None)]
        if len(present) == 1:
            return _codec(present[0], at, among, inside)
    if hint in _SCALARS:
        return _SCALARS[hint]
    if origin is list and len(arguments) == 1:
        return ListOf(_codec(arguments[0], at, among, inside))
    if origin is dict and len(arguments) == 2:
        return DictOf(
            _codec(arguments[0], at, among, inside), _codec(arguments[1], at, among, inside)
        )
    if isinstance(hint, type) and dataclasses.is_dataclass(hint) and hint not in inside:
        hints = typing.get_type_hints(hint, localns=among)
        names = [f.name for f in dataclasses.fields(hint)]
        within = (*inside, hint)
        return Record(
            hint,
            [(n, _codec(hints[n], f"{hint.__name__}.{n}", among, within)) for n in names],
            [n for n in names if type(None) in typing.get_args(hints[n])],
        )
    raise UnknownType(hint, at)


def codec_of_spark(kind: DataType) -> Codec:
    """The codec of a column that comes from Spark, as a reader of rows without a dataclass."""
    if isinstance(kind, StructType):
        return RowOf([(f.name, codec_of_spark(f.dataType)) for f in kind.fields])
    if isinstance(kind, ArrayType):
        return ListOf(codec_of_spark(kind.elementType))
    if isinstance(kind, MapType):
        return DictOf(codec_of_spark(kind.keyType), codec_of_spark(kind.valueType))
    python = python_type(kind)
    if python is None:
        return AsIs(kind)
    same = _SCALARS[python]
    assert isinstance(same, Scalar)
    if same.spark == kind:
        return same
    return type(same)(same.kind, kind, to_arrow_type(kind), *same.also)


def python_type(kind: DataType) -> type | None:
    """The Python type of a Spark type that has no parts."""
    return _OF_SPARK.get(kind.typeName().partition("(")[0])


_OF_SPARK: dict[str, type] = {
    "boolean": bool,
    "byte": int,
    "short": int,
    "integer": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
    "char": str,
    "varchar": str,
    "binary": bytes,
    "decimal": Decimal,
    "timestamp": datetime,
    "timestamp_ntz": datetime,
    "date": date,
}


def fits(codec: Codec, kind: DataType) -> bool:
    """Whether a column of a Spark type can be read as values of a codec."""
    if isinstance(codec, ListOf):
        return isinstance(kind, ArrayType) and fits(codec.item, kind.elementType)
    if isinstance(codec, DictOf):
        return (
            isinstance(kind, MapType)
            and fits(codec.key, kind.keyType)
            and fits(codec.value, kind.valueType)
        )
    if isinstance(codec, Struct):
        return isinstance(kind, StructType) and all(
            n in kind.names and fits(c, kind[n].dataType) for n, c in codec.parts
        )
    return isinstance(codec, Scalar) and python_type(kind) is codec.kind
