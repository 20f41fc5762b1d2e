"""What a sink can say of its rows' columns before anything runs: their names, and their types."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import (
    ArrayType,
    CalendarIntervalType,
    DataType,
    MapType,
    NullType,
    StructType,
)

from headgate.base.errors import GraphError


def unstored(kind: DataType) -> DataType | None:
    """The part of a type that Parquet does not have, if there is one."""
    if isinstance(kind, NullType | CalendarIntervalType):
        return kind
    parts: list[DataType] = []
    if isinstance(kind, StructType):
        parts = [f.dataType for f in kind.fields]
    elif isinstance(kind, ArrayType):
        parts = [kind.elementType]
    elif isinstance(kind, MapType):
        parts = [kind.keyType, kind.valueType]
    return next((found for p in parts if (found := unstored(p)) is not None), None)


def check_stored(rows: StructType, fails: str) -> None:
    """Raise if a column has a type that Parquet does not have; `fails` is what cannot be done."""
    for field in rows.fields:
        if (found := unstored(field.dataType)) is not None:
            raise GraphError(
                f"the column {field.name} cannot be {fails}",
                expected="a type that Parquet has",
                got=found.simpleString(),
                remedy="cast it, or leave it out",
            )


def check_columns(
    rows: StructType, what: str, names: Sequence[str], *, others: bool = False
) -> None:
    """Raise if these are not columns of the rows, each once; with `others`, if they are all.

    >>> from pyspark.sql.types import LongType
    >>> check_columns(StructType().add("user", LongType()), "key", ["id"])
    Traceback (most recent call last):
    headgate.base.errors.GraphError: key must name columns of the rows (expected some of user, ...
    """
    if len(set(names)) < len(names) or not set(names) <= set(rows.names):
        raise GraphError(
            f"{what} must name columns of the rows",
            expected=f"some of {', '.join(rows.names)}",
            got=", ".join(names),
            remedy="correct the names",
        )
    if others and names and len(names) == len(rows.names):
        raise GraphError(
            f"there must be a column beside those of {what}",
            got=", ".join(names),
            remedy="leave one of them out",
        )


def names_of(what: str, given: Sequence[str]) -> tuple[str, ...]:
    """Names of columns as they were given; raises if they are a single text or none.

    >>> names_of("key", ["user"])
    ('user',)
    """
    if isinstance(given, str) or not all(isinstance(name, str) for name in given):
        raise GraphError(
            f"{what} must be names of columns",
            got=repr(given),
            remedy=f"{what}=['user']",
        )
    return tuple(given)
