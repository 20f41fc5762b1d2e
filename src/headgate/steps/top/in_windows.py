"""A top step in windows: the first rows of each key and window, once, when the window closes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql.types import IntegerType, StructField, StructType, TimestampType

from headgate import jvm
from headgate.base.errors import GraphError, user_location
from headgate.compile.keys import key_columns
from headgate.compile.order import TIE, place, with_ties
from headgate.compile.rows import union_of
from headgate.connectors.base import Expr
from headgate.graph.analysis import column, expression_text
from headgate.graph.carried import Carrying, check_carried
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import EVENT_TIME, POSITION, PREFIX
from headgate.graph.operation import Fit, Operation, Shape
from headgate.graph.plan import Node
from headgate.graph.port import KeyedPort
from headgate.steps.top.declared import RANK, UNKEYED, checked_order, other_order

_TIMES = [StructField("window_start", TimestampType()), StructField("window_end", TimestampType())]
_LATE = "__hg_late"


@dataclass(frozen=True)
class RowWindows:
    """Windows that rows are in: tumbling or sliding ones of event time, with their config."""

    window: Mapping[str, Any]
    text: str

    def spec(self, step: str) -> dict[str, Any]:
        """What the kernel reads of them: they speak once, and are closed then."""
        times = {"size": "size_us", "slide": "every_us", "offset": "offset_us"}
        return {
            "step": step,
            **{name: self.window[field] for name, field in times.items()},
            "session": False,
            "processing": False,
            "lateness": 0,
            "discarding": False,
            **{"every": 0, "clock": 0, "after_count": 0, "once": []},
        }

    @property
    def overlap(self) -> bool:
        """Whether a row may be in several windows."""
        return bool(self.window["size_us"] != self.window["every_us"])


@dataclass(frozen=True)
class WindowTopStep(Operation):
    """The first `n` rows of each key and window."""

    within: RowWindows
    key: tuple[str, ...]
    n: int
    by: tuple[Expr, ...]
    kind = "window_top"
    shape = Shape.STATEFUL

    @property
    def needs(self) -> tuple[str, ...]:
        return (EVENT_TIME, POSITION)

    @property
    def by_event_time(self) -> bool:
        return True

    def config(self) -> Mapping[str, Any]:
        by = [expression_text(b) for b in self.by]
        window = dict(self.within.window)
        return {"window": window, "key": list(self.key), "n": self.n, "by": by}

    def labels(self) -> Mapping[str, str]:
        by = ", ".join(expression_text(b) for b in self.by)
        key = ", ".join(self.key)
        return {"window": self.within.text, "key": key, "n": str(self.n), "by": by}

    def keys(self, input: int) -> tuple[Expr, ...]:
        return self.key

    def check_carried(self, rows: Carrying, output: str, name: str) -> None:
        if rows.may_lack:
            return
        top = rows.node.step.id
        if name != EVENT_TIME:
            raise rows.lost(
                f"the rows of '{top}' have no order in which they could be counted",
                "use a window of time",
            )
        if output != "out":
            raise rows.lost(
                f"the late rows of '{top}' are behind the watermark already",
                "use a longer out_of_orderness in the source's event_time",
            )

    def input_rows(self, node: Node, input: int, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
        own = [jvm.quoted(c) for c in rows.columns if not c.startswith(PREFIX)]
        made = [k for k in keys if k.startswith(PREFIX)]
        return jvm.select(rows, [*own, *made, EVENT_TIME, *place(rows)])

    def frame(self, job: Compiling, node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
        stream = union_of(with_ties(list(inputs)))
        keys, names = key_columns(self.key, stream.schema), list(self.key)
        if not keys:
            stream, keys, names = jvm.unkeyed(stream, UNKEYED), [UNKEYED], [UNKEYED]
        if self.within.overlap:
            # the kernel gets such a row once for each window
            stream = jvm.count(stream, node.step.id, "records_in")
        beside = {*self.key, RANK, *(field.name for field in _TIMES)}
        wanted = job.is_read(node.step.id, "late")
        return jvm.window_top(
            stream,
            spec=self.within.spec(node.step.id),
            n=self.n,
            keys=keys,
            names=names,
            time=EVENT_TIME,
            row=[c for c in node.schemas["out"].names if c not in beside],
            place=[POSITION, TIE] if TIE in stream.columns else [POSITION],
            by=[column(b) for b in self.by],
            rank=RANK,
            late_row=node.schemas["late"].names if wanted else None,
            late=_LATE,
        )

    def outputs(
        self, job: Compiling, node: Node, base: DataFrame, carried: Sequence[str]
    ) -> dict[str, DataFrame]:
        columns = [jvm.quoted(c) for c in [*node.schemas["out"].names, *carried]]
        if _LATE not in base.columns:
            return {"out": jvm.select(base, columns)}
        parts = [jvm.quoted(_LATE, c, alias=c) for c in node.schemas["late"].names]
        return {
            "out": jvm.select(base, columns, where=f"{_LATE} IS NULL"),
            "late": jvm.select(base, parts, where=f"{_LATE} IS NOT NULL"),
        }

    @classmethod
    def fits(cls, old: Mapping[str, Any], new: Mapping[str, Any], gains: Sequence[str]) -> Fit:
        if old["window"] != new["window"]:
            return Fit(("its windows are others, and what is kept has the ends of the old ones",))
        if problem := other_order(old, new):
            return Fit((problem,))
        if old["n"] < new["n"]:
            return Fit(
                note=f"rows behind the first {old['n']} were not kept: open windows may lack some"
            )
        return Fit()


def add_window_top(
    keyed: KeyedPort, name: str, n: int, by: Sequence[Expr], within: RowWindows
) -> Node:
    """Write a top step in windows down."""
    port, plan = keyed.port, keyed.port.plan
    fields = checked_order(keyed, name, n, by)
    for taken in (field.name for field in _TIMES):
        if taken in port.columns:
            raise GraphError(
                f"the rows must not have a column '{taken}', which is one of the result's",
                step=name,
                got=", ".join(port.columns),
                remedy=f"rename it first, with select('... AS first_{taken}')",
                location=user_location(),
            )
    check_carried(plan, port.node, port.output, name, EVENT_TIME)
    check_carried(plan, port.node, port.output, name, POSITION, may_lack=True)
    key = tuple(field.name for field in fields)
    rest = [f for f in port.schema.fields if f.name not in key]
    schema = StructType([*fields, *_TIMES, StructField(RANK, IntegerType()), *rest])
    key_text = ", ".join(field.dataType.simpleString() for field in fields)
    return plan.add(
        name,
        WindowTopStep(within, key, n, tuple(by)),
        {"out": schema, "late": port.schema},
        inputs=[port.edge],
        outputs=("out", "late"),
        state_schema=f"({key_text}) -> {StructType(rest).simpleString()}",
        state_key=key,
    )
