"""Inputs without a place in a topic: windows come in order of time, other sources in some order."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.testing import JobDriver

NOON = datetime(2026, 1, 1, 12)


class Follow(hg.Process):
    """Tells of the windows of a key in the order in which it sees them, and of bonuses."""

    turn = hg.value_state(int)
    bonus = hg.value_state(int)

    def on_bonuses(self, row: Row, ctx: hg.Context) -> None:
        self.bonus.set((self.bonus.get() or 0) + row.points)

    def on_windows(self, row: Row, ctx: hg.Context) -> hg.Out[str]:
        turn = (self.turn.get() or 0) + 1
        self.turn.set(turn)
        assert ctx.timestamp is not None
        yield (
            f"{ctx.key.key} {turn} {row.window_end:%H:%M} {row.pane} {row.total}"
            f" {ctx.timestamp:%H:%M} {self.bonus.get() or 0}"
        )

    def on_lates(self, row: Row, ctx: hg.Context) -> hg.Out[str]:
        yield f"{ctx.key.key} late {row.number}"


@hg.job("inputs")
def inputs(job: hg.Job) -> None:
    folder = job.param("folder")

    def files(spark: SparkSession) -> DataFrame:
        return spark.readStream.schema("key STRING, points BIGINT").json(folder)

    events = job.source(
        "events",
        hg.topic("log:events", schema="key STRING, number BIGINT, at TIMESTAMP"),
        event_time=hg.event_time("at"),
    )
    windows = events.key_by("key").window(
        "minutes", hg.tumbling("1 minute"), F.sum("number").alias("total"), early=hg.after_count(1)
    )
    follow = job.process(
        "follow",
        Follow(),
        bonuses=job.source("bonuses", files).key_by("key"),
        windows=windows.where("total > 0").key_by("key"),
        lates=windows.late.key_by("key"),
    )
    follow.sink("out", hg.topic("log:out"))


def test_windows_and_other_sources_are_inputs(spark: SparkSession, tmp_path: Path) -> None:
    points = [{"key": "a", "points": 4}, {"key": "a", "points": 5}, {"key": "b", "points": 1}]
    (tmp_path / "points.json").write_text("\n".join(json.dumps(row) for row in points))
    with JobDriver(inputs, params={"folder": str(tmp_path)}) as t:
        for minute in (7, 3, 9, 1, 5):
            at = (NOON + timedelta(minutes=minute)).isoformat()
            t.send(
                "events",
                {"key": "a", "number": minute, "at": at},
                {"key": "b", "number": 10 * minute, "at": at},
                partition=minute % 2,
            )
        t.run()
        wanted = []
        for key, by, bonus in (("a", 1, 9), ("b", 10, 1)):
            minutes = [1, 3, 5, 7, 9]
            # the early rows of one batch in order of their windows, then the final ones
            first = [f"{m + 1:02d} 0 {m * by} 12:{m:02d} {bonus}" for m in minutes]
            last = [f"{m + 1:02d} 1 {m * by} 12:{m:02d} {bonus}" for m in minutes[:4]]
            wanted += [f"{key} {n} 12:{text}" for n, text in enumerate(first + last, 1)]
        assert sorted(row["value"] for row in t.rows("out")) == sorted(wanted)
        t.send("events", {"key": "b", "number": 8, "at": NOON.isoformat()}).run()
        assert [row["value"] for row in t.rows("out")] == ["b late 8"]


class Zeros(hg.Process):
    seen = hg.value_state(int)

    def on_numbers(self, row: Row, ctx: hg.Context) -> hg.Out[str]:
        self.seen.set((self.seen.get() or 0) + 1)
        yield f"{ctx.key.number} {self.seen.get()}"


def test_zero_is_one_key_whatever_its_sign(spark: SparkSession) -> None:
    @hg.job("zeros")
    def zeros(job: hg.Job) -> None:
        numbers = job.source("numbers", hg.topic("log:numbers", schema="number DOUBLE"))
        told = job.process("zeros", Zeros(), numbers=numbers.key_by("number"))
        told.sink("out", hg.topic("log:out"))

    with JobDriver(zeros) as t:
        for number in (0.0, -0.0, -1.5):
            t.send("numbers", {"number": number})
        t.run().send("numbers", {"number": -0.0}).run()
        told = sorted(row["value"] for row in t.rows("out"))
        assert told == ["-1.5 1", "0.0 1", "0.0 2", "0.0 3"]
