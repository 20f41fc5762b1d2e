"""Times that would not fit any more stay at the end of time, and durations are reasonable."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from pyspark.sql import functions as F

import headgate as hg
from headgate.base.errors import GraphError, UsageError
from headgate.connectors.log import connector as log
from headgate.testing import JobDriver

Make = Callable[..., JobDriver]
END = 2**63 - 1
"""The last microsecond, in the year 294247."""
MINUTE = 60_000_000
NOON = 1_767_268_800_000_000
KINDS = {
    "tens": hg.tumbling("10 minutes"),
    "slides": hg.sliding("10 minutes", every="4 minutes"),
    "visits": hg.session("10 minutes"),
}


@hg.job("ends_of_time")
def ends_of_time(job: hg.Job) -> None:
    rows = job.source(
        "rows",
        hg.topic("log:rows", schema="id BIGINT, us BIGINT"),
        event_time=hg.event_time("timestamp_micros(us)"),
    )
    for name, window in KINDS.items():
        made = rows.key_by().window(
            name, window, F.collect_set("id").alias("ids"), allowed_lateness="36500 days"
        )
        ended = made.select("ids", "unix_micros(window_end) AS end", "is_partial")
        ended.sink(f"{name}_out", hg.topic("log:out"))
        made.late.sink(f"{name}_late", hg.topic("log:late"))


@hg.job("minutes")
def minutes(job: hg.Job) -> None:
    rows = job.source(
        "rows", hg.topic("log:rows", schema="at TIMESTAMP"), event_time=hg.event_time("at")
    )
    made = rows.key_by().window("minutes", hg.tumbling("1 minute"), F.count("*").alias("n"))
    made.select("n", "window_start AS at").sink("out", hg.topic("log:out"))
    made.late.sink("late", hg.topic("log:late"))


def test_a_drain_after_a_batch_without_rows_reads_what_has_come_since(
    job_driver: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log, "MAX_RECORDS", "1")
    t = job_driver(minutes)
    t.send("rows", {"at": "2026-01-01T12:00:00Z"}).run()
    t.crash(at="before_commit")  # each start makes a batch, also without rows
    t.send("rows", *[{"at": f"2026-01-01T12:0{minute}:00Z"} for minute in range(1, 6)])
    t.restore().run(drain=True)
    assert t.rows("late") == []
    assert sorted(row["at"].minute for row in t.rows("out")) == [0, 1, 2, 3, 4, 5]


def windows(t: JobDriver, sink: str) -> set[tuple[int, tuple[int, ...]]]:
    return {(r["end"], tuple(sorted(r["ids"]))) for r in t.rows(f"{sink}_out")}


@pytest.mark.slow
def test_the_last_windows_end_with_time_itself(job_driver: Make) -> None:
    t = job_driver(ends_of_time)
    t.send("rows", {"id": 1, "us": NOON}, {"id": 2, "us": END - 40 * MINUTE}).run()
    t.send("rows", {"id": 3, "us": END - 5}, {"id": 4, "us": END}).run()
    t.run(drain=True)
    size, slide = 10 * MINUTE, 4 * MINUTE
    old = END - 40 * MINUTE

    def sliding(at: int) -> list[int]:
        ends = [s + size for s in range(at - at % slide, at - size, -slide)]
        return [min(end, END) for end in ends]

    assert windows(t, "tens") == {
        (NOON + size, (1,)), (old - old % size + size, (2,)), (END, (3, 4)),
    }  # fmt: skip
    truth: dict[int, set[int]] = {}
    for id, at in ((1, NOON), (2, old), (3, END - 5), (4, END)):
        for end in sliding(at):
            truth.setdefault(end, set()).add(id)
    assert windows(t, "slides") == {(end, tuple(sorted(ids))) for end, ids in truth.items()}
    assert windows(t, "visits") == {(NOON + size, (1,)), (old + size, (2,)), (END, (3, 4))}
    for name in KINDS:
        assert t.rows(f"{name}_late") == []


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: hg.Wait("106751990 days"),
        lambda: hg.Wait(timedelta(days=36_501)),
        lambda: hg.Wait("999999999999999 days"),
        lambda: hg.session("40000 days"),
        lambda: hg.event_time("at", out_of_orderness="5300 weeks"),
        lambda: hg.event_time("at", idle_after="106751990 days"),
        lambda: hg.value_state(int, ttl="36501 days"),
    ],
)
def test_a_duration_of_more_than_a_hundred_years_is_refused(wrong: Callable[[], object]) -> None:
    with pytest.raises(
        (UsageError, GraphError), match=r"must be at most 100 years \(36,500 days\)"
    ):
        wrong()


def test_a_lateness_of_more_than_a_hundred_years_is_refused(spark: object) -> None:
    @hg.job("never")
    def never(job: hg.Job) -> None:
        rows = job.source(
            "rows", hg.topic("log:rows", schema="at TIMESTAMP"), event_time=hg.event_time("at")
        )
        rows.key_by().window(
            "w", hg.tumbling("1 minute"), F.count("*").alias("n"), allowed_lateness="106751990 days"
        ).sink("out", hg.topic("log:out"))

    with pytest.raises(
        (UsageError, GraphError), match="allowed_lateness must be at most 100 years"
    ):
        never.describe()
