"""Stream: rows on their way, and the steps that can follow."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from pyspark.sql import DataFrame
from pyspark.sql.types import StructField, StructType

from headgate import jvm
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr, Sink
from headgate.graph import Edge, Step
from headgate.graph.plan import (
    LEAD,
    Node,
    Plan,
    ProcessOp,
    SinkOp,
    StatelessOp,
    Transform,
    UnionOp,
    analysed,
    column,
    expression_text,
)
from headgate.steps.process.declare import SideOutput

if TYPE_CHECKING:
    from headgate.steps.lookup.step import Lookup, Table, Wait
    from headgate.steps.window.step import Keyed


# what makes a step have a side output
_ASKED = {
    ("source", "malformed"): "make the source with malformed='side'",
    ("lookup", "missing"): "make the lookup with missing='side' or Wait(...)",
    ("process", "errors"): "make the step with on_error='side'",
}


class Stream:
    """Rows on their way through a job; every method gives a new stream and changes nothing."""

    def __init__(self, plan: Plan, node: Node, output: str = "out") -> None:
        self._plan = plan
        self._node = node
        self._output = output

    @property
    def schema(self) -> StructType:
        """The stream's columns."""
        return self._node.schemas[self._output]

    @property
    def columns(self) -> list[str]:
        """The names of the stream's columns."""
        return self.schema.names

    @property
    def _edge(self) -> Edge:
        return Edge(self._node.step.id, self._output)

    def select(self, *columns: Expr) -> Stream:
        """Keep these columns or expressions, and no others.

        Example: `orders.select("id", "price * 2 AS twice", F.upper("name").alias("name"))`
        """
        made = [column(c) for c in columns]
        detail = ", ".join(expression_text(c) for c in columns)
        return self._stateless("select", lambda df: df.select(*made), detail)

    def where(self, condition: Expr) -> Stream:
        """Keep the rows for which the condition is true.

        Example: `orders.where("price > 0")`
        """
        made = column(condition)
        return self._stateless("where", lambda df: df.where(made), expression_text(condition))

    def with_columns(self, **columns: Expr) -> Stream:
        """Add columns, or replace those of the same name.

        Example: `orders.with_columns(total="price * quantity")`
        """
        made = {name: column(c) for name, c in columns.items()}
        detail = ", ".join(f"{expression_text(c)} AS {name}" for name, c in columns.items())
        return self._stateless("with_columns", lambda df: df.withColumns(made), detail)

    def drop(self, *columns: str) -> Stream:
        """Leave these columns out.

        Example: `orders.drop("internal_note")`
        """
        for name in columns:
            if name not in self.columns:
                raise GraphError(
                    f"there is no column '{name}' to drop",
                    step=self._node.step.id,
                    expected="one of " + ", ".join(self.columns),
                    remedy="correct the name",
                    location=user_location(),
                )
        return self._stateless("drop", lambda df: df.drop(*columns), ", ".join(columns))

    def union(self, *others: Stream) -> Stream:
        """The rows of this stream and of the others, which have the same columns by name.

        Example: `web_orders.union(shop_orders)`
        """
        for other in others:
            if sorted(other.columns) != sorted(self.columns):
                raise GraphError(
                    "the streams of a union have different columns",
                    step=self._node.step.id,
                    expected=", ".join(self.columns),
                    got=", ".join(other.columns),
                    remedy="select the same columns first",
                    location=user_location(),
                )
        prototype = self._plan.prototype(self.schema)
        for other in others:
            following = self._plan.prototype(other.schema)
            prototype = analysed(
                prototype,
                self._node.step.id,
                lambda df, o=following: df.unionByName(o),  # type: ignore[misc]
                "a stream of the union",
            )
        step = Step(
            id=self._plan.unnamed(self._node.step.id, "union"),
            kind="union",
            named=False,
            inputs=(self._edge, *(o._edge for o in others)),
            schema=prototype.schema.simpleString(),
            location=str(user_location()),
        )
        return Stream(self._plan, self._plan.add(step, UnionOp(), {"out": prototype.schema}))

    def transform(self, name: str, function: Callable[[DataFrame], DataFrame]) -> Stream:
        """Any stateless PySpark code, as a named step.

        Example: `orders.transform("clean", lambda df: df.where("price > 0").fillna(0))`
        """
        self._plan.check_name(name, "transform")
        if not callable(function):
            raise GraphError(
                "transform takes a function from DataFrame to DataFrame",
                step=name,
                got=repr(function),
                remedy="give a function",
                location=user_location(),
            )
        prototype = self._plan.prototype(self.schema)
        result = analysed(prototype, name, function, "the transform")
        if not isinstance(result, DataFrame):
            raise GraphError(
                "the transform gave no DataFrame",
                step=name,
                got=type(result).__name__,
                remedy="return the DataFrame at the end of the function",
                location=user_location(),
            )
        state = jvm.stateful_part(result)
        if state is not None:
            raise GraphError(
                f"the transform contains {state}, which keeps state",
                step=name,
                remedy="use a step of Headgate for it: lookup for joins with a table, and key_by"
                " with window or process for aggregates and duplicates",
                location=user_location(),
            )
        step = Step(
            id=name,
            kind="transform",
            named=True,
            inputs=(self._edge,),
            schema=result.schema.simpleString(),
            detail={"code": _code(function)},
            location=str(user_location()),
        )
        self._plan.note_changing(name, result)
        node = self._plan.add(step, StatelessOp(function), {"out": result.schema})
        return Stream(self._plan, node)

    def lookup(
        self,
        name: str,
        table: Table,
        *,
        on: Expr | Sequence[Expr],
        into: str | None = None,
        take: Sequence[Expr] | None = None,
        missing: Literal["null", "drop", "side"] | Wait = "null",
    ) -> Lookup:
        """Add the latest table row of the same key, as one struct column or as columns.

        Example: `orders.lookup("users_lookup", users, on="user_id", into="user", missing="side")`

        `on` is the key in this stream, of as many parts as the table's key. `take` names the
        columns or expressions of the table to add; without it the whole row is added as the
        struct `into` (by default the table's name). `missing` says what becomes of a row whose key
        the table does not have: "null" (it goes on with nulls), "drop", "side" (it leaves by
        `.missing`) or `Wait(timeout)` (it waits for the table row, then leaves by `.missing`).
        """
        from headgate.steps.lookup.step import add_lookup

        return add_lookup(self, name, table, on=on, into=into, take=take, missing=missing)

    def key_by(self, *columns: Expr) -> Keyed:
        """Give the stream a key, for windows and process functions.

        Example: `visits.key_by("page", "upper(country) AS country")`

        Without a key, `visits.key_by()`, all rows are in the same windows.
        """
        from headgate.steps.window.step import key_by

        return key_by(self, columns)

    def side(self, output: str | SideOutput[Any]) -> Stream:
        """A side output of the step before, by its name or as a process function declares it.

        Example: `orders.side("malformed")`, `settled.side(SettleOrders.unpaid)`
        """
        if isinstance(output, SideOutput):
            operation = self._node.operation
            if not isinstance(operation, ProcessOp) or output not in operation.shape.sides:
                raise GraphError(
                    f"the side output '{output.name}' is not one of this step",
                    step=self._node.step.id,
                    expected="one of " + ", ".join(self._node.step.side_outputs)
                    if self._node.step.side_outputs
                    else "none: this step has no side outputs",
                    remedy="name one that the step's process function declares",
                    location=user_location(),
                )
            output = output.name
        there = self._node.step.side_outputs
        how = _ASKED.get((self._node.step.kind, output), "use a side output that the step has")
        if output not in there:
            raise GraphError(
                f"there is no side output '{output}'",
                step=self._node.step.id,
                expected="one of " + ", ".join(there)
                if there
                else "none: this step has no side outputs",
                remedy=how,
                location=user_location(),
            )
        return Stream(self._plan, self._node, output)

    def sink(self, name: str, sink: Sink) -> None:
        """Write the stream's rows.

        Example: `enriched.sink("enriched", hg.topic("log:data/enriched", key="id"))`
        """
        self._plan.check_name(name, "sink")
        if not isinstance(sink, Sink):
            raise GraphError(
                "this is not a sink",
                step=name,
                expected="a topic, LogSink, FilesSink, ConsoleSink, ...",
                got=repr(sink),
                remedy="give a sink",
                location=user_location(),
            )
        with _placed(name):
            detail = {"address": sink.describe()}
        lead = StructType()
        for part, expression in sink.lead().items():
            lead = lead.add(self._lead(name, sink, part, expression))
            detail[part] = expression_text(expression)
        with _placed(name):
            sink.check_rows(self.schema)
        step = Step(
            id=name,
            kind="sink",
            named=True,
            inputs=(self._edge,),
            outputs=(),
            schema=self.schema.simpleString(),
            detail=detail,
            location=str(user_location()),
        )
        self._plan.add(step, SinkOp(sink), {"lead": lead})

    def _lead(self, step: str, sink: Sink, part: str, expression: Expr) -> StructField:
        """The column of a part of the records that a sink writes, in the type that it writes."""
        made = column(expression)
        prototype = self._plan.prototype(self.schema)
        typed = analysed(prototype, step, lambda df: df.select(made), f"the sink's {part}")
        self._plan.note_changing(step, typed)
        with _placed(step):
            return StructField(LEAD + part, sink.lead_type(part, typed.schema[0].dataType))

    def _stateless(self, kind: str, apply: Transform, detail: str) -> Stream:
        origin = self._node.step.id
        prototype = analysed(self._plan.prototype(self.schema), origin, apply, f"the {kind}")
        state = jvm.stateful_part(prototype)
        if state is not None:
            raise GraphError(
                f"the {kind} contains {state}, which keeps state",
                step=origin,
                remedy="use a step of Headgate for it",
                location=user_location(),
            )
        step = Step(
            id=self._plan.unnamed(origin, kind),
            kind=kind,
            named=False,
            inputs=(self._edge,),
            schema=prototype.schema.simpleString(),
            detail={"expression": detail},
            location=str(user_location()),
        )
        self._plan.note_changing(step.id, prototype)
        node = self._plan.add(step, StatelessOp(apply), {"out": prototype.schema})
        return Stream(self._plan, node)


def _code(function: Callable[..., Any]) -> str:
    """A fingerprint of a function's code: a changed transform is a changed graph."""
    import hashlib

    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        text = getattr(function, "__qualname__", repr(type(function)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


__all__ = ["Stream"]


@contextmanager
def _placed(step: str) -> Iterator[None]:
    """Let errors of a connector name the step, and the line where it was written."""
    try:
        yield
    except GraphError as error:
        error.step = error.step or step
        error.location = error.location or user_location()
        raise
