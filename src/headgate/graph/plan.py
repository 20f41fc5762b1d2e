"""A job while it is being written down: the graph's steps beside what each of them does."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate import jvm
from headgate.base.errors import GraphError, Location, user_location
from headgate.base.secrets import protect_settings, redact
from headgate.connectors.base import Expr, Sink, Source
from headgate.graph import Edge, Graph, Step, operator_id
from headgate.steps.process.declare import Process
from headgate.steps.process.engine import OnError
from headgate.steps.process.shape import Shape

RawSource: TypeAlias = Source | Callable[[SparkSession], DataFrame]
Transform: TypeAlias = Callable[[DataFrame], DataFrame]
LEAD = "__hg_"
"""What stands before a part of a record in the name of a sink's column: `__hg_key`, ..."""
EVENT_TIME = "__hg_event_time"
POSITION = "__hg_position"
CARRIED = (EVENT_TIME, POSITION)
"""Columns that rows carry from a source to the windows behind it; users do not see them."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,99}")


@dataclass(frozen=True)
class SourceOp:
    """Reads records; `watermark` is an event-time expression and a delay in milliseconds."""

    source: RawSource
    malformed: str
    watermark: tuple[Expr, int] | None = None
    idle_after: int | None = None
    """After so many milliseconds without rows it does not hold the job's watermark any more."""


@dataclass(frozen=True)
class TableOp:
    """Reads a changelog; `keys` and `delete_when` are over its columns."""

    source: RawSource
    keys: tuple[Expr, ...]
    delete_when: Expr | None


@dataclass(frozen=True)
class StatelessOp:
    """Rows to rows, with no memory."""

    apply: Transform


@dataclass(frozen=True)
class UnionOp:
    """The rows of all inputs, by column name."""


@dataclass(frozen=True)
class LookupOp:
    """A stream row with the latest table row of its key."""

    table: str
    on: tuple[Expr, ...]
    into: str
    take: tuple[Expr, ...] | None
    missing: str
    holds: bool = True
    """Whether rows that wait hold the watermark of what follows."""


@dataclass(frozen=True)
class WindowOp:
    """Rows of a key and window aggregated; `spec` is what the kernel is told of the windows.

    `needs` has the columns, of those that rows carry, by which they find their windows.
    """

    keys: tuple[Expr, ...]
    names: tuple[str, ...]
    aggregates: tuple[Column, ...]
    spec: Mapping[str, Any]
    conditions: tuple[Expr, ...]
    needs: tuple[str, ...] = (EVENT_TIME,)


@dataclass(frozen=True)
class ProcessOp:
    """Rows of one or more keyed inputs given to a user's Python, which keeps state by key.

    `keys` has the key's expressions of each input, `names` what its parts are called.
    """

    function: Process
    shape: Shape
    keys: tuple[tuple[Expr, ...], ...]
    names: tuple[str, ...]
    on_error: OnError
    needs: tuple[str, ...] = (EVENT_TIME, POSITION)


@dataclass(frozen=True)
class SinkOp:
    """Rows that leave the job."""

    sink: Sink


Operation: TypeAlias = (
    SourceOp | TableOp | StatelessOp | UnionOp | LookupOp | WindowOp | ProcessOp | SinkOp
)


@dataclass(frozen=True)
class Node:
    """A step with what it does and the columns of each of its outputs."""

    step: Step
    operation: Operation
    schemas: Mapping[str, StructType]


@dataclass(frozen=True)
class BuiltJob:
    """A job whose function has run: checked, and ready to be compiled."""

    graph: Graph
    nodes: tuple[Node, ...]
    secrets: frozenset[str] = frozenset()
    """The params that the job takes for secrets, by `job.secret`."""

    def node(self, id: str) -> Node:
        """The node of a step."""
        return next(n for n in self.nodes if n.step.id == id)


@dataclass
class Plan:
    """Collects the steps while the user's function runs."""

    job: str
    spark: SparkSession
    params: Mapping[str, str]
    stand_in: str | None = None
    """The value of a parameter that is not set: in a test it names a broker that nobody asks."""
    nodes: list[Node] = field(default_factory=list)
    used_params: set[str] = field(default_factory=set)
    secrets: set[str] = field(default_factory=set)
    changing: dict[str, str] = field(default_factory=dict)
    """Steps with an expression that gives another value when a batch is replayed."""

    def check_name(self, name: str, kind: str) -> None:
        """Refuse a step name that is not valid, taken, or whose state would collide."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise GraphError(
                f"{name!r} is not a name for a {kind}",
                expected="a letter, then letters, digits, '_', '-' or '.' (at most 100)",
                remedy="rename the step",
                location=user_location(),
            )
        for other in self.nodes:
            if other.step.id == name:
                raise GraphError(
                    f"the name '{name}' is already used by a {other.step.kind} at"
                    f" {other.step.location}",
                    step=name,
                    remedy="give each step its own name: state is found by it",
                    location=user_location(),
                )
            if other.step.stateful and operator_id(other.step.id) == operator_id(name):
                raise GraphError(
                    f"its state would collide with that of '{other.step.id}'",
                    step=name,
                    remedy="rename one of the two steps",
                    location=user_location(),
                )

    def unnamed(self, origin: str, kind: str) -> str:
        """A name from the place of a step: the same as long as the chain before it is."""
        number = 1
        while any(n.step.id == f"{origin}/{kind}{number}" for n in self.nodes):
            number += 1
        return f"{origin}/{kind}{number}"

    def add(self, step: Step, operation: Operation, schemas: Mapping[str, StructType]) -> Node:
        """Write a step down."""
        for edge in step.inputs:
            self._check_gives(step, edge)
        protect_settings(_options(operation))
        node = Node(step, operation, schemas)
        self.nodes.append(node)
        return node

    def _check_gives(self, step: Step, edge: Edge) -> None:
        """Refuse the rows of a process function that gives none but to its side outputs."""
        before = next(n for n in self.nodes if n.step.id == edge.step)
        operation = before.operation
        if isinstance(operation, ProcessOp) and edge.output == "out" and not operation.shape.output:
            raise GraphError(
                f"'{edge.step}' gives no rows here: no handler says that it yields any",
                step=step.id,
                expected="-> hg.Out[...] at a handler",
                remedy=f"annotate what handlers yield, or use a side output of '{edge.step}'",
                location=user_location(),
            )

    def note_changing(self, step: str, result: DataFrame) -> None:
        """Remember a step whose rows differ from one attempt of a batch to the next."""
        part = jvm.nondeterministic_part(result)
        if part is not None:
            self.changing[step] = part

    def prototype(self, schema: StructType) -> DataFrame:
        """An empty stream with these columns, on which expressions are checked."""
        return jvm.prototype(self.spark, schema)

    def built(self, warnings: tuple[str, ...]) -> BuiltJob:
        """The finished, frozen job."""
        # last, when all secrets are known
        nodes = tuple(replace(n, step=n.step.without_secrets()) for n in self.nodes)
        sources = tuple(n.step.id for n in nodes if n.step.kind in ("source", "table"))
        steps, told = tuple(n.step for n in nodes), tuple(redact(text) for text in warnings)
        return BuiltJob(Graph(self.job, steps, sources, told), nodes, frozenset(self.secrets))


def _options(operation: Operation) -> Mapping[str, Any]:
    """What a connector was told: addresses and settings, some of them secret."""
    if isinstance(operation, SinkOp):
        return _told(operation.sink)
    return _told(operation.source) if isinstance(operation, SourceOp | TableOp) else {}


def _told(connector: object) -> Mapping[str, Any]:
    address = connector.describe() if isinstance(connector, Source | Sink) else ""
    return {"address": address, **(getattr(connector, "options", None) or {})}


def analysed(df: DataFrame, step: str, work: Transform, what: str) -> DataFrame:
    """Run a piece of user code on a prototype; an analysis error becomes a sentence of ours."""
    location = user_location()
    try:
        return work(df)
    except AnalysisException as error:
        raise _explain(error, df, step, what, location) from error


def _explain(
    error: AnalysisException, df: DataFrame, step: str, what: str, location: Location | None
) -> GraphError:
    condition = error.getCondition() or ""
    parameters = error.getMessageParameters() or {}
    missing = parameters.get("objectName") or parameters.get("fieldName")
    if condition.startswith("UNRESOLVED_COLUMN") and missing:
        name = missing.replace("`", "")
        near = difflib.get_close_matches(name.split(".")[-1], df.columns, n=1)
        hint = f"did you mean '{near[0]}'?" if near else "use one of the columns that are there"
        return GraphError(
            f"there is no column '{name}' in {what}",
            step=step,
            expected="one of " + ", ".join(df.columns),
            remedy=hint,
            location=location,
        )
    reason = str(error).strip().splitlines()[0].split(" SQLSTATE")[0]
    if isinstance(error, ParseException):
        return GraphError(
            f"{what} is not SQL: {reason.removeprefix(f'[{condition}]').strip().rstrip('.')}",
            step=step,
            remedy="correct the expression",
            location=location,
        )
    return GraphError(
        f"{what} does not fit the stream: {reason}",
        step=step,
        remedy="correct the expression",
        location=location,
    )


def column(expression: Expr) -> Column:
    """A Column or a SQL expression, as a Column."""
    return F.expr(expression) if isinstance(expression, str) else expression


def expression_text(expression: Expr) -> str:
    """An expression as text: it stands in the graph and decides whether the graph changed."""
    if isinstance(expression, str):
        return expression
    return str(expression).removeprefix("Column<'").removesuffix("'>")


__all__ = ["BuiltJob", "Edge", "Node", "Plan", "analysed", "column", "expression_text"]
