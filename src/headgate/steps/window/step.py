"""A window step: a keyed stream's rows aggregated by time or by their number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import (
    BooleanType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headgate import jvm
from headgate.base.durations import Duration, parse_duration, spell_duration
from headgate.base.errors import GraphError, user_location
from headgate.compile.keys import key_columns
from headgate.compile.rows import union_of
from headgate.connectors.base import Expr
from headgate.graph.aggregates import results
from headgate.graph.analysis import column, expression_text
from headgate.graph.carried import Carrying, check_carried
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import EVENT_TIME, POSITION
from headgate.graph.keys import key_fields, other_key, written_keys
from headgate.graph.letters import Letters, literal
from headgate.graph.operation import Fit, Operation, Shape
from headgate.graph.plan import Node
from headgate.graph.port import KeyedPort
from headgate.steps.window import format_1
from headgate.steps.window.declared import check_names, micros, trigger_spec, wrong
from headgate.steps.window.kinds import CountWindow, Every, TimeWindow, Trigger, Window

Panes = Literal["accumulating", "discarding"]
_TIMES = [StructField("window_start", TimestampType()), StructField("window_end", TimestampType())]
_PANE = [
    StructField("is_partial", BooleanType()),
    StructField("fired_by", StringType()),
    StructField("pane", IntegerType()),
]
_LATE = "__hg_late"
_ALL = "__hg_all"  # the key of windows without a key


@dataclass(frozen=True)
class WindowStep(Operation):
    """Rows of a key and window aggregated; `triggers` is what the kernel reads of them."""

    window: Window
    key: tuple[Expr, ...]
    names: tuple[str, ...]
    aggregates: tuple[Column, ...]
    early: tuple[Trigger, ...]
    lateness: timedelta
    panes: Panes
    triggers: Mapping[str, Any]
    conditions: tuple[Expr, ...]
    ordered: bool = False
    """Whether an aggregate depends on the places of rows."""
    kind = "window"
    shape = Shape.STATEFUL

    @property
    def counts(self) -> bool:
        """Whether windows are of so many rows, whatever their time."""
        return isinstance(self.window, CountWindow)

    @property
    def processing(self) -> bool:
        """Whether windows are of processing time."""
        return isinstance(self.window, TimeWindow) and self.window.clock == "processing"

    @property
    def needs(self) -> tuple[str, ...]:
        if self.counts:
            return (EVENT_TIME, POSITION)
        time = () if self.processing else (EVENT_TIME,)
        return (*time, POSITION) if self.ordered else time

    def config(self) -> Mapping[str, Any]:
        return {
            "window": self.window.config(),
            "key": list(self.names),
            "written": written_keys({"": self.key}, self.names).get(""),
            "aggregates": [expression_text(a) for a in self.aggregates],
            "early": [trigger.config() for trigger in self.early],
            "allowed_lateness_ms": self.lateness // timedelta(milliseconds=1),
            "panes": self.panes,
        }

    def labels(self) -> Mapping[str, str]:
        return {
            "window": str(self.window),
            "key": ", ".join(self.names),
            "aggregates": ", ".join(expression_text(a) for a in self.aggregates),
            "early": ", ".join(map(str, self.early)),
            "allowed_lateness": spell_duration(self.lateness),
            "panes": self.panes,
        }

    def keys(self, input: int) -> tuple[Expr, ...]:
        return self.key

    @property
    def by_event_time(self) -> bool:
        return not self.counts and not self.processing

    @property
    def ends_with_time(self) -> bool:
        return True

    def check_carried(self, rows: Carrying, output: str, name: str) -> None:
        if rows.may_lack:
            return
        window = rows.node.step.id
        if name != EVENT_TIME:
            raise rows.lost(
                f"the rows of the window '{window}' have no order in which they could be counted",
                "use a window of time",
            )
        if self.processing:
            raise rows.lost(
                f"the rows of the window '{window}' have no event time: its windows are of "
                "processing time",
                "use a window of event time there, or one of processing time here",
            )
        if output != "out":
            raise rows.lost(
                f"the late rows of '{window}' are behind the watermark already",
                "use a longer allowed_lateness there",
            )
        if self.counts:  # its rows have the time of the last that it counted
            rows.strictly().check_input(0, name)

    def letters(self, output: str) -> Letters | None:
        if output != "late":
            return None
        why = "the windows of the row had closed when it came, or it has no event time"
        return Letters("LATE_ROW", literal(why), self.key)

    def frame(self, job: Compiling, node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
        """Results, and late rows if anything reads them."""
        for hidden in (EVENT_TIME, POSITION):  # what only some of the rows have
            if not all(hidden in rows.columns for rows in inputs):
                inputs = [rows.drop(hidden) for rows in inputs]
        stream = union_of(inputs)
        keys, names = key_columns(self.key, stream.schema), list(self.names)
        if not keys:
            stream, keys, names = jvm.unkeyed(stream, _ALL), [_ALL], [_ALL]
        spec = self._spec(node.step.id)
        if isinstance(self.window, CountWindow):
            return jvm.count_window(
                stream,
                spec=spec,
                keys=keys,
                names=names,
                position=POSITION,
                time=EVENT_TIME,
                aggregates=self.aggregates,
            )
        if spec["slide"] != spec["size"]:
            # the kernel gets such a row once for each window
            stream = jvm.count(stream, node.step.id, "records_in")
        wanted = "late" in node.step.outputs and job.is_read(node.step.id, "late")
        return jvm.window(
            stream,
            spec=spec,
            keys=keys,
            names=names,
            time=EVENT_TIME,
            position=POSITION,
            aggregates=self.aggregates,
            conditions=[column(c) for c in self.conditions],
            late_row=node.schemas["late"].names if wanted else None,
            late=_LATE,
        )

    def _spec(self, step: str) -> dict[str, Any]:
        """What the kernel reads of the windows."""
        window = self.window
        if isinstance(window, CountWindow):
            return {"step": step, "size": window.size, "every": window.every}
        assert isinstance(window, TimeWindow)
        return {
            "step": step,
            "session": window.session,
            "size": micros(window.size),
            "slide": micros(window.every),
            "offset": micros(window.offset),
            "lateness": micros(self.lateness),
            "discarding": self.panes == "discarding",
            "processing": self.processing,
            **self.triggers,
        }

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
        if other := _other_windows(old, new):
            return Fit(conflicts=(other,))
        was, now = ({"": config["written"] or config["key"]} for config in (old, new))
        return Fit(note=other_key(was, now))

    @classmethod
    def config_1(cls, detail: Mapping[str, str]) -> dict[str, Any]:
        return format_1.config_of(detail)

    @classmethod
    def detail_1(cls, address: str, config: Mapping[str, Any]) -> dict[str, str] | None:
        return format_1.detail_of(config)


def _other_windows(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """Why windows that were kept cannot go on, if so."""
    if old["window"] != new["window"]:
        # what is kept has the ends of the old windows
        was, now = (Window.of(config["window"]) for config in (old, new))
        return f"its windows were {was} and are {now}"
    if old["panes"] != new["panes"]:
        # what an early row has shown already is still in the state, or is not any more
        return f"its panes were {old['panes']} and are {new['panes']}"
    before, after = (timedelta(milliseconds=c["allowed_lateness_ms"]) for c in (old, new))
    if before < after:
        # a late row would open a window again whose rows are gone, and give it a second time
        return (
            f"its allowed_lateness was {spell_duration(before)} and is {spell_duration(after)}, "
            "so windows that were closed would begin again"
        )
    return None


def _check_by_clock(step: str, triggers: Sequence[Trigger], lateness: timedelta) -> None:
    """Refuse what windows of processing time cannot have."""
    if lateness:
        raise GraphError(
            "no row is late for a window of processing time",
            step=step,
            got=f"allowed_lateness={spell_duration(lateness)!r}",
            remedy="leave allowed_lateness out",
            location=user_location(),
        )
    if any(isinstance(trigger, Every) and trigger.clock == "event" for trigger in triggers):
        raise GraphError(
            "early rows of a window of processing time must go by the same clock",
            step=step,
            remedy="write hg.every(..., clock='processing')",
            location=user_location(),
        )


def add_window(
    keyed: KeyedPort,
    name: str,
    window: Window,
    aggregates: Sequence[Column],
    early: Trigger | Sequence[Trigger],
    allowed_lateness: Duration,
    panes: Panes,
) -> Node:
    """Write a window step down."""
    port, plan = keyed.port, keyed.port.plan
    plan.check_name(name, "window")
    if not isinstance(window, TimeWindow | CountWindow):
        raise wrong(
            name,
            "window must be hg.tumbling(...), hg.sliding(...), hg.session(...) or "
            "hg.count_window(...)",
            window,
            'for instance hg.tumbling("5 minutes")',
        )
    if panes not in ("accumulating", "discarding"):
        raise wrong(
            name,
            "panes must be 'accumulating' or 'discarding'",
            panes,
            "'accumulating' gives all rows so far, 'discarding' only those since the last pane",
        )
    lateness = parse_duration(allowed_lateness, what="allowed_lateness")
    if not isinstance(early, Trigger | list | tuple):
        raise wrong(
            name,
            "early must be a trigger or a list of triggers",
            early,
            'for instance hg.every("1 minute")',
        )
    triggers = [early] if isinstance(early, Trigger) else list(early)
    if isinstance(window, CountWindow):
        if triggers or lateness or panes != "accumulating":
            raise GraphError(
                "a count window gives its row when it is full, and has no early or late rows",
                step=name,
                remedy="leave early, allowed_lateness and panes out",
                location=user_location(),
            )
        check_carried(plan, port.node, port.output, name, POSITION)
    elif window.clock == "processing":
        _check_by_clock(name, triggers, lateness)
    else:
        check_carried(plan, port.node, port.output, name, EVENT_TIME)
    prototype = port.prototype()
    fields = key_fields(plan, prototype, keyed.keys, name)
    made, ordered = results(plan, prototype, aggregates, name, "a window")
    if ordered:
        check_carried(plan, port.node, port.output, name, POSITION, may_lack=True)
    spec, conditions = trigger_spec(plan, name, triggers, made)
    schema = StructType([*fields, *_TIMES, *made, *_PANE])
    check_names(name, schema)
    names = tuple(f.name for f in fields)
    operation = WindowStep(
        window, keyed.keys, names, tuple(aggregates), tuple(triggers), lateness, panes, spec,
        conditions, ordered,
    )  # fmt: skip
    key_text = ", ".join(f.dataType.simpleString() for f in fields)
    return plan.add(
        name,
        operation,
        {"out": schema, "late": port.schema},
        inputs=[port.edge],
        outputs=("out", "late") if operation.by_event_time else ("out",),
        state_schema=f"({key_text}) -> {StructType(made).simpleString()}",
        state_key=names,
    )
