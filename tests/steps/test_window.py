"""Windows through the public API, on the real kernel, against a truth in plain Python."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import functions as F

import headgate as hg
from headgate.connectors.log import connector as log
from headgate.testing import JobDriver
from tests.steps.window_truth import START, Event, Truth

Make = Callable[..., JobDriver]
VISIT = "id BIGINT, page STRING, at TIMESTAMP, value BIGINT"


def counting(
    window: hg.Window, *, delay: str = "1 minute", name: str = "counting", **options: Any
) -> hg.JobDef:
    @hg.job(name)
    def define(job: hg.Job) -> None:
        visits = job.source(
            "visits",
            hg.topic("log:visits", schema=VISIT),
            event_time=hg.event_time("at", out_of_orderness=delay),
        )
        counts = visits.key_by("page").window(
            "counts",
            window,
            F.count("*").alias("n"),
            F.sum("value").alias("total"),
            F.collect_set(F.concat(F.lit("v"), F.col("value") % 5)).alias("names"),
            **options,
        )
        counts.sink("out", hg.topic("log:out"))
        counts.late.sink("late", hg.topic("log:late"))

    return define


def record(event: Event) -> dict[str, Any]:
    id, page, at, value = event
    return {"id": id, "page": page, "at": None if at is None else time(at), "value": value}


def time(seconds: int) -> str:
    return datetime.fromtimestamp(START + seconds, UTC).isoformat()


def reported(rows: list[dict[str, Any]]) -> Counter[tuple[Any, ...]]:
    """Rows as the truth has them."""
    for row in rows:
        assert row["is_partial"] == (row["fired_by"] == "early")
    return Counter(
        (
            row["page"],
            round(row["window_start"].timestamp()) - START,
            round(row["window_end"].timestamp()) - START,
            row["n"],
            row["total"],
            tuple(row["names"]),
            row["fired_by"],
            row["pane"],
        )
        for row in rows
    )


class Reported:
    """A driver and the truth, kept in step."""

    def __init__(self, driver: JobDriver, truth: Truth) -> None:
        self.driver = driver
        self.truth = truth
        self.batches = 0
        self.rows = self.lost = 0

    def run(self, *events: Event, drain: bool = False, crash: bool = False) -> None:
        """Send the events; both must give the same rows."""
        self.driver.send("visits", *[record(e) for e in events])
        if crash:
            self.driver.crash(at="after_sink").restore()
        self.driver.run(drain=drain)
        ran = int(self.driver.checkpoint().rpartition(":")[2]) + 1 - self.batches
        self.batches += ran
        self.truth.batch(events)
        for number in range(1, ran):
            self.truth.batch([], ended=drain and number == ran - 1)
        assert reported(self.driver.rows("out")) == Counter(self.truth.out[self.rows :])
        late = Counter(r["id"] for r in self.driver.rows("late"))
        assert late == Counter(self.truth.late[self.lost :])
        self.rows, self.lost = len(self.truth.out), len(self.truth.late)


def test_a_window_gives_one_row_when_the_watermark_passes_its_end(job_driver: Make) -> None:
    t = job_driver(counting(hg.tumbling("5 minutes")))
    t.send("visits", record((1, "a", 10, 1)), record((2, "a", 290, 2)), record((3, "b", 20, 3)))
    t.run()
    assert t.rows("out") == []
    assert len(t.state("counts").all()) == 2
    t.send("visits", record((4, "a", 361, 4))).run()
    assert reported(t.rows("out")) == Counter(
        [
            ("a", 0, 300, 2, 3, ("v1", "v2"), "on_time", 0),
            ("b", 0, 300, 1, 3, ("v3",), "on_time", 0),
        ]
    )
    t.send("visits", record((5, "b", 299, 5)), record((6, "b", None, 6))).run()
    assert t.rows("out") == []
    assert sorted(r["id"] for r in t.rows("late")) == [5, 6]
    t.run(drain=True)
    assert reported(t.rows("out")) == Counter([("a", 300, 600, 1, 4, ("v4",), "on_time", 0)])
    assert t.state("counts").all() == []
    assert t.metrics("counts") == {"records_in": 6, "records_out": 3, "records_out_late": 2}


def test_rows_that_are_late_but_allowed_update_their_window(job_driver: Make) -> None:
    truth = Truth(size=300, delay=60, lateness=120)
    t = Reported(
        job_driver(counting(hg.tumbling("5 minutes"), allowed_lateness="2 minutes")), truth
    )
    t.run((1, "a", 10, 1), (2, "a", 365, 1))
    t.run((3, "a", 20, 7), (4, "b", 30, 1))
    t.run((5, "a", 40, 7), (6, "a", 500, 1))
    t.run((7, "a", 40, 7), (7, "a", 40, 7), (8, "a", 700, 7))
    t.run(drain=True)
    t.run((9, "a", 9000, 1))


def test_early_rows_do_not_take_the_place_of_the_last_one(job_driver: Make) -> None:
    early = [hg.every("2 minutes"), hg.after_count(3), hg.when("total > 40")]
    truth = Truth(
        size=900,
        delay=60,
        every=120,
        after=3,
        conditions=[(lambda rows: sum(row[3] or 0 for row in rows) > 40, True)],
    )
    t = Reported(job_driver(counting(hg.tumbling("15 minutes"), early=early)), truth)
    t.run((1, "a", 10, 1), (2, "a", 100, 1))
    t.run((3, "a", 190, 1), (4, "b", 190, 50))
    t.run((5, "b", 191, 1), (6, "c", 191, 3))
    t.run((7, "b", 192, 1))
    t.run((8, "b", 300, 1))
    t.run((9, "b", 310, 1))
    t.run((10, "a", 1000, 1))
    t.run(drain=True)


def test_a_condition_that_is_met_as_the_window_closes_is_told(
    job_driver: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "MAX_RECORDS", "1")  # each in a batch of its own
    early = [hg.after_count(2), hg.when("total > 40")]
    t = job_driver(counting(hg.tumbling("15 minutes"), early=early))
    t.send("visits", *[record(e) for e in ((1, "a", 10, 1), (2, "b", 1000, 1), (3, "a", 20, 50))])
    t.run()
    rows = [(r["page"], r["total"], r["fired_by"], r["pane"]) for r in t.rows("out")]
    assert sorted(rows) == [("a", 51, "early", 0), ("a", 51, "on_time", 1)]


def test_early_rows_wait_until_time_has_passed_inside_the_window(job_driver: Make) -> None:
    truth = Truth(size=300, delay=600, every=60)
    job = counting(hg.tumbling("5 minutes"), delay="10 minutes", early=hg.every("1 minute"))
    t = Reported(job_driver(job), truth)
    t.run((1, "a", 10, 1), (2, "a", 320, 1), (3, "b", 640, 1))  # the watermark is at 40
    assert t.driver.metrics("counts").get("records_out", 0) == 0
    t.run((4, "a", 700, 2))  # at 100: only the first window has begun
    assert t.driver.metrics("counts")["records_out"] == 1
    t.run((5, "a", 1020, 1))  # at 420: the first is over, the second has begun
    assert t.driver.metrics("counts")["records_out"] == 3
    t.run(drain=True)


def test_discarded_panes_have_what_came_since_the_last(job_driver: Make) -> None:
    truth = Truth(size=300, delay=60, after=2, discarding=True, lateness=60)
    job = counting(
        hg.tumbling("5 minutes"),
        early=hg.after_count(2),
        panes="discarding",
        allowed_lateness="1 minute",
    )
    t = Reported(job_driver(job), truth)
    t.run((1, "a", 10, 1), (2, "a", 100, 2))
    t.run((3, "a", 11, 4))
    t.run((4, "a", 370, 8), (5, "b", 20, 8), (6, "b", 20, 9))
    t.run((7, "a", 12, 3))
    t.run(drain=True)


def test_windows_slide_and_a_row_is_late_when_all_of_its_windows_are(job_driver: Make) -> None:
    truth = Truth(size=300, delay=60, slide=120)
    t = Reported(job_driver(counting(hg.sliding("5 minutes", every="2 minutes"))), truth)
    t.run((1, "a", 10, 1), (2, "a", 250, 2), (3, "b", 130, 3))
    t.run((4, "a", 500, 1))
    t.run((5, "a", 200, 1), (6, "a", 350, 1), (7, "b", 20, 1))
    t.run((8, "a", 800, 1))
    t.run(drain=True)


def test_sessions_begin_lengthen_and_join(job_driver: Make) -> None:
    truth = Truth(size=60, delay=30, session=True, lateness=100)
    job = counting(hg.session("1 minute"), delay="30 seconds", allowed_lateness="100 seconds")
    t = Reported(job_driver(job), truth)
    t.run((1, "a", 0, 1), (2, "a", 110, 2), (3, "b", 10, 3), (4, "a", 50, 4))
    t.run((5, "a", 300, 5))  # the first of a have ended
    t.run((6, "a", 240, 6), (7, "b", 65, 7))  # before the open one; lengthens one that is out
    t.run((8, "c", 100, 8), (9, "a", 180, 9), (10, "a", 420, 9))  # joins two
    t.run((11, "b", 0, 1), (12, "c", 101, 1))
    t.run(drain=True)
    assert t.driver.state("counts").all() == []
    assert t.driver.state("counts", "sessions").all() == []


def test_a_row_at_the_very_end_of_a_session_is_in_it_however_the_batches_were_cut(
    job_driver: Make,
) -> None:
    truth = Truth(size=60, delay=30, session=True)
    t = Reported(job_driver(counting(hg.session("1 minute"), delay="30 seconds")), truth)
    t.run((1, "a", 0, 1), (2, "b", 90, 2))  # the watermark is at 60, where a's session ends
    t.run((3, "a", 60, 3))
    t.run(drain=True)
    assert ("a", 0, 120, 2, 4, ("v1", "v3"), "on_time", 0) in truth.out


def test_early_rows_by_processing_time(job_driver: Make) -> None:
    early = hg.every("1 hour", clock="processing")
    t = job_driver(counting(hg.tumbling("15 minutes"), early=early))
    t.send("visits", record((1, "a", 10, 1)), record((2, "b", 10, 1))).run()
    first = t.rows("out")  # none, unless an hour has just begun
    t.advance_processing_time("61 minutes").run()
    rows = [*first, *t.rows("out")]
    assert [(r["page"], r["n"], r["fired_by"]) for r in sorted(rows, key=lambda r: r["page"])] == [
        ("a", 1, "early"),
        ("b", 1, "early"),
    ]
    t.advance_processing_time("61 minutes").run()
    assert t.rows("out") == []
    t.send("visits", record((3, "a", 20, 1))).run()
    t.advance_processing_time("61 minutes").run()
    assert [(r["page"], r["n"], r["pane"]) for r in t.rows("out")] == [("a", 2, 1)]
    t.run(drain=True)
    assert sorted((r["page"], r["fired_by"]) for r in t.rows("out")) == [
        ("a", "on_time"),
        ("b", "on_time"),
    ]


def test_windows_of_processing_time_need_no_event_time_and_close_without_input(
    job_driver: Make,
) -> None:
    @hg.job("by_clock")
    def by_clock(job: hg.Job) -> None:
        visits = job.source("visits", hg.topic("log:visits", schema=VISIT)).key_by("page")
        distinct = F.count_distinct("value").alias("values")
        listed = F.collect_list("id").alias("ids")
        for name, window in {
            "hourly": hg.tumbling("1 hour", clock="processing"),
            "visit": hg.session("30 minutes", clock="processing"),
        }.items():
            made = visits.window(name, window, distinct, listed)
            assert made.columns[:3] == ["page", "window_start", "window_end"]
            made.select("page", "values", "ids", "fired_by").sink(
                f"{name}_out", hg.topic(f"log:{name}")
            )

    t = job_driver(by_clock)
    t.send("visits", *[record((n, "a", None, n % 2)) for n in range(5)]).run()
    whole = {"page": "a", "values": 2, "ids": [0, 1, 2, 3, 4], "fired_by": "on_time"}
    (kept,) = t.state("visit").all()
    assert kept["key"]["page"] == "a"
    assert {"values", "ids"} <= set(kept["row"])
    hourly = t.rows("hourly_out")  # there already if an hour has just ended
    t.advance_processing_time("61 minutes").run()
    assert hourly + t.rows("hourly_out") == t.rows("visit_out") == [whole]
    assert t.state("hourly").all() == t.state("visit").all() == []


def test_functions_that_spark_takes_apart_can_stand_beside_others(job_driver: Make) -> None:
    even = F.count_if(F.col("value") % 2 == 0).alias("even")

    @hg.job("apart")
    def apart(job: hg.Job) -> None:
        visits = job.source(
            "visits",
            hg.topic("log:visits", schema=VISIT),
            event_time=hg.event_time("at", out_of_orderness="0 seconds"),
        ).key_by("page")
        n = F.count("*").alias("n")
        most = F.max("value").alias("most")
        early = hg.when(F.col("even") >= 2)
        by_time = visits.window("by_time", hg.tumbling("1 minute"), n, even, most, early=early)
        by_time.select("n", "even", "fired_by").sink("by_time_out", hg.topic("log:by_time"))
        by_count = visits.window("by_count", hg.count_window(3), n, even)
        by_count.select("n", "even").sink("by_count_out", hg.topic("log:by_count"))

    t = job_driver(apart)
    t.send("visits", *[record((n, "a", n, n)) for n in range(3)]).run()
    t.send("visits", record((9, "a", 30, 9))).advance_watermark("visits", time(60)).run()
    assert t.rows("by_time_out") == [
        {"n": 3, "even": 2, "fired_by": "early"}, {"n": 4, "even": 2, "fired_by": "on_time"},
    ]  # fmt: skip
    assert t.rows("by_count_out") == [{"n": 3, "even": 2}]
