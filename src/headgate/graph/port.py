"""Port: an output of a step, at which the next step is attached."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from headgate.connectors.base import Expr
from headgate.graph.model import Edge
from headgate.graph.plan import Node, Plan


@dataclass(frozen=True)
class Port:
    """The rows of an output of a step."""

    plan: Plan
    node: Node
    output: str = "out"

    @property
    def step(self) -> str:
        """The step that gives the rows."""
        return self.node.step.id

    @property
    def schema(self) -> StructType:
        """Their columns."""
        return self.node.schemas[self.output]

    @property
    def columns(self) -> list[str]:
        """The names of their columns."""
        return self.schema.names

    @property
    def changes(self) -> tuple[str, ...] | None:
        """If they are changes: the columns by which one replaces another."""
        return self.node.changes_of(self.output)

    @property
    def edge(self) -> Edge:
        """The rows as an input of another step."""
        return Edge(self.node.step.id, self.output)

    def prototype(self) -> DataFrame:
        """An empty stream with their columns, on which expressions are checked."""
        return self.plan.prototype(self.schema)


@dataclass(frozen=True)
class KeyedPort:
    """Rows with the expressions by which they are grouped."""

    port: Port
    keys: tuple[Expr, ...]
