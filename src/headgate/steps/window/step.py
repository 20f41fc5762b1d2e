"""Windows: a keyed stream's rows aggregated by event time, with early, on-time and late rows."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
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
from headgate.api.stream import Stream
from headgate.base.durations import Duration, parse_duration, spell_duration
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr
from headgate.graph import Step
from headgate.graph.carried import check_carried
from headgate.graph.plan import (
    EVENT_TIME,
    LEAD,
    POSITION,
    Plan,
    WindowOp,
    analysed,
    column,
    expression_text,
)
from headgate.steps.window.kinds import (
    AfterCount,
    CountWindow,
    Every,
    TimeWindow,
    Trigger,
    When,
    Window,
)

Panes = Literal["accumulating", "discarding"]
_TIMES = [StructField("window_start", TimestampType()), StructField("window_end", TimestampType())]
_PANE = [
    StructField("is_partial", BooleanType()),
    StructField("fired_by", StringType()),
    StructField("pane", IntegerType()),
]
_ALIAS = re.compile(r" as (`[^`]+`|[^()]+)$", re.IGNORECASE)


class Keyed:
    """A stream with a key: what follows works on the rows of each key by themselves.

    After `key_by()` without a key all rows belong together, and one task works on them.
    """

    def __init__(self, stream: Stream, keys: tuple[Expr, ...]) -> None:
        self._stream = stream
        self._keys = keys

    def window(
        self,
        name: str,
        assigner: Window,
        *aggregates: Column,
        early: Trigger | Sequence[Trigger] = (),
        allowed_lateness: Duration = "0 seconds",
        panes: Panes = "accumulating",
    ) -> Windowed:
        """Aggregate the rows of each key and window.

        Example:

            visits.key_by("page").window(
                "visits_15m", hg.tumbling("15 minutes"), F.count("*").alias("visits"),
                early=hg.every("2 minutes"), allowed_lateness="10 minutes")

        A row has the key, window_start, window_end, the aggregates, is_partial, fired_by and pane.
        When the watermark passes the end, each key and window gives exactly one row with fired_by
        "on_time"; `early` triggers give rows before, and rows that come up to `allowed_lateness`
        after the end give an update each batch (fired_by "late"). What comes later still is in
        `.late`. With panes="discarding" a row has only what came since the row before.
        """
        return add_window(
            self._stream, self._keys, name, assigner, aggregates, early, allowed_lateness, panes
        )


class Windowed(Stream):
    """The rows that windows give."""

    @property
    def late(self) -> Stream:
        """The rows, as they came, that were too late for their window or had no event time."""
        return self.side("late")


def key_by(stream: Stream, keys: tuple[Expr, ...]) -> Keyed:
    """Give a stream a key; without one all rows belong together."""
    prototype = stream._plan.prototype(stream.schema)
    _key_fields(stream._plan, prototype, keys, stream._node.step.id)
    return Keyed(stream, keys)


def add_window(
    stream: Stream,
    keys: tuple[Expr, ...],
    name: str,
    window: Window,
    aggregates: Sequence[Column],
    early: Trigger | Sequence[Trigger],
    allowed_lateness: Duration,
    panes: Panes,
) -> Windowed:
    """Write a window step down."""
    plan = stream._plan
    plan.check_name(name, "window")
    if not isinstance(window, TimeWindow | CountWindow):
        raise _wrong(name, "this is not a kind of window", window, 'use hg.tumbling("5 minutes")')
    if panes not in ("accumulating", "discarding"):
        raise _wrong(name, "panes is not known", panes, "use 'accumulating' or 'discarding'")
    lateness = parse_duration(allowed_lateness, what="allowed_lateness")
    if not isinstance(early, Trigger | list | tuple):
        raise _wrong(name, "early is not a trigger", early, 'use hg.every("1 minute")')
    triggers = [early] if isinstance(early, Trigger) else list(early)
    if isinstance(window, TimeWindow):
        check_carried(plan, stream._node, stream._output, name, EVENT_TIME)
    else:
        if triggers or lateness or panes != "accumulating":
            raise GraphError(
                "a count window is told when it is full, and has no early or late rows",
                step=name,
                remedy="leave early, allowed_lateness and panes out",
                location=user_location(),
            )
        check_carried(plan, stream._node, stream._output, name, POSITION)
    prototype = plan.prototype(stream.schema)
    key_fields = _key_fields(plan, prototype, keys, name)
    results = _results(plan, prototype, aggregates, name)
    spec, conditions = _triggers(plan, name, triggers, results)
    schema = StructType([*key_fields, *_TIMES, *results, *_PANE])
    _check_names(name, schema)
    detail = {
        "window": str(window),
        "key": ", ".join(f.name for f in key_fields),
        "aggregates": ", ".join(expression_text(a) for a in aggregates),
        "early": ", ".join(map(str, triggers)),
        "allowed_lateness": spell_duration(lateness),
        "panes": panes,
        "state_key": json.dumps([f.name for f in key_fields]),
        **key_detail({"": keys}, [f.name for f in key_fields]),
    }
    key_text = ", ".join(f.dataType.simpleString() for f in key_fields)
    step = Step(
        id=name,
        kind="window",
        named=True,
        inputs=(stream._edge,),
        outputs=("out", "late") if isinstance(window, TimeWindow) else ("out",),
        schema=schema.simpleString(),
        stateful=True,
        state_schema=f"({key_text}) {window} -> {StructType(results).simpleString()}",
        detail=detail,
        location=str(user_location()),
    )
    needs: tuple[str, ...] = (EVENT_TIME,)
    if isinstance(window, CountWindow):
        told: dict[str, Any] = {"step": name, "size": window.size, "every": window.every}
        needs = (EVENT_TIME, POSITION)
    else:
        told = {
            "step": name,
            "session": window.session,
            "size": _micros(window.size),
            "slide": _micros(window.every),
            "offset": _micros(window.offset),
            "lateness": _micros(lateness),
            "discarding": panes == "discarding",
            **spec,
        }
    names = tuple(f.name for f in key_fields)
    operation = WindowOp(keys, names, tuple(aggregates), told, conditions, needs)
    node = plan.add(step, operation, {"out": schema, "late": stream.schema})
    return Windowed(plan, node)


def _micros(duration: timedelta) -> int:
    return duration // timedelta(microseconds=1)


def _wrong(step: str, what: str, got: object, remedy: str) -> GraphError:
    return GraphError(what, step=step, got=repr(got), remedy=remedy, location=user_location())


def key_detail(inputs: Mapping[str, Sequence[Expr]], names: Sequence[str]) -> dict[str, str]:
    """What a step's detail says of keys that are more than columns of their names.

    >>> key_detail({"orders": ["id"], "payments": ["upper(order)"]}, ["id"])
    {'by': '{"payments": ["upper(order)"]}'}
    """
    texts = {input: [expression_text(key) for key in keys] for input, keys in inputs.items()}
    more = {input: written for input, written in texts.items() if written != list(names)}
    return {"by": json.dumps(more)} if more else {}


def _key_fields(
    plan: Plan, prototype: DataFrame, keys: Sequence[Expr], step: str
) -> list[StructField]:
    for key in keys:
        if not isinstance(key, str | Column):
            raise _wrong(step, "this is not a key", key, "name columns, each by itself")
    made = [column(k) for k in keys]
    found = analysed(prototype, step, lambda df: df.select(*made), "the key")
    if len(found.columns) != len(keys) or not jvm.is_chain(prototype, found):
        raise GraphError(
            "a key is one value of each row",
            step=step,
            got=", ".join(map(expression_text, keys)),
            remedy="name the columns, each by itself; aggregate or explode in a step before",
            location=user_location(),
        )
    plan.note_changing(step, found)
    problem = jvm.window_problem(found)
    if problem is not None:
        raise GraphError(
            f"{problem}, which is no key",
            step=step,
            remedy="name a column",
            location=user_location(),
        )
    for field, key in zip(found.schema.fields, keys, strict=True):
        kind = field.dataType.simpleString()
        if "map<" in kind or "variant" in kind:
            raise GraphError(
                f"the key {expression_text(key)} is of a type whose values cannot be compared",
                step=step,
                got=kind.upper(),
                remedy="use parts of it as the key",
                location=user_location(),
            )
    return [StructField(f.name, f.dataType) for f in found.schema.fields]


def _results(
    plan: Plan, prototype: DataFrame, aggregates: Sequence[Column], step: str
) -> list[StructField]:
    """The columns of the aggregates."""
    if not aggregates:
        raise GraphError(
            "the window has no aggregate",
            step=step,
            remedy='give at least one, for instance F.count("*").alias("n")',
            location=user_location(),
        )
    for aggregate in aggregates:
        if not isinstance(aggregate, Column):
            remedy = 'give one, for instance F.sum("price").alias("total")'
            raise _wrong(step, "this is not an aggregate", aggregate, remedy)
        if not _ALIAS.search(expression_text(aggregate)):
            raise GraphError(
                f"the aggregate {expression_text(aggregate)} has no name",
                step=step,
                remedy='give it one with .alias("..."): its state is found by it',
                location=user_location(),
            )
    found = analysed(prototype, step, lambda df: df.groupBy().agg(*aggregates), "an aggregate")
    problem = jvm.window_problem(found)
    if problem is not None:
        raise GraphError(
            f"{problem}, which windows cannot use",
            step=step,
            remedy="use another aggregate function, for instance approx_count_distinct or "
            "size(collect_set(...))",
            location=user_location(),
        )
    plan.note_changing(step, found)
    return [StructField(f.name, f.dataType) for f in found.schema.fields]


def _triggers(
    plan: Plan, step: str, triggers: Sequence[Trigger], results: Sequence[StructField]
) -> tuple[dict[str, Any], tuple[Expr, ...]]:
    """The triggers as the kernel is told of them, and their conditions."""
    spec: dict[str, Any] = {"every": 0, "clock": 0, "after_count": 0, "once": []}
    conditions: list[Expr] = []
    prototype = plan.prototype(StructType(list(results)))
    for trigger in triggers:
        if isinstance(trigger, When):
            if not isinstance(trigger.condition, str | Column):
                raise _wrong(step, "when has no condition", trigger.condition, "compare something")
            made = column(trigger.condition)
            typed = analysed(
                prototype,
                step,
                lambda df, c=made: df.select(c.alias("c")),  # type: ignore[misc]
                "the condition of when (over the window's aggregates)",
            )
            if not jvm.is_chain(prototype, typed):
                raise _wrong(
                    step,
                    "when aggregates once more",
                    expression_text(trigger.condition),
                    "compare the window's aggregates by their names",
                )
            if not isinstance(typed.schema["c"].dataType, BooleanType):
                raise _wrong(step, "when has no condition", trigger.condition, "compare something")
            plan.note_changing(step, typed)
            conditions.append(trigger.condition)
            spec["once"].append(trigger.once)
        elif isinstance(trigger, Every | AfterCount):
            field = "after_count"
            if isinstance(trigger, Every):
                field = "every" if trigger.clock == "event" else "clock"
            if spec[field]:
                kind = "after_count" if isinstance(trigger, AfterCount) else "every"
                raise _wrong(step, f"there are two {kind} triggers", str(trigger), "leave one out")
            spec[field] = _micros(trigger.interval) if isinstance(trigger, Every) else trigger.count
        else:
            raise _wrong(step, "this is not a trigger", trigger, 'use hg.every("1 minute")')
    return spec, tuple(conditions)


def _check_names(step: str, schema: StructType) -> None:
    seen: set[str] = set()
    for name in schema.names:
        if name.startswith(LEAD):
            raise _wrong(step, f"names that begin with {LEAD} are Headgate's", name, "use another")
        if name.lower() in seen:
            raise GraphError(
                f"the window's rows would have two columns '{name}'",
                step=step,
                expected="each name once; window_start, window_end, is_partial, fired_by and pane "
                "are taken",
                remedy="give the key or the aggregate another alias",
                location=user_location(),
            )
        seen.add(name.lower())
