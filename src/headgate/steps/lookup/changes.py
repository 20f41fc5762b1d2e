"""Changes of the same job as a table: the latest row of each key, without a topic between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate import jvm
from headgate.base.errors import GraphError, user_location
from headgate.compile.rows import union_of
from headgate.connectors.base import Expr
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import POSITION
from headgate.graph.plan import Node
from headgate.graph.port import Port
from headgate.steps.lookup.table import Table, TableOperation


@dataclass(frozen=True)
class ChangesTable(TableOperation):
    """The rows of a stream of changes, by their key."""

    key: tuple[Expr, ...]
    kind = "changes_table"

    @property
    def takes_changes(self) -> bool:
        return True

    def config(self) -> Mapping[str, Any]:
        return {"key": self.key_texts}

    def labels(self) -> Mapping[str, str]:
        return {"key": ", ".join(self.key_texts)}

    def keys(self, input: int) -> tuple[Expr, ...]:
        return self.key

    def frame(self, job: Compiling, node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
        rows = union_of(inputs)
        keys = {
            kept: F.col(f"`{name}`")
            for kept, name in zip(self.key_columns, self.key_texts, strict=True)
        }
        # a batch has at most one change of a key, so none needs a place
        made = rows.withColumns({**keys, POSITION: F.lit(None).cast("long")})
        return jvm.normal_keys(made, list(keys))


def add_changes_table(port: Port, name: str | None) -> Table:
    """Write the table of a stream of changes down."""
    plan, key = port.plan, port.changes or ()
    named = f"{port.step.replace('/', '_')}_table" if name is None else name
    plan.check_name(named, "table")
    if not key:
        raise GraphError(
            "a table must have a key, and these changes have none",
            step=named,
            remedy="give the step before a key: key_by(...)",
            location=user_location(),
        )
    node = plan.add(named, ChangesTable(key), {"out": port.schema}, inputs=[port.edge])
    return Table(plan, node, [port.schema[column].dataType for column in key])
