"""union: the rows of several streams that have the same columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate.base.errors import GraphError, user_location
from headgate.graph.analysis import analysed
from headgate.graph.carried import Carrying
from headgate.graph.hidden import CARRIED
from headgate.graph.operation import Operation, Shape
from headgate.graph.plan import Node
from headgate.graph.port import Port


@dataclass(frozen=True)
class Union(Operation):
    """The rows of all inputs, by column name."""

    kind = "union"
    shape = Shape.STATELESS

    def through(self, node: Node, rows: DataFrame) -> DataFrame:
        """The same columns in the order and with the types of the union."""
        carried = [c for c in CARRIED if c in rows.columns]
        fields = node.schemas["out"].fields
        made = [F.col(f"`{f.name}`").cast(f.dataType).alias(f.name) for f in fields]
        return rows.select(*made, *carried)

    def check_carried(self, rows: Carrying, output: str, name: str) -> None:
        for input in range(len(rows.node.step.inputs)):
            rows.check_input(input, name)

    @classmethod
    def detail_1(cls, address: str, config: Mapping[str, Any]) -> dict[str, str]:
        return {}


def add_union(port: Port, others: Sequence[Port]) -> Node:
    """Write a union down."""
    plan = port.plan
    for other in others:
        if sorted(other.columns) != sorted(port.columns):
            raise GraphError(
                "the streams of a union must have the same columns",
                step=port.step,
                expected=", ".join(port.columns),
                got=", ".join(other.columns),
                remedy="select the same columns first",
                location=user_location(),
            )
    result = port.prototype()
    for other in others:
        following = other.prototype()
        result = analysed(
            result,
            port.step,
            lambda df, o=following: df.unionByName(o),  # type: ignore[misc]
            "a stream of the union",
        )
    return plan.add(
        plan.unnamed(port.step, "union"),
        Union(),
        {"out": result.schema},
        inputs=[port.edge, *(other.edge for other in others)],
        named=False,
    )
