"""A dedupe step: the first row of each key passes, later ones leave by a side output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal, TypeAlias

from pyspark.sql import DataFrame

from headgate import jvm
from headgate.base.durations import Duration, parse_duration, spell_duration
from headgate.base.errors import GraphError, user_location
from headgate.compile.order import TIE, place, time_of, with_ties
from headgate.compile.rows import union_of
from headgate.connectors.base import Expr
from headgate.graph.carried import check_carried, has_carried
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import EVENT_TIME, POSITION, PREFIX
from headgate.graph.keys import key_fields, other_key, written_keys
from headgate.graph.operation import Fit, Operation, Shape
from headgate.graph.plan import Node
from headgate.graph.port import KeyedPort

Clock: TypeAlias = Literal["event", "processing"]
_KEY = "__hg_key"
_DUPLICATE = "__hg_duplicate"


@dataclass(frozen=True)
class DedupeStep(Operation):
    """The first row of each key; `clock` says by which time keys are forgotten."""

    key: tuple[Expr, ...]
    names: tuple[str, ...]
    within: timedelta | None
    clock: Clock
    kind = "dedupe"
    shape = Shape.STATEFUL

    @property
    def needs(self) -> tuple[str, ...]:
        return (EVENT_TIME, POSITION)

    def config(self) -> Mapping[str, Any]:
        within = None if self.within is None else self.within // timedelta(milliseconds=1)
        return {
            "key": list(self.names),
            "written": written_keys({"": self.key}, self.names).get(""),
            "within_ms": within,
            "clock": self.clock,
        }

    def labels(self) -> Mapping[str, str]:
        kept = "for ever"
        if self.within is not None:
            kept = f"{spell_duration(self.within)} of {self.clock} time"
        return {"key": ", ".join(self.names), "within": kept}

    def keys(self, input: int) -> tuple[Expr, ...]:
        return self.key

    def input_rows(self, node: Node, input: int, rows: DataFrame, keys: Sequence[str]) -> DataFrame:
        own = [jvm.quoted(name) for name in rows.columns if not name.startswith(PREFIX)]
        made = [jvm.quoted(k, alias=f"{_KEY}{n}") for n, k in enumerate(keys)]
        return jvm.select(rows, [*own, *made, *place(rows), time_of(rows)])

    def frame(self, job: Compiling, node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
        stream = union_of(with_ties(list(inputs)))
        # rows without a position come by time: a replayed batch gets its blocks in another order
        ties = [EVENT_TIME, TIE] if TIE in stream.columns else []
        return jvm.dedupe(
            stream,
            step=node.step.id,
            keys=[f"{_KEY}{n}" for n in range(len(self.names))],
            order=[POSITION, *ties],
            time=EVENT_TIME if self.clock == "event" else None,
            within=0 if self.within is None else self.within // timedelta(microseconds=1),
            mark=_DUPLICATE,
        )

    def outputs(
        self, job: Compiling, node: Node, base: DataFrame, carried: Sequence[str]
    ) -> dict[str, DataFrame]:
        columns = [jvm.quoted(c) for c in [*node.schemas["out"].names, *carried]]
        found = {"out": f"NOT {_DUPLICATE}", "duplicates": _DUPLICATE}
        return {
            output: jvm.select(base, columns, where=where)
            for output, where in found.items()
            if job.is_read(node.step.id, output)
        }

    @property
    def passing_columns(self) -> tuple[str, ...]:
        return ("first_time",) if self.clock == "processing" else ()

    @classmethod
    def fits(cls, old: Mapping[str, Any], new: Mapping[str, Any], gains: Sequence[str]) -> Fit:
        was, now = ({"": config["written"] or config["key"]} for config in (old, new))
        if old["clock"] != new["clock"]:
            clocks = f"it went by {old['clock']} time and goes by {new['clock']} time"
            return Fit((f"{clocks}, and keys are kept with the time of the old clock",))
        return Fit(note=other_key(was, now))


def add_dedupe(keyed: KeyedPort, name: str, within: Duration | None) -> Node:
    """Write a dedupe step down."""
    port, plan = keyed.port, keyed.port.plan
    plan.check_name(name, "dedupe")
    if not keyed.keys:
        raise GraphError(
            "a dedupe step needs a key",
            step=name,
            remedy='name the columns that make a row one of its kind: stream.key_by("id")',
            location=user_location(),
        )
    kept = None if within is None else parse_duration(within, what="within")
    if kept is not None and (kept <= timedelta(0) or kept.microseconds % 1000):
        raise GraphError(
            "within must be a whole number of milliseconds above 0",
            step=name,
            got=repr(within),
            remedy='give a duration such as "1 hour", or leave it out',
            location=user_location(),
        )
    check_carried(plan, port.node, port.output, name, POSITION, may_lack=True)
    timed = has_carried(plan, port.node, port.output, EVENT_TIME)
    fields = key_fields(plan, port.prototype(), keyed.keys, name)
    names = tuple(field.name for field in fields)
    key_text = ", ".join(field.dataType.simpleString() for field in fields)
    return plan.add(
        name,
        DedupeStep(keyed.keys, names, kept, "event" if timed else "processing"),
        {"out": port.schema, "duplicates": port.schema},
        inputs=[port.edge],
        outputs=("out", "duplicates"),
        state_schema=f"({key_text}) -> first_time timestamp",
        state_key=names,
    )
