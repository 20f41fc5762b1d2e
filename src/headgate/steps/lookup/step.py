"""Tables, and lookups in them: a stream's rows with the latest table row of the same key."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    BooleanType,
    ByteType,
    DataType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructField,
    StructType,
)

from headgate.api.stream import Stream
from headgate.base.durations import Duration, parse_duration
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr, Source
from headgate.graph import Edge, Step
from headgate.graph.plan import (
    LookupOp,
    Node,
    Plan,
    RawSource,
    TableOp,
    analysed,
    column,
    expression_text,
)
from headgate.steps.source.step import source_address, source_schema

_WIDTHS: list[type[DataType]] = [ByteType, ShortType, IntegerType, LongType]


@dataclass(frozen=True)
class Wait:
    """Hold unmatched rows this long for their table row, then send them to `.missing`.

    The job's watermark waits for them, so that they are not late for windows that follow; with
    `hold_watermark=False` it goes on.

    >>> Wait("30 seconds").timeout
    '30 seconds'
    """

    timeout: Duration
    hold_watermark: bool = True

    def __post_init__(self) -> None:
        parse_duration(self.timeout, what="Wait.timeout")


class Table:
    """The latest row of each key of a changelog topic."""

    def __init__(self, plan: Plan, node: Node, key_types: Sequence[DataType]) -> None:
        self._plan = plan
        self._node = node
        self._key_types = tuple(key_types)

    @property
    def name(self) -> str:
        """The table's name."""
        return self._node.step.id

    @property
    def schema(self) -> StructType:
        """The table's columns."""
        return self._node.schemas["out"]


class Lookup(Stream):
    """The rows of a lookup whose key was found (or all rows, with `missing="null"`)."""

    @property
    def missing(self) -> Stream:
        """The rows whose key the table does not have, as they came."""
        return self.side("missing")


def expressions(given: Expr | Sequence[Expr]) -> tuple[Expr, ...]:
    """One expression or several, as several."""
    return (given,) if isinstance(given, str | Column) else tuple(given)


def key_types(
    plan: Plan, df: DataFrame, keys: Sequence[Expr], step: str, what: str
) -> list[DataType]:
    """The types of a key's parts."""
    made = [column(k).alias(f"k{i}") for i, k in enumerate(keys)]
    found = analysed(df, step, lambda d: d.select(*made), what)
    plan.note_changing(step, found)
    return [field.dataType for field in found.schema.fields]


def add_table(
    plan: Plan,
    name: str,
    source: RawSource,
    key: Expr | Sequence[Expr],
    delete_when: Expr | None,
    ttl: Duration | None,
) -> Table:
    """Write a table down."""
    plan.check_name(name, "table")
    if ttl is not None:
        raise GraphError(
            "ttl is not supported for tables in this version",
            step=name,
            remedy="leave it out, and delete rows with tombstones or delete_when",
            location=user_location(),
        )
    keys = expressions(key)
    if not keys:
        raise GraphError(
            "the table has no key", step=name, remedy='name it: key="id"', location=user_location()
        )
    schema = source_schema(plan, name, source)
    if isinstance(source, Source):
        source.check_table()
    prototype = plan.prototype(schema)
    types = key_types(plan, prototype, keys, name, "the table's key")
    detail = {"address": source_address(source), "key": ", ".join(map(expression_text, keys))}
    if delete_when is not None:
        condition = column(delete_when)
        typed = analysed(prototype, name, lambda df: df.select(condition.alias("c")), "delete_when")
        if not isinstance(typed.schema["c"].dataType, BooleanType):
            raise GraphError(
                "delete_when is not a condition",
                step=name,
                expected="BOOLEAN",
                got=typed.schema["c"].dataType.simpleString().upper(),
                remedy="compare something",
                location=user_location(),
            )
        detail["delete_when"] = expression_text(delete_when)
    step = Step(
        id=name,
        kind="table",
        named=True,
        schema=schema.simpleString(),
        detail=detail,
        location=str(user_location()),
    )
    node = plan.add(step, TableOp(source, keys, delete_when), {"out": schema})
    return Table(plan, node, types)


def add_lookup(
    stream: Stream,
    name: str,
    table: Table,
    *,
    on: Expr | Sequence[Expr],
    into: str | None,
    take: Sequence[Expr] | None,
    missing: Literal["null", "drop", "side"] | Wait,
) -> Lookup:
    """Write a lookup down."""
    plan = stream._plan
    plan.check_name(name, "lookup")
    if not isinstance(table, Table):
        raise GraphError(
            "a lookup needs a table",
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
    types = key_types(plan, plan.prototype(stream.schema), keys, name, "the lookup's key (on)")
    _check_keys(name, table, types)
    mode = _missing_mode(name, missing)
    value = _taken(name, table, take)
    added = value.fields if take is not None else [StructField(into or table.name, value)]
    for column_added in added:
        if column_added.name in stream.columns:
            raise GraphError(
                f"the stream already has a column '{column_added.name}'",
                step=name,
                remedy="choose another name with into, or an alias in take",
                location=user_location(),
            )
    schema = StructType(
        list(stream.schema.fields) + [StructField(f.name, f.dataType) for f in added]
    )
    has_side = missing == "side" or isinstance(missing, Wait)
    detail = {
        "on": ", ".join(map(expression_text, keys)),
        "table": table.name,
        "missing": mode,
        "added": ", ".join(expression_text(t) for t in take) if take else (into or table.name),
    }
    holds = not isinstance(missing, Wait) or missing.hold_watermark
    if not holds:
        detail["hold_watermark"] = "False"
    owner = table._node.operation
    assert isinstance(owner, TableOp)
    detail["state_key"] = json.dumps([expression_text(k) for k in owner.keys])
    key_text = ", ".join(t.simpleString() for t in table._key_types)
    step = Step(
        id=name,
        kind="lookup",
        named=True,
        inputs=(stream._edge, Edge(table.name)),
        outputs=("out", "missing") if has_side else ("out",),
        schema=schema.simpleString(),
        stateful=True,
        state_schema=f"({key_text}) -> {value.simpleString()}"
        + (f" waiting {stream.schema.simpleString()}" if mode.startswith("wait") else ""),
        detail=detail,
        location=str(user_location()),
    )
    operation = LookupOp(
        table.name, keys, into or table.name, tuple(take) if take is not None else None, mode,
        holds,
    )  # fmt: skip
    node = plan.add(step, operation, {"out": schema, "missing": stream.schema})
    return Lookup(plan, node)


def _check_keys(name: str, table: Table, types: Sequence[DataType]) -> None:
    wanted = table._key_types
    if len(types) != len(wanted):
        raise GraphError(
            f"the key of table '{table.name}' has {len(wanted)} part(s)",
            step=name,
            expected=f"{len(wanted)} expression(s) in on",
            got=str(len(types)),
            remedy="give as many as the table's key has",
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


def _missing_mode(name: str, missing: object) -> str:
    if isinstance(missing, Wait):
        return f"wait:{int(parse_duration(missing.timeout).total_seconds() * 1000)}"
    if missing in ("null", "drop", "side"):
        return str(missing)
    raise GraphError(
        "missing is not known",
        step=name,
        expected="'null', 'drop', 'side' or Wait(...)",
        got=repr(missing),
        remedy="use one of the four",
        location=user_location(),
    )


def _taken(name: str, table: Table, take: Sequence[Expr] | None) -> StructType:
    if take is None:
        return table.schema
    if not take:
        raise GraphError(
            "take is empty",
            step=name,
            remedy="name the table's columns to add",
            location=user_location(),
        )
    made = [column(t) for t in take]
    prototype = table._plan.prototype(table.schema)
    found = analysed(prototype, name, lambda df: df.select(*made), "take")
    table._plan.note_changing(name, found)
    return found.schema


def value_struct(table_columns: Sequence[str], take: Sequence[Expr] | None) -> Column:
    """The part of a table row that a lookup keeps."""
    return F.struct(*([column(t) for t in take] if take is not None else table_columns))
