"""Timers of event time: each is called once and in order, over crashes, restores and rescales."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.testing import JobDriver

NOON = datetime(2026, 1, 1, 12)
KEYS = 40
NAMES = ("first", "second", "third")


@dataclass
class Plan:
    """The seconds after noon at which the timers of a key are to be called."""

    key: str
    first: int | None = None
    second: int | None = None
    third: int | None = None
    at: datetime = NOON


@dataclass
class Called:
    key: str
    turn: int
    timer: str
    second: int
    clock: datetime


class Alarms(hg.Process):
    turn = hg.value_state(int)
    first = hg.timer("event")
    second = hg.timer("event")
    third = hg.timer("event")

    def on_plans(self, plan: Plan, ctx: hg.Context) -> hg.Out[Called]:
        for timer, second in (
            (self.first, plan.first),
            (self.second, plan.second),
            (self.third, plan.third),
        ):
            if second is not None:
                timer.set(NOON + timedelta(seconds=second))
        yield from self.called("row", ctx)

    def on_first(self, ctx: hg.Context) -> hg.Out[Called]:
        yield from self.called("first", ctx)

    def on_second(self, ctx: hg.Context) -> hg.Out[Called]:
        yield from self.called("second", ctx)

    def on_third(self, ctx: hg.Context) -> hg.Out[Called]:
        yield from self.called("third", ctx)

    def called(self, name: str, ctx: hg.Context) -> hg.Out[Called]:
        turn = (self.turn.get() or 0) + 1
        self.turn.set(turn)
        assert ctx.timestamp is not None
        second = round((ctx.timestamp - NOON).total_seconds())
        yield Called(ctx.key.key, turn, name, second, ctx.processing_time)


@hg.job("alarms")
def alarms(job: hg.Job) -> None:
    plans = job.source("plans", hg.topic("log:plans", schema=Plan), event_time=hg.event_time("at"))
    job.process("alarms", Alarms(), plans=plans.key_by("key")).sink("called", hg.topic("log:out"))


def truth(plans: list[Plan], after: float, until: float) -> dict[str, list[tuple[str, int]]]:
    """The timers of each key between two seconds, in the order of their times."""
    found = {}
    for plan in plans:
        times = [(s, NAMES.index(n), n) for n in NAMES if (s := getattr(plan, n)) is not None]
        due = [(n, s) for s, _, n in sorted(times) if after < s <= until]
        if due:
            found[plan.key] = due
    return found


def called(rows: list[dict[str, Any]]) -> dict[str, list[tuple[str, int]]]:
    """The timers that were called, by key and in the order in which they were."""
    found: dict[str, list[tuple[str, int]]] = {}
    for row in sorted(rows, key=lambda r: r["turn"]):
        if row["timer"] != "row":
            found.setdefault(row["key"], []).append((row["timer"], row["second"]))
    return found


@pytest.mark.slow
def test_timers_are_called_once_in_order_over_restores_and_rescales(spark: SparkSession) -> None:
    pick = random.Random(3)
    plans = [
        Plan(f"k{n}", *(pick.choice([None, pick.randint(-60, 300)]) for _ in NAMES))
        for n in range(KEYS)
    ]
    never, forever = float("-inf"), float("inf")
    with JobDriver(alarms, parallelism=2) as t:
        t.send("plans", *plans).run()
        rows = t.rows("called")
        batches = {row["clock"] for row in rows if row["timer"] == "row"}
        assert len(batches) == 1
        past = [row for row in rows if row["timer"] != "row"]
        assert called(past) == truth(plans, never, 0), "timers for the past"
        assert not batches & {row["clock"] for row in past}, "they come with the next batch"

        savepoint = t.savepoint()
        t.restore(savepoint, parallelism=3)
        t.advance_watermark("plans", NOON + timedelta(seconds=100)).run()
        assert called(t.rows("called")) == truth(plans, 0, 100)

        t.restore(savepoint, parallelism=1).run()
        assert called(t.rows("called")) == truth(plans, 0, 100), "from where the savepoint was"

        t.send("plans", Plan("late", first=-1000, at=NOON - timedelta(seconds=1000)))
        t.advance_watermark("plans", NOON + timedelta(seconds=200))
        t.crash(at="after_sink").restore().run()
        found = called(t.rows("called"))
        assert found.pop("late") == [("first", -1000)]
        assert found == truth(plans, 100, 200)

        t.run(drain=True)
        assert called(t.rows("called")) == truth(plans, 200, forever)
        assert {r["key"]["key"] for r in t.state("alarms").all()} == {
            "late",
            *(p.key for p in plans),
        }
        for name in NAMES:
            assert t.state("alarms", name).all() == []
