"""Random scripts of events, timers, times to live, crashes and rescales: kernel and driver agree.

Each key has a script of its own, so one run of a job tries as many cases as there are keys.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

import headgate as hg
from headgate.testing import JobDriver, ProcessDriver
from headgate.testing.job_driver import CrashPoint

KEYS = int(os.environ.get("HEADGATE_PROCESS_CASES", "320"))
START = datetime(2026, 1, 1, 12)
OPS = [
    "set", "append", "put", "put", "drop", "clear", "forget", "alarm", "alarm", "second", "side",
    "both",
]  # fmt: skip
EVENT = "key STRING, number BIGINT, op STRING, arg BIGINT, at TIMESTAMP"


@dataclass
class Event:
    key: str
    number: int
    op: str
    arg: int
    at: datetime | None = None


@dataclass
class Part:
    name: str
    sizes: list[int]


@dataclass
class Kept:
    arg: int
    price: Decimal
    part: Part | None = None
    at: datetime | None = None

    def __repr__(self) -> str:  # a decimal that was stored is equal, but has more zeros
        return f"Kept({self.arg}, {self.price.normalize():f}, {self.part}, {self.at})"


@dataclass
class Reported:
    key: str
    turn: int
    what: str
    seen: str


class Fuzz(hg.Process):
    """Does what a row's op says, and tells all that it can see."""

    turn = hg.value_state(int)
    kept = hg.value_state(Kept, ttl="3 hours")
    names = hg.list_state(Part)
    recent = hg.list_state(int, ttl="3 hours")
    by_arg = hg.map_state(int, str)
    by_name = hg.map_state(str, Kept, ttl="3 hours")
    alarm = hg.timer("event")
    second = hg.timer("event")
    nap = hg.timer("processing")
    odd = hg.side_output(Kept)

    def reported(self, ctx: hg.Context, what: str) -> hg.Out[Reported]:
        turn = (self.turn.get() or 0) + 1
        self.turn.set(turn)
        seen = repr(
            (
                self.kept.get(), list(self.names), list(self.recent), list(self.by_arg.items()),
                list(self.by_name.items()), ctx.timestamp,
            )
        )  # fmt: skip
        yield Reported(ctx.key.key, turn, what, seen)

    def on_events(self, event: Event, ctx: hg.Context) -> hg.Out[Reported]:
        arg, op = event.arg, event.op
        if op == "set":
            part = Part(f"p{arg}", [arg, arg + 1]) if arg % 2 else None
            self.kept.set(Kept(arg, Decimal(arg) / 4, part, event.at))
        elif op == "append":
            self.names.append(Part(str(arg), list(range(arg % 4))))
            self.recent.extend([arg, arg * 2])
        elif op == "put":
            self.by_arg[arg] = f"v{event.number}"
            self.by_name[f"n{arg % 3}"] = Kept(event.number, Decimal(arg))
        elif op == "drop":
            self.by_arg.pop(arg, None)
            self.by_name.pop(f"n{arg % 3}", None)
        elif op == "clear":
            state = (self.kept, self.names, self.recent, self.by_arg, self.by_name)[arg % 5]
            state.clear()
        elif op == "forget":
            for gone in (self.kept, self.names, self.recent, self.by_arg, self.by_name):
                gone.clear()
        elif op == "alarm":
            assert ctx.timestamp is not None
            self.alarm.set(ctx.timestamp + timedelta(seconds=arg * 20 - 40))
        elif op == "second":
            assert ctx.timestamp is not None
            self.second.set(ctx.timestamp + timedelta(seconds=arg * 30))
        elif op == "side":
            yield self.odd(Kept(event.number, Decimal("0.5"), None, ctx.timestamp))
        elif op == "both":
            self.by_arg.clear()
            self.by_arg[arg] = "only"
            self.names.clear()
            self.names.append(Part("only", []))
        ctx.count(op)
        yield from self.reported(ctx, op)

    def on_others(self, row: Row, ctx: hg.Context) -> hg.Out[Reported]:
        if row.op == "nap":
            self.nap.set(ctx.processing_time + timedelta(hours=1))
        elif row.op == "cancel":
            self.alarm.cancel()
            self.nap.cancel()
        yield from self.reported(ctx, f"other {row.op} {row.number}")

    def on_alarm(self, ctx: hg.Context) -> hg.Out[Reported]:
        turn = self.turn.get() or 0
        if turn % 3 == 0 and ctx.timestamp is not None:
            # sets itself later or for the past, and another
            self.alarm.set(ctx.timestamp + timedelta(seconds=15 * (turn % 2) - 5))
            self.second.set(ctx.timestamp + timedelta(seconds=10))
        yield from self.reported(ctx, "alarm")

    def on_second(self, ctx: hg.Context) -> hg.Out[Reported]:
        self.alarm.cancel()
        yield from self.reported(ctx, "second")

    def on_nap(self, ctx: hg.Context) -> hg.Out[Reported]:
        turn = (self.turn.get() or 0) + 1
        self.turn.set(turn)
        yield Reported(ctx.key.key, turn, "nap", "")


@hg.job("fuzz")
def fuzz(job: hg.Job) -> None:
    events = job.source(
        "events", hg.topic("log:events", schema=EVENT), event_time=hg.event_time("at")
    )
    others = job.source("others", hg.topic("log:others", schema=EVENT))
    reported = job.process("fuzz", Fuzz(), events=events.key_by("key"), others=others.key_by("key"))
    reported.sink("reported", hg.topic("log:reported"))
    reported.side(Fuzz.odd).sink("odd", hg.topic("log:odd"))


class Script:
    """Batches of rows for all keys."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.number = 0
        self.newest = START

    def batch(self) -> tuple[list[Event], list[Event]]:
        """The rows of both inputs; those of a key are in one partition, so their order is known."""
        events, others = [], []
        base = self.newest
        for key in range(KEYS):
            if self.random.random() < 0.4:
                continue
            for _ in range(self.random.randint(1, 4)):
                self.number += 1
                row = Event(f"k{key}", self.number, "", self.random.randint(0, 6))
                if self.random.random() < 0.75:
                    row.op = self.random.choice(OPS)
                    row.at = base + timedelta(seconds=self.random.randint(0, 60))
                    self.newest = max(self.newest, row.at)
                    events.append(row)
                else:
                    row.op = self.random.choice(["nap", "cancel", "none"])
                    others.append(row)
        return events, others


def sent(job: JobDriver, events: Iterable[Event], others: Iterable[Event]) -> None:
    for name, rows in (("events", events), ("others", others)):
        for partition in (0, 1):
            mine = [row for row in rows if hash_of(row.key) == partition]
            if mine:
                job.send(name, *mine, partition=partition)


def hash_of(key: str) -> int:
    return int(key[1:]) % 2


def plain(rows: Iterable[Any]) -> list[str]:
    """Rows of both sides in one form: sorted, and times without their zone."""
    return sorted(repr(_plain(row)) for row in rows)


def _plain(value: Any) -> Any:
    if hasattr(value, "__dataclass_fields__"):
        value = dict(vars(value))
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in sorted(value.items())}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, Decimal):
        return value.quantize(Decimal("0.000001"))
    return value


LARGE = "spark.headgate.steps.process.large.entries"
# keys that share a hash, and rows of one hash that are more than are sorted at once
SHARED, GROUP = "spark.headgate.test.sort.lost.bits", "spark.headgate.sort.group.bytes"
STATES = ("turn", "kept", "names", "recent", "by_arg", "by_name")
Rows = tuple[list[Event], list[Event]]


class Both:
    """A job and the driver of its function, given the same."""

    def __init__(self, job: JobDriver) -> None:
        self.job, self.model = job, ProcessDriver(Fuzz())
        self.batches = 0

    def batch(self, rows: Rows, watermark: datetime, crash: CrashPoint | None = None) -> None:
        """Run rows that were sent; they and what timers give are compared."""
        events, others = rows
        # in every other batch the entries of lists and maps are asked for one by one
        conf = self.job.spark.conf
        conf.set(LARGE, "1" if self.batches % 2 else "1000")
        conf.set(SHARED, "61" if self.batches % 4 < 2 else "0")
        conf.set(GROUP, "1k" if self.batches % 3 == 0 else "8m")
        self.batches += 1
        reported = self.model.send_batch(
            [("events", e, {"key": e.key}, e.at) for e in events]
            + [("others", o.__dict__, {"key": o.key}, None) for o in others]
        )
        for _ in range(20):  # as often as the kernel runs a batch because timers are due
            reported += self.model.advance_watermark(watermark)
        if crash is not None:
            self.job.crash(at=crash).restore()
        self.job.run()
        self.same(reported)

    def time_passes(self) -> None:
        """Two hours: naps are over, and what was kept for three may be."""
        reported = self.model.advance_processing_time("2 hours")
        self.job.advance_processing_time("2 hours").run()
        self.same(reported)

    def same(self, reported: list[Any]) -> None:
        assert plain(self.job.rows("reported")) == plain(reported), f"batch {self.batches}"
        assert plain(self.job.rows("odd")) == plain(self.model.side("odd")), f"batch {self.batches}"


@pytest.mark.slow
def test_the_kernel_and_the_driver_agree(spark: SparkSession) -> None:
    script = Script(seed=11)

    def sending() -> Rows:
        rows = script.batch()
        sent(job, *rows)
        return rows

    with JobDriver(fuzz, parallelism=2) as job:
        both = Both(job)
        both.batch(sending(), script.newest)
        both.batch(sending(), script.newest, crash="before_sink")
        both.time_passes()
        both.batch(sending(), script.newest, crash="after_commit")
        agree(both)
        savepoint, saved = job.savepoint(), both.model.restored()
        job.restore(savepoint, parallelism=3)
        both.model = both.model.restored()
        first, then = sending(), script.newest
        both.batch(first, then, crash="after_sink")
        second = sending()
        both.batch(second, script.newest)
        # back in time: what came since the savepoint comes again, now in one batch
        job.restore(savepoint, parallelism=1)
        both.model = saved
        both.batch((first[0] + second[0], first[1] + second[1]), script.newest)
        job.restore(job.savepoint(), parallelism=2)
        both.batch(sending(), script.newest, crash="before_commit")
        both.time_passes()
        agree(both)
        counted = {k: n for k, n in job.metrics("fuzz").items() if not k.startswith("records_")}
        assert counted["set"] > KEYS / 10
        for name in (LARGE, SHARED, GROUP):
            job.spark.conf.unset(name)


def agree(both: Both) -> None:
    """Compare all states and pending timers."""
    job, model = both.job, both.model
    keys = [f"k{n}" for n in range(KEYS)]
    for name in STATES:
        found = {row["key"]["key"]: row[name] for row in job.state("fuzz", name).all()}
        wanted = {key: model.state(name, key={"key": key}) for key in keys}
        assert plain([[k, v] for k, v in found.items()]) == plain(
            [[k, v] for k, v in wanted.items() if v not in (None, [], {})]
        ), name
    for name in ("alarm", "second"):
        found = {row["key"]["key"]: row[name] for row in job.state("fuzz", name).all()}
        timers = {key: model.timers(key={"key": key}).get(name) for key in keys}
        assert plain([[k, v] for k, v in found.items()]) == plain(
            [[k, v] for k, v in timers.items() if v is not None]
        ), name
    naps = {row["key"]["key"] for row in job.state("fuzz", "nap").all()}
    assert naps == {key for key in keys if "nap" in model.timers(key={"key": key})}
