"""A top step: the first rows of each key in an order, as changes by key and rank."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StructField, StructType

from headgate import jvm
from headgate.compile.keys import key_columns
from headgate.compile.order import TIE, place, with_ties
from headgate.compile.rows import union_of
from headgate.connectors.base import Expr
from headgate.graph.analysis import column, expression_text
from headgate.graph.carried import Carrying, check_carried
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import DELETED, POSITION, PREFIX
from headgate.graph.operation import Fit, Operation, Shape
from headgate.graph.plan import Node, changes_refused
from headgate.graph.port import KeyedPort, Port
from headgate.steps.top.declared import RANK, UNKEYED, checked_order, other_order, wrong


@dataclass(frozen=True)
class TopStep(Operation):
    """The first `n` rows of a key; `replaced_by` is the key of the rows if they are changes."""

    key: tuple[str, ...]
    n: int
    by: tuple[Expr, ...]
    replaced_by: tuple[str, ...] | None
    kind = "top"
    shape = Shape.STATEFUL

    @property
    def needs(self) -> tuple[str, ...]:
        return (POSITION,)

    @property
    def takes_changes(self) -> bool:
        return True

    def config(self) -> Mapping[str, Any]:
        by = [expression_text(b) for b in self.by]
        replaced = None if self.replaced_by is None else list(self.replaced_by)
        return {"key": list(self.key), "n": self.n, "by": by, "replaced_by": replaced}

    def labels(self) -> Mapping[str, str]:
        by = ", ".join(expression_text(b) for b in self.by)
        return {"key": ", ".join(self.key), "n": str(self.n), "by": by}

    def keys(self, input: int) -> tuple[Expr, ...]:
        return self.key

    def check_carried(self, rows: Carrying, output: str, name: str) -> None:
        if not rows.may_lack:
            raise changes_refused(rows.node.step.id, rows.step)

    def input_rows(self, node: Node, input: int, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
        own = [jvm.quoted(c) for c in rows.columns if not c.startswith(PREFIX)]
        made = [k for k in keys if k.startswith(PREFIX)]
        deleted = [DELETED] if DELETED in rows.columns else []
        return jvm.select(rows, [*own, *made, *deleted, *place(rows)])

    def frame(self, job: Compiling, node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
        stream = union_of(with_ties(list(inputs)))
        keys, names = key_columns(self.key, stream.schema), list(self.key)
        if not keys:
            stream, keys, names = jvm.unkeyed(stream, UNKEYED), [UNKEYED], [UNKEYED]
        return jvm.top(
            stream,
            step=node.step.id,
            n=self.n,
            keys=keys,
            names=names,
            ids=self.replaced_by or (),
            row=[c for c in node.schemas["out"].names if c != RANK],
            place=[POSITION, TIE] if TIE in stream.columns else [POSITION],
            by=[column(b) for b in self.by],
            rank=RANK,
            deleted=DELETED,
        )

    def outputs(
        self, job: Compiling, node: Node, base: DataFrame, carried: Sequence[str]
    ) -> dict[str, DataFrame]:
        names = node.schemas["out"].names
        return {"out": jvm.select(base, [jvm.quoted(c) for c in [*names, DELETED]])}

    @classmethod
    def fits(cls, old: Mapping[str, Any], new: Mapping[str, Any], gains: Sequence[str]) -> Fit:
        if problem := other_order(old, new):
            return Fit((problem,))
        if old["replaced_by"] != new["replaced_by"]:
            was, now = (", ".join(c["replaced_by"] or ["nothing"]) for c in (old, new))
            return Fit((f"what its rows are replaced by was {was} and is {now}",))
        if old["replaced_by"] is None and old["n"] < new["n"]:
            return Fit(note=f"rows behind the first {old['n']} were not kept: ranks fill up again")
        if old["n"] > new["n"]:
            return Fit(note=f"ranks behind {new['n']} that are out stay as they are")
        return Fit()


def add_top(keyed: KeyedPort, name: str, n: int, by: Sequence[Expr]) -> Node:
    """Write a top step down."""
    port, plan = keyed.port, keyed.port.plan
    fields = checked_order(keyed, name, n, by)
    key = tuple(field.name for field in fields)
    _check_changes(port, name, key)
    check_carried(plan, port.node, port.output, name, POSITION, may_lack=True)
    rest = [f for f in port.schema.fields if f.name not in key]
    schema = StructType([*fields, StructField(RANK, IntegerType()), *rest])
    key_text = ", ".join(field.dataType.simpleString() for field in fields)
    return plan.add(
        name,
        TopStep(key, n, tuple(by), port.changes),
        {"out": schema},
        inputs=[port.edge],
        state_schema=f"({key_text}) -> {port.schema.simpleString()}",
        state_key=key,
        changes=(*key, RANK),
    )


def _check_changes(port: Port, step: str, key: tuple[str, ...]) -> None:
    """A change is found again only if its row can never have been in another key's."""
    changes = port.changes
    if changes is not None and (not changes or not set(key) <= set(changes)):
        raise wrong(
            step,
            f"the rows of '{port.node.step.id}' are changes by {', '.join(changes) or 'nothing'}:"
            " the key of a top step over them must be made of these columns",
            ", ".join(key),
            "use fewer columns, or key_by() for the first of all rows",
        )
