"""Schemas as users give them (DDL, StructType or a dataclass) turned into Spark's StructType."""

from __future__ import annotations

import dataclasses
import types
import typing
from datetime import date, datetime
from decimal import Decimal
from typing import Any, TypeAlias

from pyspark.errors import PySparkException
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headgate.base.errors import GraphError

Schema: TypeAlias = str | StructType | type
"""The columns of a source: Spark's DDL, a StructType or a dataclass.

>>> @dataclasses.dataclass
... class Order:
...     id: int
...     note: str | None
>>> hg.topic("log:orders", schema=Order).struct().simpleString()
'struct<id:bigint,note:string>'
"""

_SCALARS: dict[Any, DataType] = {
    str: StringType(),
    int: LongType(),
    float: DoubleType(),
    bool: BooleanType(),
    bytes: BinaryType(),
    datetime: TimestampType(),
    date: DateType(),
    Decimal: DecimalType(38, 18),
}


def to_struct(schema: Schema) -> StructType:
    """Read a schema.

    >>> @dataclasses.dataclass
    ... class User:
    ...     id: int
    ...     name: str | None
    >>> to_struct(User).simpleString()
    'struct<id:bigint,name:string>'
    """
    if isinstance(schema, StructType):
        return schema
    if isinstance(schema, str):
        return _from_ddl(schema)
    if isinstance(schema, type) and dataclasses.is_dataclass(schema):
        return _from_dataclass(schema)
    raise GraphError(
        "the schema must be DDL text, a StructType or a dataclass",
        got=repr(schema),
        remedy='write it like "id BIGINT, name STRING"',
    )


def _from_ddl(ddl: str) -> StructType:
    try:
        parsed = DataType.fromDDL(ddl)
    except PySparkException as error:
        reason = str(error).strip().splitlines()[0].split(" SQLSTATE")[0].rstrip(".")
        raise GraphError(
            f"the schema does not parse: {reason}",
            got=repr(ddl),
            remedy='write it like "id BIGINT, name STRING"',
        ) from error
    if not isinstance(parsed, StructType) or not parsed.fields:
        raise GraphError(
            "the schema has no columns",
            got=repr(ddl),
            remedy='write it like "id BIGINT, name STRING"',
        )
    return parsed


def _from_dataclass(cls: type) -> StructType:
    hints = typing.get_type_hints(cls)
    fields = dataclasses.fields(cls)
    return StructType([StructField(f.name, _type_of(hints[f.name], cls, f.name)) for f in fields])


def _type_of(hint: Any, owner: type, field: str) -> DataType:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        present = [a for a in arguments if a is not type(None)]
        if len(present) == 1:
            return _type_of(present[0], owner, field)
    if hint in _SCALARS:
        return _SCALARS[hint]
    if origin is list:
        return ArrayType(_type_of(arguments[0], owner, field))
    if origin is dict:
        return MapType(_type_of(arguments[0], owner, field), _type_of(arguments[1], owner, field))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint):
        return _from_dataclass(hint)
    raise GraphError(
        f"the field '{field}' of {owner.__name__} has a type that Spark cannot store",
        expected="str, int, float, bool, bytes, datetime, date, Decimal, list, dict or a dataclass",
        got=str(hint),
        remedy="change the field's type or give the schema as DDL",
    )


def has_floats(kind: DataType) -> bool:
    """Whether values of a type can be equal for Spark and yet have other bytes.

    >>> from pyspark.sql.types import ArrayType, DoubleType, LongType
    >>> has_floats(ArrayType(DoubleType())), has_floats(LongType())
    (True, False)
    """
    if isinstance(kind, StructType):
        return any(has_floats(field.dataType) for field in kind.fields)
    if isinstance(kind, ArrayType):
        return has_floats(kind.elementType)
    return isinstance(kind, FloatType | DoubleType)
