"""The event time of a source or table, as the job's watermark is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructType, TimestampType

from headgate import jvm
from headgate.base.durations import parse_duration
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr
from headgate.graph.analysis import analysed, column, expression_text
from headgate.graph.hidden import EVENT_TIME
from headgate.graph.plan import Plan
from headgate.steps.source.times import EventTime


@dataclass(frozen=True)
class Watermark:
    """A source's event time, its delay, and after how much silence it is not waited for (ms)."""

    time: Expr
    delay: int
    idle_after: int | None = None

    def config(self) -> dict[str, Any]:
        """As it stands in the config of a step."""
        return {
            "event_time": expression_text(self.time),
            "out_of_orderness_ms": self.delay,
            "idle_after_ms": self.idle_after,
        }

    def for_kernel(self) -> dict[str, int | None]:
        """What the kernel needs to know of it."""
        return {"delay": self.delay, "idle_after": self.idle_after}

    def observed(self, rows: DataFrame, name: str) -> DataFrame:
        """The rows with their event time, the newest of which the kernel keeps for a source."""
        return jvm.observe(rows.withColumn(EVENT_TIME, column(self.time)), name, EVENT_TIME)


def watermark_of(plan: Plan, name: str, schema: StructType, given: EventTime) -> Watermark:
    """The event time of a source or table, checked."""
    if not isinstance(given, EventTime) or not isinstance(given.column, str | Column):
        raise GraphError(
            "event_time must name a column",
            step=name,
            got=repr(given),
            remedy='write event_time=hg.event_time("created_at", out_of_orderness="1 minute")',
            location=user_location(),
        )
    made = column(given.column)
    typed = analysed(
        plan.prototype(schema), name, lambda df: df.select(made.alias("t")), "event_time"
    )
    if not isinstance(typed.schema["t"].dataType, TimestampType):
        raise GraphError(
            "event_time must be a timestamp",
            step=name,
            expected="a TIMESTAMP",
            got=typed.schema["t"].dataType.simpleString().upper(),
            remedy='convert it: event_time("timestamp_millis(created_at)") of a number, '
            'event_time("cast(created_at AS TIMESTAMP)") of a text or another time',
            location=user_location(),
        )
    delay = parse_duration(given.out_of_orderness, what="out_of_orderness")
    idle_after = None
    if given.idle_after is not None:
        silence = parse_duration(given.idle_after, what="idle_after")
        idle_after = max(1, int(silence.total_seconds() * 1000))
    return Watermark(given.column, int(delay.total_seconds() * 1000), idle_after)
