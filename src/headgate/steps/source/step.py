"""A source step: a stream from a topic, with event time and malformed records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

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
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr, Source
from headgate.graph.carried import Carrying
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import DELETED, EVENT_TIME, POSITION
from headgate.graph.letters import Letters
from headgate.graph.operation import Operation, RawSource, Shape
from headgate.graph.plan import Node, Plan
from headgate.steps.source.raw import decoded, made_by_function, source_schema
from headgate.steps.source.times import EventTime
from headgate.steps.source.watermark import Watermark, watermark_of

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
MALFORMED_LETTERS = Letters(
    "MALFORMED_RECORD", "reason", ("key",), "value", of_record=True, replay="record"
)
_BAD = "__hg_bad"


@dataclass(frozen=True)
class SourceStep(Operation):
    """Reads records."""

    reads: RawSource
    malformed: str
    watermark: Watermark | None = None
    key: tuple[str, ...] = ()
    """The columns by which a row replaces another, if the source gives changes."""
    kind = "source"
    shape = Shape.ORIGIN

    @property
    def source(self) -> RawSource:
        return self.reads

    def reading(self, source: Source) -> Operation:
        return replace(self, reads=source)

    def config(self) -> Mapping[str, Any]:
        made: dict[str, Any] = {"malformed": self.malformed}
        if self.watermark is not None:
            made |= self.watermark.config()
        if self.key:
            made["key"] = list(self.key)
        return made

    def labels(self) -> Mapping[str, str]:
        texts = {name: str(value) for name, value in self.config().items() if value is not None}
        return {**texts, "key": ", ".join(self.key)} if self.key else texts

    @property
    def record_key(self) -> Sequence[str]:
        return self.key

    def check(self) -> None:
        if isinstance(self.reads, Source):
            self.reads.check()
            self.reads.check_stream()

    def event_time(self) -> Mapping[str, int | None] | None:
        return None if self.watermark is None else self.watermark.for_kernel()

    def side_remedy(self, output: str) -> str:
        if output == "malformed":
            return "make the source with malformed='side'"
        return super().side_remedy(output)

    def letters(self, output: str) -> Letters | None:
        if output != "malformed":
            return None
        # a change that comes later would replace newer ones
        return replace(MALFORMED_LETTERS, replay=None) if self.key else MALFORMED_LETTERS

    def check_carried(self, rows: Carrying, output: str, name: str) -> None:
        if rows.may_lack:
            return
        there = self.watermark is not None
        remedy = 'give the source one: event_time=hg.event_time("column")'
        if name != EVENT_TIME:
            there = isinstance(self.reads, Source)
            remedy = "read a topic: rows are counted in its order"
        if not there or output != "out":
            source = rows.node.step.id
            raise rows.lost(f"the rows of source '{source}' have no {rows.what(name)}", remedy)

    def frame(self, job: Compiling, node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
        name = node.step.id
        if isinstance(self.reads, Source):
            schema = node.schemas["out"]
            df = decoded(
                job.spark,
                name,
                self.reads,
                schema,
                malformed=self.malformed,
                table=bool(self.key),
                key_columns=self.key,
            )
            if self.key:
                df = jvm.normal_keys(df, self.key)
                df = jvm.newest(df, self.key, position=POSITION, bad=_BAD)
        else:
            df = made_by_function(job.spark, name, self.reads)
        return df if self.watermark is None else self.watermark.observed(df, name)

    def outputs(
        self, job: Compiling, node: Node, base: DataFrame, carried: Sequence[str]
    ) -> dict[str, DataFrame]:
        told = [DELETED] if self.key else []
        columns = [jvm.quoted(c) for c in [*node.schemas["out"].names, *carried, *told]]
        if self.malformed == "fail":
            return {"out": jvm.select(base, columns)}
        return {
            "out": jvm.select(base, columns, where=f"{_BAD} IS NULL"),
            "malformed": jvm.select(base, [f"{_BAD}.*"], where=f"{_BAD} IS NOT NULL"),
        }

    @classmethod
    def detail_1(cls, address: str, config: Mapping[str, Any]) -> dict[str, str]:
        detail = {"address": address, "malformed": config["malformed"]}
        for name in ("event_time", "out_of_orderness_ms", "idle_after_ms"):
            if config.get(name) is not None:
                detail[name] = str(config[name])
        return detail


def add_source(
    plan: Plan,
    name: str,
    source: RawSource,
    event_time: EventTime | None,
    malformed: Literal["fail", "side"] | None,
    key: Expr | Sequence[Expr] | None = None,
) -> Node:
    """Write a source down."""
    plan.check_name(name, "source")
    if malformed is None:
        # changes with a hole are not those of the table that they are of
        plain = isinstance(source, Source) and not source.gives_changes
        malformed = "side" if plan.collects and plain else "fail"
    if malformed not in ("fail", "side"):
        raise GraphError(
            "malformed must be 'fail' or 'side'",
            step=name,
            got=repr(malformed),
            remedy="'fail' stops the job, 'side' sends the record to .malformed",
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
    watermark = None if event_time is None else watermark_of(plan, name, schema, event_time)
    keys = _key(name, source, schema, key)
    return plan.add(
        name,
        SourceStep(source, malformed, watermark, keys),
        {"out": schema, "malformed": MALFORMED},
        outputs=("out", "malformed") if malformed == "side" else ("out",),
        changes=keys or None,
    )


def _key(
    name: str, source: RawSource, schema: StructType, given: Expr | Sequence[Expr] | None
) -> tuple[str, ...]:
    """The key of a source that gives changes; none for another."""
    changes = isinstance(source, Source) and source.gives_changes
    if given is None and not changes:
        return ()
    if not changes:
        raise GraphError(
            "a source has a key only if its records are changes",
            step=name,
            remedy="leave key out and use key_by(...), or read a table: job.table(...)",
            location=user_location(),
        )
    keys = [given] if isinstance(given, str | Column) else list(given or ())
    columns = tuple(key for key in keys if isinstance(key, str) and key in schema.names)
    if not columns or len(columns) != len(keys):
        raise GraphError(
            "a source of changes must have a key: the columns that are the key in the database",
            step=name,
            expected=f"some of {', '.join(schema.names)}",
            got=", ".join(map(str, keys)) or "no key",
            remedy='name them: key="id"',
            location=user_location(),
        )
    return columns
