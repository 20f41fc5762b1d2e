"""Windows without a key: one for all rows of a time, whatever their kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from pyspark.sql import functions as F

import headgate as hg
from headgate.home.layout import Home
from headgate.snapshots.snapshot import find_snapshot
from headgate.state import StateReader
from headgate.testing import JobDriver
from tests.steps.test_window import VISIT, record
from tests.steps.window_truth import START

Make = Callable[..., JobDriver]
EVENTS = [(k, "abc"[k % 3], k * 20 + (600 if k >= 20 else 0), k) for k in range(40)]


@hg.job("all")
def everything(job: hg.Job) -> None:
    visits = job.source(
        "visits",
        hg.topic("log:visits", schema=VISIT),
        event_time=hg.event_time("at", out_of_orderness="1 minute"),
    )
    total = F.sum("value").alias("total")
    kinds = {
        "tumbling": hg.tumbling("5 minutes"),
        "sliding": hg.sliding("10 minutes", every="5 minutes"),
        "session": hg.session("5 minutes"),
        "counted": hg.count_window(15),
    }
    for name, kind in kinds.items():
        visits.key_by().window(name, kind, F.count("*").alias("n"), total).sink(
            f"{name}_out", hg.topic(f"log:{name}")
        )


def reported(rows: list[dict[str, Any]]) -> Counter[tuple[int, int, int, int]]:
    for row in rows:
        names = "window_start window_end n total is_partial fired_by pane"
        assert list(row) == names.split() and row["fired_by"] == "on_time"
    return Counter(
        (
            round(r["window_start"].timestamp()) - START,
            round(r["window_end"].timestamp()) - START,
            r["n"],
            r["total"],
        )
        for r in rows
    )


def truth(*windows: tuple[int, int, list[int]]) -> Counter[tuple[int, int, int, int]]:
    return Counter((start, end, len(v), sum(v)) for start, end, v in windows if v)


def within(start: int, end: int) -> list[int]:
    return [value for _, _, at, value in EVENTS if start <= at < end]


def test_all_rows_are_in_one_window_of_each_kind(job_driver: Make) -> None:
    t = job_driver(everything)
    t.send("visits", *[record(e) for e in EVENTS[:25]]).run()
    assert t.state("tumbling").all() != [] and t.state("tumbling").get() is not None
    assert all(entry["key"] == {} for entry in t.state("session").all())
    reader = StateReader(t.spark, find_snapshot(Home(t.home), "latest", "all"))
    found = [row.asDict(recursive=True) for row in reader.get("tumbling", {}).collect()]
    assert [r["row"]["n"] for r in found] == [5]
    t.restore(t.checkpoint(), parallelism=3)
    t.send("visits", *[record(e) for e in EVENTS[25:]]).run(drain=True)
    fives = [(s, s + 300, within(s, s + 300)) for s in range(0, 1500, 300)]
    tens = [(s, s + 600, within(s, s + 600)) for s in range(-300, 1500, 300)]
    assert reported(t.rows("tumbling_out")) == truth(*fives)
    assert reported(t.rows("sliding_out")) == truth(*tens)
    assert reported(t.rows("session_out")) == truth(
        (0, 19 * 20 + 300, list(range(20))), (1000, 39 * 20 + 900, list(range(20, 40)))
    )
    assert reported(t.rows("counted_out")) == truth(
        *[
            (EVENTS[s][2], EVENTS[min(s + 15, 40) - 1][2], list(range(s, min(s + 15, 40))))
            for s in (0, 15, 30)
        ]
    )
    for step in ("tumbling", "sliding", "session", "counted"):
        assert t.state(step).all() == []
