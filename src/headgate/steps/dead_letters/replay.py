"""A replay step: dead letters that come again, as rows of the step at which they were lost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from pyspark.sql import DataFrame
from pyspark.sql.types import StructType, TimestampType

from headgate import jvm
from headgate.connectors.base import Decoding, Source
from headgate.connectors.dead_letters import as_bytes
from headgate.connectors.letters import REPLAY, REPLAYS
from headgate.graph.analysis import column
from headgate.graph.carried import Carrying
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import EVENT_TIME, POSITION
from headgate.graph.letters import literal
from headgate.graph.operation import Operation, RawSource, Shape
from headgate.graph.plan import Node
from headgate.steps.source.raw import ALIAS
from headgate.steps.source.step import MALFORMED, SourceStep

BAD = "__hg_bad"
_MOST = 1 << 48
"""An offset beyond it does not fit into a position."""


@dataclass(frozen=True)
class ReplayStep(Operation):
    """Reads the letters of a step's side output again; nothing waits for its watermark."""

    reads: Source
    job: str
    step: str
    output: str
    topic: str
    """Where the rows came from first, if that is one topic."""
    carries: tuple[str, ...]
    """The hidden columns of the rows beside which these come."""
    of: SourceStep | None = None
    """The source whose records these are; of another step they are rows."""
    kind = "replay"
    shape = Shape.ORIGIN

    @property
    def source(self) -> RawSource:
        return self.reads

    def reading(self, source: Source) -> Operation:
        of = None if self.of is None else self.of.reading(source)
        return replace(self, reads=source, of=cast("SourceStep | None", of))

    def config(self) -> Mapping[str, Any]:
        return {REPLAYS: {"job": self.job, "step": self.step, "output": self.output}}

    def labels(self) -> Mapping[str, str]:
        return {"letters": f"{self.output} of {self.step}"}

    def check(self) -> None:
        self.reads.check()

    def check_carried(self, rows: Carrying, output: str, name: str) -> None:
        if name not in self.carries and not rows.may_lack:
            raise rows.lost(f"replayed rows have no {rows.what(name)}", "give the source one")

    def frame(self, job: Compiling, node: Node, inputs: Sequence[DataFrame]) -> DataFrame:
        schema, decoding, watermark = node.schemas["out"], Decoding(), None
        if self.of is not None:
            assert isinstance(self.of.reads, Source)
            decoding, watermark = self.of.reads.decoding(), self.of.watermark
        elif EVENT_TIME in self.carries:
            # a row was given its event time before: it is in the letter
            schema = StructType([*schema.fields]).add(EVENT_TIME, TimestampType())
            decoding = replace(decoding, metadata=[(EVENT_TIME, "event_time")])
        # the decoder makes an address of the source's and the topic's name, if it needs the name
        in_parts = any(part == "topic" for _, part in decoding.metadata)
        topic = "substring_index(l.topic, '/', -1)" if in_parts else "l.topic"
        rows = jvm.decode(
            self._records(job, node, topic),
            schema,
            topic=self.topic if in_parts else "",
            step=node.step.id,
            malformed="side",
            format=decoding.format,
            metadata=decoding.metadata,
            **decoding.settings,
        )
        if watermark is not None:  # which does not see them
            rows = rows.withColumn(EVENT_TIME, column(watermark.time))
        return rows if POSITION in self.carries else rows.drop(POSITION)

    def _records(self, job: Compiling, node: Node, topic: str) -> DataFrame:
        """The records as they were when they were lost."""
        records = self.reads.records(job.spark, table=False).alias(ALIAS + node.step.id)
        letters = jvm.select(
            records,
            [
                f"from_json(CAST(value AS STRING), {literal(REPLAY)}) AS l",
                "`partition` AS p",
                "`offset` AS o",
                "`timestamp` AS t",
            ],
        )
        mine = {"job": self.job, "step": self.step, "output": self.output}
        return jvm.select(
            letters,
            [
                f"{as_bytes('l.key')} AS key",
                f"{as_bytes('l.value')} AS value",
                "coalesce(l.`partition`, p) AS `partition`",
                "coalesce(l.`offset`, o) AS `offset`",
                f"CASE WHEN l.`offset` < {_MOST} THEN l.`offset` ELSE o END AS position",
                "coalesce(CAST(l.`timestamp` AS TIMESTAMP), t) AS `timestamp`",
                f"{topic} AS topic",
                "CAST(l.event_time AS TIMESTAMP) AS event_time",
                # what letters do not have
                "CAST(NULL AS ARRAY<STRUCT<key: STRING, value: BINARY>>) AS headers",
                "CAST(NULL AS MAP<STRING, STRING>) AS properties",
                "CAST(NULL AS STRING) AS message_id",
            ],
            where=" AND ".join(f"l.{name} = {literal(text)}" for name, text in mine.items()),
        )

    def outputs(
        self, job: Compiling, node: Node, base: DataFrame, carried: Sequence[str]
    ) -> dict[str, DataFrame]:
        columns = [jvm.quoted(c) for c in [*node.schemas["out"].names, *carried]]
        bad = [jvm.quoted(BAD, name, alias=name) for name in MALFORMED.names]
        return {
            "out": jvm.select(base, columns, where=f"{BAD} IS NULL"),
            "malformed": jvm.select(base, bad, where=f"{BAD} IS NOT NULL"),
        }
