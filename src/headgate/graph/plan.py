"""A job while it is being written down: the graph's steps beside what each of them does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate import jvm
from headgate.base.errors import GraphError, user_location
from headgate.base.secrets import protect_settings, redact
from headgate.graph.model import Edge, Graph, Step, operator_id
from headgate.graph.operation import Operation, Shape

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]{0,99}")
_READS = (Shape.ORIGIN, Shape.TABLE)


@dataclass(frozen=True)
class Node:
    """A step with what it does and the columns of each of its outputs."""

    step: Step
    operation: Operation
    schemas: Mapping[str, StructType]
    changes: tuple[str, ...] | None = None
    """If the rows of its output are changes: the columns by which one replaces another."""

    def changes_of(self, output: str) -> tuple[str, ...] | None:
        """The same for one of its outputs: what goes aside is no change."""
        return self.changes if output == "out" else None


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

    def of_shape(self, *shapes: Shape) -> tuple[Node, ...]:
        """The nodes of these shapes, in the order in which they were written."""
        return tuple(n for n in self.nodes if n.operation.shape in shapes)


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
    collects: bool = False
    """Whether the job has a topic for dead letters."""
    changing: dict[str, str] = field(default_factory=dict)
    """Steps with an expression that gives another value when a batch is replayed."""

    def node(self, id: str) -> Node:
        """The node of a step."""
        return next(n for n in self.nodes if n.step.id == id)

    def check_name(self, name: str, kind: str) -> None:
        """Refuse a step name that is not valid, taken, or whose state would collide."""
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise GraphError(
                f"the name of a {kind} must be a letter, then letters, digits, '_', '-' or '.', "
                "at most 100 in all",
                got=repr(name),
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

    def add(
        self,
        name: str,
        operation: Operation,
        schemas: Mapping[str, StructType],
        *,
        inputs: Sequence[Edge] = (),
        outputs: Sequence[str] = ("out",),
        schema: StructType | None = None,
        named: bool = True,
        state_schema: str = "",
        state_key: Sequence[str] = (),
        changes: Sequence[str] | None = None,
    ) -> Node:
        """Write a step down.

        `schemas` has the columns of its outputs, `schema` those to show if they are others.
        `changes` is the key of its rows if they are changes.
        """
        step = Step(
            id=name,
            kind=operation.kind,
            role=operation.shape.role,
            named=named,
            inputs=tuple(inputs),
            outputs=tuple(outputs),
            schema=(schemas["out"] if schema is None else schema).simpleString(),
            stateful=operation.shape is Shape.STATEFUL,
            state_schema=state_schema,
            state_key=tuple(state_key),
            state_view=operation.state_view,
            address=operation.address,
            config=operation.config(),
            config_version=operation.config_version,
            labels=operation.labels(),
            one_for_one=operation.one_for_one,
            location=str(user_location()),
        )
        for edge in step.inputs:
            before = self.node(edge.step)
            before.operation.check_reader(before, edge.output, name)
            if before.changes_of(edge.output) is not None and not operation.takes_changes:
                raise changes_refused(edge.step, name, operation.kind)
        protect_settings(_settings(operation))
        node = Node(step, operation, schemas, None if changes is None else tuple(changes))
        self.nodes.append(node)
        return node

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
        sources = tuple(
            n.step.id for n in nodes if n.operation.shape in _READS and not n.step.inputs
        )
        steps, texts = tuple(n.step for n in nodes), tuple(redact(text) for text in warnings)
        return BuiltJob(Graph(self.job, steps, sources, texts), nodes, frozenset(self.secrets))


def changes_refused(changes: str, reader: str, kind: str = "") -> GraphError:
    """The error for a step that would take an update for one more row."""
    what = f"{'an' if kind[0] in 'aeio' else 'a'} {kind} step" if kind else "this step"
    return GraphError(
        f"the rows of '{changes}' are changes: an update replaces the row before it, and"
        f" {what} would take both for rows of their own",
        step=reader,
        remedy="write them to a topic with a key, or read them by a lookup with .as_table(); for"
        f" other results begin with the stream before '{changes}'",
        location=user_location(),
    )


def _settings(operation: Operation) -> Mapping[str, Any]:
    """What a connector was given: addresses and settings, some of them secret."""
    connector = operation.connector
    if connector is None:
        return {}
    return {"address": connector.describe(), **(getattr(connector, "options", None) or {})}
