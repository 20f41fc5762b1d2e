"""State is bounded by time: after 200 windows' worth of it rows and bytes are as after 50."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.connectors.log import connector as log
from headgate.testing import JobDriver

Make = Callable[..., JobDriver]
START = datetime(2026, 1, 1, tzinfo=UTC)
ROW = "id STRING, note STRING, at TIMESTAMP"
WINDOW = 60
A_WINDOW = 25
A_BATCH = 10
STEPS = {
    "between": ("default", "due"),
    "together": ("default", "due"),
    "once": ("default", "due"),
    "recent": ("default", "due"),
    "counts": ("default",),
    "first": ("default",),
}
"""The stores of each step."""
# RocksDB writes what it has to a file when a snapshot is made: in every other batch here, not in
# every tenth, and its size is then that of the files and not of the memory before them
SNAPSHOTS = "spark.sql.streaming.stateStore.minDeltasForSnapshot"


@hg.job("bounded")
def bounded(job: hg.Job) -> None:
    lefts, rights = (
        job.source(
            name, hg.topic(f"log:{name}", schema=ROW), event_time=hg.event_time("at")
        ).key_by("id")
        for name in ("lefts", "rights")
    )
    minute = hg.tumbling("1 minute")
    between = lefts.join(
        "between", rights, within=hg.between("-1 minute", "1 minute"), into="other",
        left_unmatched="null",
    )  # fmt: skip
    together = lefts.join("together", rights, within=minute, into="other")
    once = lefts.dedupe("once", within="1 minute")
    counts = lefts.window("counts", minute, F.max("note").alias("note"))
    first = lefts.top("first", 2, by="note", within=minute)
    told = [rows.select("id") for rows in (between, together, once, counts, first)]
    told[0].union(*told[1:]).sink("out", hg.topic("log:out"))
    recent = lefts.aggregate("recent", F.max("note").alias("note"), ttl="1 minute")
    recent.sink("now", hg.topic("log:now", key="id"))


def rows(window: int, dice: random.Random) -> list[dict[str, Any]]:
    """Rows of a window, of keys that never come again, which no compression makes smaller."""
    return [
        {
            "id": f"{window}.{number}",
            "note": dice.randbytes(500).hex(),
            "at": (START + timedelta(seconds=window * WINDOW + number)).isoformat(),
        }
        for number in range(A_WINDOW)
    ]


@pytest.mark.slow
def test_state_after_200_windows_is_as_after_50(
    spark: SparkSession, job_driver: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "MAX_RECORDS", str(A_WINDOW * A_BATCH))
    dice, windows = random.Random(5), 200
    spark.conf.set(SNAPSHOTS, "1")
    try:
        t = job_driver(bounded, parallelism=1)
        kept: dict[int, dict[str, list[int]]] = {}
        for until in (50, windows):
            for window in range(max(kept, default=0), until):
                for side in ("lefts", "rights"):
                    t.send(side, *rows(window, dice))
            t.run()
            kept[until] = {
                step: [len(t.state(step, store).all()) for store in stores]
                for step, stores in STEPS.items()
            }
    finally:
        spark.conf.unset(SNAPSHOTS)
    assert kept[windows] == kept[50]
    assert all(0 < rows <= 2 * 2 * A_WINDOW for found in kept[50].values() for rows in found), kept
    records = sorted(t._run_home.checkpoints(), key=lambda record: record.id)
    assert len(records) >= windows / A_BATCH
    for step in STEPS:
        sizes = [record.state[step] for record in records]
        early, late = (
            {what: max(size[what] for size in part) for what in ("rows", "bytes")}
            for part in (sizes[: 50 // A_BATCH], sizes[-50 // A_BATCH :])
        )
        assert late["rows"] <= early["rows"], step
        # files of a few batches wait for a compaction; all that came would be four times as much
        assert late["bytes"] < 2 * early["bytes"], (step, [size["bytes"] for size in sizes])
