"""Writes lookups down: what a user gives, checked."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.types import (
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr
from headgate.graph.analysis import analysed, column
from headgate.graph.model import Edge
from headgate.graph.plan import Node
from headgate.graph.port import Port
from headgate.steps.lookup.as_of import AsOfStep, checked_as_of
from headgate.steps.lookup.step import LookupStep, Missing
from headgate.steps.lookup.table import Table, expressions, key_types
from headgate.steps.lookup.wait import Wait

_WIDTHS: list[type[DataType]] = [ByteType, ShortType, IntegerType, LongType]


def add_lookup(
    port: Port,
    name: str,
    table: Table,
    *,
    on: Expr | Sequence[Expr],
    into: str | None,
    take: Sequence[Expr] | None,
    missing: Missing,
    as_of: Expr | None = None,
) -> Node:
    """Write a lookup down."""
    plan = port.plan
    plan.check_name(name, "lookup")
    if not isinstance(table, Table):
        raise GraphError(
            "a lookup must have a table",
            step=name,
            got=type(table).__name__,
            remedy="make one with job.table(...)",
            location=user_location(),
        )
    if into is not None and take is not None:
        raise GraphError(
            "into and take exclude each other",
            step=name,
            remedy="use into for the whole row as a struct, or take for columns of it",
            location=user_location(),
        )
    keys = expressions(on)
    types = key_types(plan, port.prototype(), keys, name, "the lookup's key (on)")
    _check_keys(name, table, types)
    _check_missing(name, missing)
    _check_replicated(name, table, missing)
    value = _taken(name, table, take)
    added = value.fields if take is not None else [StructField(into or table.name, value)]
    for column_added in added:
        if column_added.name in port.columns:
            raise GraphError(
                f"the stream already has a column '{column_added.name}'",
                step=name,
                remedy="choose another name with into, or an alias in take",
                location=user_location(),
            )
    schema = StructType([*port.schema.fields, *(StructField(f.name, f.dataType) for f in added)])
    given = (
        table.name,
        tuple(table._key_texts),
        keys,
        into or table.name,
        tuple(take) if take is not None else None,
        missing,
        table._step.ttl,
        table._step.replicate,
    )
    operation = LookupStep(*given)
    if as_of is not None:
        operation = AsOfStep(*given, *checked_as_of(port, name, table, as_of, missing))
    has_side = missing == "side" or isinstance(missing, Wait)
    key_text = ", ".join(t.simpleString() for t in table._key_types)
    waiting = f" waiting {port.schema.simpleString()}" if operation.holds_rows else ""
    expires = " expires" if operation.ttl is not None else ""
    everywhere = " replicated" if operation.replicated else ""
    return plan.add(
        name,
        operation,
        {"out": schema, "missing": port.schema},
        inputs=[port.edge, Edge(table.name)],
        outputs=("out", "missing") if has_side else ("out",),
        state_schema=f"({key_text}) -> {value.simpleString()}{expires}{everywhere}{waiting}",
        state_key=table._key_texts,
    )


def _check_keys(name: str, table: Table, types: Sequence[DataType]) -> None:
    wanted = table._key_types
    if len(types) != len(wanted):
        raise GraphError(
            f"on must have {len(wanted)} expression(s), as many as the key of table '{table.name}'",
            step=name,
            got=str(len(types)),
            remedy="give one for each part of the key",
            location=user_location(),
        )
    for given, stored in zip(types, wanted, strict=True):
        if not _fits(given, stored):
            raise GraphError(
                f"the key does not fit that of table '{table.name}'",
                step=name,
                expected=stored.simpleString().upper(),
                got=given.simpleString().upper(),
                remedy=f'cast it: on="CAST(... AS {stored.simpleString().upper()})"',
                location=user_location(),
            )


def _fits(given: DataType, stored: DataType) -> bool:
    """The same type, or a whole number that widens without loss."""
    if given == stored:
        return True
    widths = [type(given), type(stored)]
    if all(w in _WIDTHS for w in widths):
        return _WIDTHS.index(widths[0]) <= _WIDTHS.index(widths[1])
    return isinstance(given, StringType) and isinstance(stored, StringType)


def _check_missing(name: str, missing: object) -> None:
    if missing not in ("null", "drop", "side") and not isinstance(missing, Wait):
        raise GraphError(
            "missing must be 'null', 'drop', 'side' or Wait(...)",
            step=name,
            got=repr(missing),
            remedy="'null' keeps the row with nulls, 'drop' drops it, 'side' sends it to "
            ".missing, Wait(...) holds it back until the table row comes",
            location=user_location(),
        )


def _check_replicated(name: str, table: Table, missing: Missing) -> None:
    if table._step.replicate and isinstance(missing, Wait):
        raise GraphError(
            f"rows cannot wait for table '{table.name}', which is in every partition",
            step=name,
            expected="missing='null', 'drop' or 'side'",
            got=repr(missing),
            remedy="make the table without replicate=True, or use missing='side'",
            location=user_location(),
        )


def _taken(name: str, table: Table, take: Sequence[Expr] | None) -> StructType:
    if take is None:
        return table.schema
    if not take:
        raise GraphError(
            "take must name at least one column",
            step=name,
            remedy="name the table's columns to add",
            location=user_location(),
        )
    made = [column(t) for t in take]
    prototype = table._plan.prototype(table.schema)
    found = analysed(prototype, name, lambda df: df.select(*made), "take")
    table._plan.note_changing(name, found)
    return found.schema
