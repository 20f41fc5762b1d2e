"""Columns of Spark as those of Iceberg: what a table gets, and whether rows fit it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from pyspark.sql import types as spark

from headgate.base.errors import GraphError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.types import IcebergType

_NAMES = {
    spark.BooleanType: "BooleanType",
    spark.ByteType: "IntegerType",
    spark.ShortType: "IntegerType",
    spark.IntegerType: "IntegerType",
    spark.LongType: "LongType",
    spark.FloatType: "FloatType",
    spark.DoubleType: "DoubleType",
    spark.StringType: "StringType",
    spark.CharType: "StringType",
    spark.VarcharType: "StringType",
    spark.BinaryType: "BinaryType",
    spark.DateType: "DateType",
    spark.TimestampType: "TimestamptzType",
    spark.TimestampNTZType: "TimestampType",
}
_FIRST_PARTITION = 1000
"""Ids of the fields of partitions begin there, by Iceberg's convention."""


def check_types(rows: spark.StructType) -> None:
    """Raise if a column has a type that Iceberg does not have."""
    for column in rows.fields:
        if (found := _unknown(column.dataType)) is not None:
            raise GraphError(
                f"the column {column.name} cannot be written to an Iceberg table",
                expected="a type that Iceberg has",
                got=found.simpleString(),
                remedy="cast it, or leave it out",
            )


def _unknown(kind: spark.DataType) -> spark.DataType | None:
    """The part of a type that Iceberg does not have, if there is one."""
    if isinstance(kind, spark.StructType):
        parts = [f.dataType for f in kind.fields]
        if not parts:
            return kind
    elif isinstance(kind, spark.ArrayType):
        parts = [kind.elementType]
    elif isinstance(kind, spark.MapType):
        parts = [kind.keyType, kind.valueType]
    else:
        return None if type(kind) in _NAMES or isinstance(kind, spark.DecimalType) else kind
    return next((found for part in parts if (found := _unknown(part)) is not None), None)


def iceberg_schema(rows: spark.StructType) -> Schema:
    """The columns of a table for these rows, all of which may be null."""
    from pyiceberg.schema import Schema

    ids = count(1)
    return Schema(*_fields(rows, ids))


def partitions(schema: Schema, names: Sequence[str]) -> PartitionSpec:
    """A table's partitions by the values of these columns."""
    from pyiceberg.partitioning import PartitionField, PartitionSpec
    from pyiceberg.transforms import IdentityTransform

    return PartitionSpec(
        *(
            PartitionField(
                source_id=schema.find_field(name).field_id,
                field_id=_FIRST_PARTITION + number,
                transform=IdentityTransform(),
                name=name,
            )
            for number, name in enumerate(names)
        )
    )


def _fields(struct: spark.StructType, ids: Iterator[int]) -> list[Any]:
    from pyiceberg.types import NestedField

    numbers = [next(ids) for _ in struct.fields]
    return [
        NestedField(number, f.name, iceberg_type(f.dataType, ids), required=False)
        for number, f in zip(numbers, struct.fields, strict=True)
    ]


def iceberg_type(kind: spark.DataType, ids: Iterator[int]) -> IcebergType:
    """A type of Iceberg; what is nested in it gets the next of these numbers."""
    from pyiceberg import types as iceberg

    if isinstance(kind, spark.StructType):
        return iceberg.StructType(*_fields(kind, ids))
    if isinstance(kind, spark.ArrayType):
        number = next(ids)
        element = iceberg_type(kind.elementType, ids)
        return iceberg.ListType(number, element, element_required=False)
    if isinstance(kind, spark.MapType):
        key, value = next(ids), next(ids)
        return iceberg.MapType(
            key,
            iceberg_type(kind.keyType, ids),
            value,
            iceberg_type(kind.valueType, ids),
            value_required=False,
        )
    if isinstance(kind, spark.DecimalType):
        return iceberg.DecimalType(kind.precision, kind.scale)
    made: IcebergType = getattr(iceberg, _NAMES[type(kind)])()
    return made


@dataclass
class Fit:
    """How rows go into a table: the Arrow schema in which they are written, or what is wrong."""

    arrow: pa.Schema | None = None
    lacks: list[str] = field(default_factory=list)
    """What the table lacks, as `amount (DECIMAL(10,2))`."""
    wrong: list[str] = field(default_factory=list)
    """Columns of another type, and those that must have a value and get none."""


def fitted(rows: spark.StructType, table: Schema) -> Fit:
    """Compare the columns of rows with those of a table, by their names."""
    import pyarrow as pa

    fit = Fit()
    struct = _struct(rows, table.as_struct(), "", fit)
    fit.arrow = pa.schema(struct) if not fit.lacks and not fit.wrong else None
    return fit


def _struct(rows: spark.StructType, table: Any, path: str, fit: Fit) -> list[Any]:
    import pyarrow as pa

    known = {f.name: f for f in table.fields}
    for name, has in known.items():
        if has.required and name not in rows.names:
            fit.wrong.append(f"{path}{name} (the table requires a value)")
    made = []
    for column in rows.fields:
        name = path + column.name
        if (has := known.get(column.name)) is None:
            fit.lacks.append(f"{name} ({_sql(column.dataType)})")
        elif (kind := _written(column.dataType, has.field_type, name, fit)) is not None:
            made.append(pa.field(column.name, kind, nullable=not has.required))
    return made


def _written(rows: spark.DataType, table: Any, path: str, fit: Fit) -> Any:
    """The Arrow type of a column of rows as the table has it; None if it does not fit."""
    import pyarrow as pa
    from pyiceberg import types as iceberg
    from pyiceberg.exceptions import ResolveError
    from pyiceberg.io.pyarrow import schema_to_pyarrow
    from pyiceberg.schema import promote

    if isinstance(rows, spark.StructType) and isinstance(table, iceberg.StructType):
        return pa.struct(_struct(rows, table, f"{path}.", fit))
    if isinstance(rows, spark.ArrayType) and isinstance(table, iceberg.ListType):
        element = _written(rows.elementType, table.element_type, f"{path}.element", fit)
        return None if element is None else pa.list_(element)
    if isinstance(rows, spark.MapType) and isinstance(table, iceberg.MapType):
        key = _written(rows.keyType, table.key_type, f"{path}.key", fit)
        value = _written(rows.valueType, table.value_type, f"{path}.value", fit)
        return None if key is None or value is None else pa.map_(key, value)
    try:
        if isinstance(rows, spark.StructType | spark.ArrayType | spark.MapType):
            raise ResolveError("it is nested")
        ours = iceberg_type(rows, count())
        return schema_to_pyarrow(table if ours == table else promote(ours, table))
    except ResolveError:
        fit.wrong.append(f"{path} ({_sql(rows)}; the table has {table})")
        return None


def _sql(kind: spark.DataType) -> str:
    return kind.simpleString().upper()
