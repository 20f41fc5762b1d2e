"""What a user declares of a window: aggregates and triggers, checked as they are written."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from pyspark.sql import Column
from pyspark.sql.types import BooleanType, StructField, StructType

from headgate import jvm
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr
from headgate.graph.analysis import analysed, column, expression_text
from headgate.graph.hidden import PREFIX
from headgate.graph.plan import Plan
from headgate.steps.window.kinds import AfterCount, Every, Trigger, When


def wrong(step: str, what: str, got: object, remedy: str) -> GraphError:
    """An error about something that a user gave to a window."""
    return GraphError(what, step=step, got=repr(got), remedy=remedy, location=user_location())


def micros(duration: timedelta) -> int:
    """A duration in microseconds."""
    return duration // timedelta(microseconds=1)


def trigger_spec(
    plan: Plan, step: str, triggers: Sequence[Trigger], results: Sequence[StructField]
) -> tuple[dict[str, Any], tuple[Expr, ...]]:
    """The triggers as the kernel reads them, and their conditions."""
    spec: dict[str, Any] = {"every": 0, "clock": 0, "after_count": 0, "once": []}
    conditions: list[Expr] = []
    prototype = plan.prototype(StructType(list(results)))
    for trigger in triggers:
        if isinstance(trigger, When):
            if not isinstance(trigger.condition, str | Column):
                raise wrong(
                    step,
                    "the condition of when must be SQL or a Column",
                    trigger.condition,
                    'for instance hg.when("n > 10")',
                )
            made = column(trigger.condition)
            typed = analysed(
                prototype,
                step,
                lambda df, c=made: df.select(c.alias("c")),  # type: ignore[misc]
                "the condition of when (over the window's aggregates)",
            )
            if not jvm.is_chain(prototype, typed):
                raise wrong(
                    step,
                    "the condition of when must not aggregate again",
                    expression_text(trigger.condition),
                    "compare the window's aggregates by their names",
                )
            if not isinstance(typed.schema["c"].dataType, BooleanType):
                raise wrong(
                    step,
                    "the condition of when must be a BOOLEAN",
                    trigger.condition,
                    'compare, for instance hg.when("n > 10")',
                )
            plan.note_changing(step, typed)
            conditions.append(trigger.condition)
            spec["once"].append(trigger.once)
        elif isinstance(trigger, Every | AfterCount):
            field = "after_count"
            if isinstance(trigger, Every):
                field = "every" if trigger.clock == "event" else "clock"
            if spec[field]:
                kind = "after_count" if isinstance(trigger, AfterCount) else "every"
                raise wrong(
                    step,
                    f"a window must have at most one {kind} trigger",
                    str(trigger),
                    "leave one out",
                )
            spec[field] = micros(trigger.interval) if isinstance(trigger, Every) else trigger.count
        else:
            raise wrong(
                step,
                "a trigger must be hg.every(...), hg.after_count(...) or hg.when(...)",
                trigger,
                'for instance hg.every("1 minute")',
            )
    return spec, tuple(conditions)


def check_names(step: str, schema: StructType) -> None:
    """Refuse columns of a window's rows that have the same name, or one of ours."""
    seen: set[str] = set()
    for name in schema.names:
        if name.startswith(PREFIX):
            raise wrong(
                step,
                f"a column of a window must not begin with {PREFIX}, which Headgate uses",
                name,
                "give it another alias",
            )
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
