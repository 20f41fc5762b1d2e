"""A running aggregate: the aggregates of all rows of each key so far, as changes by the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructType

from headgate import jvm
from headgate.base.durations import Duration
from headgate.base.errors import GraphError, user_location
from headgate.compile.keys import key_columns
from headgate.compile.rows import union_of
from headgate.connectors.base import Expr
from headgate.graph.aggregates import results
from headgate.graph.analysis import analysed, column, expression_text
from headgate.graph.carried import Carrying, has_carried
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import DELETED, EVENT_TIME, PREFIX
from headgate.graph.keys import key_fields, other_key, written_keys
from headgate.graph.operation import Fit, Operation, Shape
from headgate.graph.plan import Node, Plan, changes_refused
from headgate.graph.port import KeyedPort
from headgate.steps.aggregate.times import Emit, Kept, fit_of, kept_of

_ALL = "__hg_all"  # the key of all rows where there is none
_US = timedelta(microseconds=1)


@dataclass(frozen=True)
class AggregateStep(Operation):
    """Rows of a key aggregated for as long as the key is kept."""

    key: tuple[Expr, ...]
    names: tuple[str, ...]
    aggregates: tuple[Column, ...]
    having: Expr | None
    emit: Emit | None
    kept: Kept | None
    kind = "aggregate"
    shape = Shape.STATEFUL

    @property
    def needs(self) -> tuple[str, ...]:
        return (EVENT_TIME,) if self._by_event_time else ()

    @property
    def _by_event_time(self) -> bool:
        """Whether keys are forgotten by the event time of their rows."""
        return self.kept is not None and self.kept.clock == "event"

    def config(self) -> Mapping[str, Any]:
        return {
            "key": list(self.names),
            "written": written_keys({"": self.key}, self.names).get(""),
            "aggregates": [expression_text(a) for a in self.aggregates],
            "having": None if self.having is None else expression_text(self.having),
            "emit": None if self.emit is None else self.emit.config(),
            "ttl": None if self.kept is None else self.kept.config(),
        }

    def labels(self) -> Mapping[str, str]:
        labels = {
            "key": ", ".join(self.names),
            "aggregates": ", ".join(expression_text(a) for a in self.aggregates),
            "emit": "each batch" if self.emit is None else str(self.emit),
            "ttl": "for ever" if self.kept is None else str(self.kept),
        }
        if self.having is not None:
            labels["having"] = expression_text(self.having)
        return labels

    def keys(self, input: int) -> tuple[Expr, ...]:
        return self.key

    @property
    def ends_with_time(self) -> bool:
        return self.emit is not None

    @property
    def needs_ticks(self) -> bool:
        return self.emit is not None or self.kept is not None

    def check_carried(self, rows: Carrying, output: str, name: str) -> None:
        if not rows.may_lack:
            raise changes_refused(rows.node.step.id, rows.step)

    def frame(self, job: Compiling, node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
        stream = jvm.count(union_of(inputs), node.step.id, "records_in")
        keys, names = key_columns(self.key, stream.schema), list(self.names)
        if not keys:
            stream, keys, names = jvm.unkeyed(stream, _ALL), [_ALL], [_ALL]
        every, clock = (
            self.emit.interval // _US if self.emit and self.emit.clock == by else 0
            for by in ("event", "processing")
        )
        return jvm.aggregate(
            stream,
            spec={
                "step": node.step.id,
                "ttl": 0 if self.kept is None else self.kept.length // _US,
                "by_event_time": self._by_event_time,
                "every": every,
                "clock": clock,
            },
            keys=keys,
            names=names,
            time=EVENT_TIME if self._by_event_time else None,
            aggregates=self.aggregates,
            having=None if self.having is None else column(self.having),
            deleted=DELETED,
        )

    def outputs(
        self, job: Compiling, node: Node, base: DataFrame, carried: Sequence[str]
    ) -> dict[str, DataFrame]:
        names = node.schemas["out"].names
        return {"out": base.select(*[F.col(f"`{c}`") for c in [*names, DELETED]])}

    @property
    def passing_columns(self) -> tuple[str, ...]:
        clock = self.kept is not None and self.kept.clock == "processing"
        return ("expires",) if clock else ()

    @classmethod
    def fits(cls, old: Mapping[str, Any], new: Mapping[str, Any], gains: Sequence[str]) -> Fit:
        fit = fit_of(old, new)
        was, now = ({"": config["written"] or config["key"]} for config in (old, new))
        notes = [other_key(was, now), fit.note]
        if old["having"] != new["having"]:
            notes.append("the new having holds for a key from its next rows on")
        return Fit(fit.conflicts, "; ".join(filter(None, notes)))


def add_aggregate(
    keyed: KeyedPort,
    name: str,
    aggregates: Sequence[Column],
    *,
    emit: tuple[timedelta, bool] | None,
    having: Expr | None,
    ttl: Duration | None,
) -> Node:
    """Write a running aggregate down; `emit` is an interval, and whether it is of event time."""
    port, plan = keyed.port, keyed.port.plan
    plan.check_name(name, "aggregate")
    if port.changes is not None:
        raise changes_refused(port.node.step.id, name, AggregateStep.kind)
    timed = has_carried(plan, port.node, port.output, EVENT_TIME)
    prototype = port.prototype()
    fields = key_fields(plan, prototype, keyed.keys, name)
    made, _ = results(plan, prototype, aggregates, name, "an aggregate step", ordered=False)
    schema = StructType([*fields, *made])
    _check_names(name, schema)
    if having is not None:
        _check_having(plan, name, schema, having)
    names = tuple(field.name for field in fields)
    rhythm = None
    if emit is not None:
        rhythm = Emit(emit[0], "event" if emit[1] and timed else "processing")
    kept = kept_of(name, ttl, timed=timed)
    key_text = ", ".join(field.dataType.simpleString() for field in fields)
    return plan.add(
        name,
        AggregateStep(keyed.keys, names, tuple(aggregates), having, rhythm, kept),
        {"out": schema},
        inputs=[port.edge],
        state_schema=f"({key_text}) -> {StructType(made).simpleString()}",
        state_key=names,
        changes=names,
    )


def _check_names(step: str, schema: StructType) -> None:
    seen: set[str] = set()
    for name in schema.names:
        if name.startswith(PREFIX) or name.lower() in seen:
            raise GraphError(
                f"the results would have a column '{name}', which "
                + ("is one of Headgate's own" if name.startswith(PREFIX) else "is there already"),
                step=step,
                remedy="give the key or the aggregate another alias",
                location=user_location(),
            )
        seen.add(name.lower())


def _check_having(plan: Plan, step: str, schema: StructType, having: Expr) -> None:
    if not isinstance(having, str | Column):
        raise GraphError(
            "having must be a condition, in SQL or as a Column",
            step=step,
            got=repr(having),
            remedy='for instance having="total > 10"',
            location=user_location(),
        )
    made, prototype = column(having), plan.prototype(schema)
    typed = analysed(
        prototype, step, lambda df: df.select(made.alias("c")), "having (over the results)"
    )
    plan.note_changing(step, typed)
    if not jvm.is_chain(prototype, typed) or typed.schema["c"].dataType != BooleanType():
        raise GraphError(
            "having must be a BOOLEAN over the key and the aggregates' names",
            step=step,
            got=expression_text(having),
            remedy='compare them, for instance having="total > 10"',
            location=user_location(),
        )
