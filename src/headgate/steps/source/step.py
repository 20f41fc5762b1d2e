"""Sources: streams that come from a topic, with event time and malformed records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import (
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from headgate import jvm
from headgate.api.stream import Stream
from headgate.base.durations import Duration, parse_duration
from headgate.base.errors import GraphError, UsageError, user_location
from headgate.connectors.base import Expr, Source
from headgate.graph import Step
from headgate.graph.plan import Plan, RawSource, SourceOp, analysed, column, expression_text

MALFORMED = StructType(
    [
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("key", StringType()),
        StructField("value", StringType()),
        StructField("reason", StringType()),
    ]
)


@dataclass(frozen=True)
class EventTime:
    """Which time of a record counts, how late records may be, how long silence is waited for."""

    column: Expr
    out_of_orderness: Duration = "0 seconds"
    idle_after: Duration | None = None


def event_time(
    column: Expr, *, out_of_orderness: Duration = "0 seconds", idle_after: Duration | None = None
) -> EventTime:
    """Event time from a column or expression.

    A source's watermark is the newest time of its rows less `out_of_orderness`. The job's is the
    least of its sources'; one that gave no rows for `idle_after` counts only when it does again.

    >>> event_time("created_at", out_of_orderness="5 seconds").out_of_orderness
    '5 seconds'
    """
    parse_duration(out_of_orderness, what="out_of_orderness")
    if idle_after is not None and not parse_duration(idle_after, what="idle_after"):
        raise UsageError(
            "idle_after is no time at all",
            got=repr(idle_after),
            remedy="leave it out if the source is always to be waited for",
        )
    return EventTime(column, out_of_orderness, idle_after)


class SourceStream(Stream):
    """The records of a source as rows."""

    @property
    def malformed(self) -> Stream:
        """Records that did not parse, raw, with topic, partition, offset and reason."""
        return self.side("malformed")


def source_schema(plan: Plan, name: str, source: RawSource) -> StructType:
    """The columns that a source gives."""
    if isinstance(source, Source):
        return source.struct()
    if not callable(source):
        raise GraphError(
            "this is not a source",
            step=name,
            expected="a topic, LogSource, ... or a function from SparkSession to a DataFrame",
            got=repr(source),
            remedy="give a source",
            location=user_location(),
        )
    df = source(plan.spark)
    if not isinstance(df, DataFrame) or not df.isStreaming:
        raise GraphError(
            "the source's function gave no streaming DataFrame",
            step=name,
            remedy="use spark.readStream in it and return the DataFrame",
            location=user_location(),
        )
    if jvm.stateful_part(df) == "withWatermark":
        raise GraphError(
            "the source's function calls withWatermark, and the job's watermark is Headgate's",
            step=name,
            remedy="leave it out and give event_time=hg.event_time(...)",
            location=user_location(),
        )
    return df.schema


def source_address(source: RawSource) -> str:
    """What people recognise a source by."""
    return source.describe() if isinstance(source, Source) else "DataFrame"


def add_source(
    plan: Plan,
    name: str,
    source: RawSource,
    event_time: EventTime | None,
    malformed: Literal["fail", "side"],
) -> SourceStream:
    """Write a source down."""
    plan.check_name(name, "source")
    if malformed not in ("fail", "side"):
        raise GraphError(
            "malformed is not known",
            step=name,
            expected="'fail' or 'side'",
            got=repr(malformed),
            remedy="use one of the two",
            location=user_location(),
        )
    if malformed == "side" and not isinstance(source, Source):
        raise GraphError(
            "a source made from a DataFrame has no malformed records",
            step=name,
            remedy="leave malformed out and handle them in the function",
            location=user_location(),
        )
    schema = source_schema(plan, name, source)
    detail = {"address": source_address(source), "malformed": malformed}
    watermark = idle_after = None
    if event_time is not None:
        if not isinstance(event_time, EventTime) or not isinstance(event_time.column, str | Column):
            raise GraphError(
                "event_time names no column",
                step=name,
                got=repr(event_time),
                remedy='write event_time=hg.event_time("created_at", out_of_orderness="1 minute")',
                location=user_location(),
            )
        delay = parse_duration(event_time.out_of_orderness, what="out_of_orderness")
        made = column(event_time.column)
        typed = analysed(
            plan.prototype(schema), name, lambda df: df.select(made.alias("t")), "event_time"
        )
        if not isinstance(typed.schema["t"].dataType, TimestampType):
            raise GraphError(
                "event_time is not a timestamp",
                step=name,
                expected="a TIMESTAMP",
                got=typed.schema["t"].dataType.simpleString().upper(),
                remedy='convert it: event_time("timestamp_millis(created_at)") of a number, '
                'event_time("cast(created_at AS TIMESTAMP)") of a text or another time',
                location=user_location(),
            )
        watermark = (event_time.column, int(delay.total_seconds() * 1000))
        detail["event_time"] = expression_text(event_time.column)
        detail["out_of_orderness_ms"] = str(watermark[1])
        if event_time.idle_after is not None:
            silence = parse_duration(event_time.idle_after, what="idle_after")
            idle_after = max(1, int(silence.total_seconds() * 1000))
            detail["idle_after_ms"] = str(idle_after)
    outputs = ("out", "malformed") if malformed == "side" else ("out",)
    step = Step(
        id=name,
        kind="source",
        named=True,
        outputs=outputs,
        schema=schema.simpleString(),
        detail=detail,
        location=str(user_location()),
    )
    schemas = {"out": schema, "malformed": MALFORMED}
    node = plan.add(step, SourceOp(source, malformed, watermark, idle_after), schemas)
    return SourceStream(plan, node)
