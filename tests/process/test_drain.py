"""The end of event time goes through a whole chain: what it makes comes before what it calls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.testing import JobDriver, ProcessDriver

NOON = datetime(2026, 1, 1, 12)


@dataclass
class Reported:
    key: str
    n: int


class After(hg.Process):
    """Tells the sum of what has come when nothing more does for a day."""

    total = hg.value_state(int)
    quiet = hg.timer("event")

    def on_panes(self, pane: Row, ctx: hg.Context) -> None:
        assert ctx.timestamp is not None
        self.total.set((self.total.get() or 0) + pane.n)
        self.quiet.set(ctx.timestamp + timedelta(days=1))

    def on_quiet(self, ctx: hg.Context) -> hg.Out[Reported]:
        yield Reported(ctx.key.key, self.total.get() or 0)
        self.total.clear()


class Again(hg.Process):
    """Sets its timer again each time, which would never end."""

    calls = hg.value_state(int)
    tick = hg.timer("event")

    def on_reported(self, reported: Reported, ctx: hg.Context) -> None:
        self.calls.set(10 * reported.n)
        self.tick.set(NOON)

    def on_tick(self, ctx: hg.Context) -> hg.Out[Reported]:
        calls = (self.calls.get() or 0) + 1
        self.calls.set(calls)
        self.tick.set((ctx.timestamp or NOON) + timedelta(hours=1))
        yield Reported(ctx.key.key, calls)


@hg.job("chain")
def chain(job: hg.Job) -> None:
    events = job.source(
        "events", hg.topic("log:events", schema="key STRING, at TIMESTAMP"),
        event_time=hg.event_time("at"),
    )  # fmt: skip
    panes = events.key_by("key").window("minutes", hg.tumbling("1 minute"), F.count("*").alias("n"))
    reported = job.process("after", After(), panes=panes.key_by("key"))
    again = job.process("again", Again(), reported=reported.key_by("key"))
    reported.sink("reported_out", hg.topic("log:reported"))
    again.sink("again_out", hg.topic("log:again"))


def test_a_drain_calls_the_timers_that_its_own_rows_set(spark: SparkSession) -> None:
    with JobDriver(chain) as t:
        for key, minutes in (("a", 0), ("a", 0), ("b", 0), ("b", 5)):
            t.send("events", {"key": key, "at": (NOON + timedelta(minutes=minutes)).isoformat()})
        t.advance_watermark("events", NOON + timedelta(minutes=2)).run()
        assert t.state("after", "quiet").all() != [], "the first windows are closed"
        assert t.rows("reported_out") == []
        t.run(drain=True)
        # the last window of b comes before the timer that its first one had set
        assert sorted((r["key"], r["n"]) for r in t.rows("reported_out")) == [("a", 2), ("b", 2)]
        assert sorted((r["key"], r["n"]) for r in t.rows("again_out")) == [("a", 21), ("b", 21)]
        assert t.state("after").all() == []
        left = {row["key"]["key"]: row["tick"] for row in t.state("again", "tick").all()}
        assert sorted(left) == ["a", "b"], "what is set again is left"


def test_the_driver_does_the_same_at_the_end_of_time() -> None:
    driver = ProcessDriver(Again())
    driver.advance_watermark(datetime.max)
    assert driver.send("reported", Reported("a", 2), key={"key": "a"}) == [Reported("a", 21)]
    assert driver.timers(key={"key": "a"}) == {"tick": NOON + timedelta(hours=1)}
