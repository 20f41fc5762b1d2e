"""What a handler changes in a value after it was set or yielded changes neither state nor rows."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.steps.process.types import codec_of
from headgate.testing import JobDriver, ProcessDriver


@dataclass
class Event:
    user: str
    id: int


@dataclass
class Total:
    user: str
    ids: list[int]
    by_digit: dict[str, int]


@dataclass(frozen=True)
class Place:
    x: int
    y: int


class Careless(hg.Process):
    """Keeps one object everywhere, yields it, and goes on changing it."""

    total = hg.value_state(Total)
    seen = hg.list_state(Total)
    last = hg.map_state(int, Total)
    again = hg.side_output(Total)

    def on_events(self, event: Event, ctx: hg.Context) -> hg.Out[Total]:
        total = self.total.get() or Total(event.user, [], {})
        total.ids.append(event.id)
        total.by_digit[str(event.id % 10)] = event.id
        self.total.set(total)
        self.seen.append(total)
        self.last[event.id % 2] = total
        yield total
        yield self.again(total)
        total.user = "changed after it was yielded"
        total.ids.clear()
        for kept in (self.total.get(), *self.seen, *self.last.values(), self.last.get(0)):
            if kept is not None:
                kept.ids.append(-1)
                kept.by_digit.clear()


@hg.job("careless")
def careless(job: hg.Job) -> None:
    events = job.source("events", hg.topic("log:events", schema="user STRING, id BIGINT"))
    totals = job.process("careless", Careless(), events=events.key_by("user"))
    totals.sink("totals", hg.topic("log:totals"))
    totals.side(Careless.again).sink("again", hg.topic("log:again"))


EVENTS = [Event(f"user {n % 3}", n * 7) for n in range(12)]


def truth() -> tuple[list[Total], dict[str, list[Total]]]:
    """What is yielded for each event, in order, and all of it by user."""
    rows: list[Total] = []
    by_user: dict[str, list[Total]] = {}
    for event in EVENTS:
        before = by_user.setdefault(event.user, [])
        ids = [*(before[-1].ids if before else []), event.id]
        rows.append(Total(event.user, ids, {str(id % 10): id for id in ids}))
        before.append(rows[-1])
    return rows, by_user


@pytest.mark.parametrize("at_once", [True, False])
def test_the_driver_keeps_and_gives_copies(at_once: bool) -> None:
    driver = ProcessDriver(Careless())
    calls: list[tuple[str, Any, Any, None]] = [("events", e, e.user, None) for e in EVENTS]
    batches = [calls] if at_once else [[call] for call in calls]
    given = [row for batch in batches for row in driver.send_batch(batch)]
    rows, by_user = truth()
    assert sorted(given, key=lambda t: (t.user, len(t.ids))) == sorted(
        rows, key=lambda t: (t.user, len(t.ids))
    )
    assert driver.side("again") == given
    for user, totals in by_user.items():
        assert driver.state("total", key=user) == totals[-1]
        assert driver.state("seen", key=user) == totals
        assert driver.state("last", key=user) == {t.ids[-1] % 2: t for t in totals}


def test_the_kernel_does_so_too(spark: SparkSession, tmp_path: Path) -> None:
    rows, by_user = truth()
    with JobDriver(careless) as t:
        for part in (EVENTS[:7], EVENTS[7:]):  # several rows of a key in a batch
            t.send("events", *part).run()
        for sink in ("totals", "again"):
            given = sorted(t.rows(sink), key=lambda r: (r["user"], len(r["ids"])))
            assert given == sorted(map(asdict, rows), key=lambda r: (r["user"], len(r["ids"])))
        for user, totals in by_user.items():
            assert t.state("careless", "total").get(user=user) == asdict(totals[-1])
            seen = t.state("careless", "seen").get(user=user)
            assert seen == [asdict(total) for total in totals]


def test_what_cannot_be_changed_is_not_copied() -> None:
    place, places = Place(1, 2), codec_of(Place)
    assert places.copy(place) is place
    copied = codec_of(list[Place]).copy([place])
    assert copied[0] is place
