"""select, where, with_columns and drop: expressions over the columns of each row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from headgate import jvm
from headgate.base.errors import GraphError, user_location
from headgate.graph.analysis import analysed
from headgate.graph.carried import Carrying
from headgate.graph.hidden import CARRIED, DELETED, EVENT_TIME, POSITION
from headgate.graph.operation import Operation, Shape, Transform
from headgate.graph.plan import Node
from headgate.graph.port import Port

_TYPES = {EVENT_TIME: TimestampType(), POSITION: LongType()}


class Stateless(Operation):
    """Rows to rows by a function over DataFrames; hidden columns go along."""

    shape = Shape.STATELESS
    apply: Transform

    @property
    def takes_changes(self) -> bool:
        return True

    def through(self, node: Node, rows: DataFrame) -> DataFrame:
        hidden = [c for c in (*CARRIED, DELETED) if c in rows.columns]
        made = self.apply(rows.drop(*hidden) if hidden else rows)
        for name in hidden:
            # rows that are made anew have lost it, and nothing behind them needs it
            made = jvm.carry(rows, made, name) or made
        return made

    def check_carried(self, rows: Carrying, output: str, name: str) -> None:
        rows.check_input(0, name)
        (edge,) = rows.node.step.inputs
        schema = rows.plan.node(edge.step).schemas[edge.output]
        base = rows.plan.prototype(StructType([*schema.fields, StructField(name, _TYPES[name])]))
        if jvm.carry(base, self.apply(base.drop(name)), name) is None:
            raise rows.lost(
                f"the rows of '{rows.node.step.id}' are made anew, so they have no"
                f" {rows.what(name)}",
                "use expressions in it instead of functions over whole batches",
            )


@dataclass(frozen=True)
class _Columns(Stateless):
    """A step that is its expressions."""

    apply: Transform
    expression: str

    def config(self) -> Mapping[str, Any]:
        return {"expression": self.expression}

    def labels(self) -> Mapping[str, str]:
        return {"expression": self.expression}

    @classmethod
    def detail_1(cls, address: str, config: Mapping[str, Any]) -> dict[str, str]:
        return {"expression": config["expression"]}


class Select(_Columns):
    """These columns and no others."""

    kind = "select"
    one_for_one = True


@dataclass(frozen=True)
class Where(_Columns):
    """The rows for which a condition is true; a change that does not meet it is a deletion."""

    condition: Column | None = None
    kind = "where"

    def through(self, node: Node, rows: DataFrame) -> DataFrame:
        if DELETED not in rows.columns or self.condition is None:
            return super().through(node, rows)
        falls_out = ~F.coalesce(self.condition, F.lit(False))
        return rows.withColumn(DELETED, F.col(DELETED) | falls_out)


class WithColumns(_Columns):
    """More columns, or others under the same names."""

    kind = "with_columns"
    one_for_one = True


class Drop(_Columns):
    """Without these columns."""

    kind = "drop"
    one_for_one = True


_STEPS: Mapping[str, type[_Columns]] = {s.kind: s for s in (Select, WithColumns, Drop)}


def add_columns_step(
    port: Port, kind: str, apply: Transform, expression: str, condition: Column | None = None
) -> Node:
    """Write a select, where, with_columns or drop down; it gets a name from its place."""
    plan = port.plan
    result = analysed(port.prototype(), port.step, apply, f"the {kind}")
    state = jvm.stateful_part(result)
    if state is not None:
        raise GraphError(
            f"the {kind} contains {state}, which keeps state",
            step=port.step,
            remedy="use a step of Headgate for it",
            location=user_location(),
        )
    name = plan.unnamed(port.step, kind)
    plan.note_changing(name, result)
    if condition is None:
        operation, changes = _STEPS[kind](apply, expression), kept_key(port, apply, port.step)
    else:
        operation, changes = Where(apply, expression, condition), port.changes
    return plan.add(
        name,
        operation,
        {"out": result.schema},
        inputs=[port.edge],
        named=False,
        changes=changes,
    )


def kept_key(port: Port, apply: Transform, step: str) -> tuple[str, ...] | None:
    """If rows are changes: what their key is called behind a step, which must show it as it is."""
    if port.changes is None:
        return None
    base = port.prototype()
    made = apply(base)
    names = [(column, jvm.name_of(base, made, column)) for column in port.changes]
    for column, name in names:
        if name is None:
            raise GraphError(
                f"the rows of '{port.node.step.id}' are changes by"
                f" {', '.join(port.changes)}, and {column} would be lost",
                step=step,
                remedy="keep the columns of the key as they are, under any name, and all rows:"
                " use where for a condition",
                location=user_location(),
            )
    return tuple(name for _, name in names if name is not None)
