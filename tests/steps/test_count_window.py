"""Windows of so many rows, against a truth in plain Python."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from pyspark.sql import functions as F

import headgate as hg
from headgate.connectors.log import connector as log
from headgate.testing import JobDriver
from tests.steps.test_window import VISIT, record, time
from tests.steps.window_truth import Event

Make = Callable[..., JobDriver]
KINDS = [(4, 4), (5, 3), (3, 1)]


@hg.job("counted")
def counted(job: hg.Job) -> None:
    visits = job.source(
        "visits", hg.topic("log:visits", schema=VISIT), event_time=hg.event_time("at")
    )
    for size, every in KINDS:
        visits.where("id >= 0").key_by("page").window(
            f"w{size}{every}",
            hg.count_window(size, every=every),
            F.count("*").alias("n"),
            F.expr("sum(value) FILTER (WHERE value > 50)").alias("big"),
            F.percentile_approx("value", 0.5).alias("middle"),
            F.collect_set("id").alias("ids"),
        ).sink(f"out{size}{every}", hg.topic("log:out"))


def windows_of(
    size: int, every: int, rows: list[Event], told: int, *, ended: bool
) -> Iterator[Any]:
    """The windows that rows of one key make after the first `told` of them."""
    last = told // every * every + every
    while last <= len(rows) or (ended and last - every < len(rows)):
        mine = rows[max(0, last - size) : last]
        big = [value for _, _, _, value in mine if value > 50]
        middle = sorted(value for *_, value in mine)[(len(mine) + 1) // 2 - 1]
        times = [at for _, _, at, _ in mine if at is not None]
        yield (
            mine[0][1],
            time(min(times)),
            time(max(times)),
            len(mine),
            sum(big) if big else None,
            middle,
            tuple(sorted(row[0] for row in mine)),
        )
        last += every


def found(rows: list[dict[str, Any]]) -> Counter[Any]:
    assert {(r["fired_by"], r["is_partial"], r["pane"]) for r in rows} <= {("on_time", False, 0)}
    return Counter(
        (
            r["page"],
            r["window_start"].isoformat(),
            r["window_end"].isoformat(),
            r["n"],
            r["big"],
            r["middle"],
            tuple(r["ids"]),
        )
        for r in rows
    )


def test_rows_are_counted_in_the_order_of_their_topic(
    job_driver: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "MAX_RECORDS", "30")
    dice = random.Random(7)
    events = [(k, dice.choice("aaab"), dice.randrange(900), dice.randrange(99)) for k in range(90)]
    t = job_driver(counted)
    sent = 0
    for upto, crash in ((40, False), (75, True), (90, False)):
        t.send("visits", *[record(e) for e in events[sent:upto]])
        if crash:
            t.crash(at="after_sink").restore()
        last = upto == len(events)
        t.run(drain=last)
        for size, every in KINDS:
            wanted: Counter[Any] = Counter()
            for key in "ab":
                rows = [e for e in events[:upto] if e[1] == key]
                told = sum(e[1] == key for e in events[:sent])
                wanted.update(windows_of(size, every, rows, told, ended=last))
            assert found(t.rows(f"out{size}{every}")) == wanted, (size, every, upto)
        sent = upto
    for size, every in KINDS:
        assert t.state(f"w{size}{every}").all() == []
        assert t.state(f"w{size}{every}", "numbers").all() == []
        assert t.metrics(f"w{size}{every}")["records_in"] == 90
