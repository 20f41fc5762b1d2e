"""ProcessDriver: what handlers see and do, in plain Python."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import headgate as hg
from headgate.base.errors import NotFoundError, UsageError
from headgate.steps.process.codecs import TypeMistake
from headgate.testing import ProcessDriver

NOON = datetime(2026, 1, 1, 12)


def minutes(n: float) -> timedelta:
    return timedelta(minutes=n)


@dataclass
class Reading:
    sensor: str
    degrees: float
    at: datetime | None = None


@dataclass
class Reported:
    text: str
    time: datetime | None


class Watch(hg.Process):
    last = hg.value_state(Reading, ttl="10 minutes")
    history = hg.list_state(float, ttl="10 minutes")
    counts = hg.map_state(int, int, ttl="10 minutes")
    silence = hg.timer("event")
    nap = hg.timer("processing")
    jumps = hg.side_output(float)

    def on_readings(self, reading: Reading, ctx: hg.Context) -> hg.Out[Reported]:
        if reading.degrees < -273:
            self.last.set(Reading("changed", 0.0))
            self.history.append(0.0)
            self.counts[0] = 0
            self.nap.set(NOON)
            ctx.count("bad")
            yield Reported("before the error", None)
            raise ValueError("too cold")
        before = self.last.get()
        if before is not None:
            yield self.jumps(reading.degrees - before.degrees)
        self.last.set(reading)
        self.history.append(reading.degrees)
        whole = int(reading.degrees)
        self.counts[whole] = self.counts.get(whole, 0) + 1
        if ctx.timestamp is not None:
            self.silence.set(ctx.timestamp + minutes(5))
        yield Reported(
            f"{ctx.key[0]} {len(self.history)} {list(self.counts.items())}", ctx.timestamp
        )

    def on_commands(self, row, ctx: hg.Context) -> hg.Out[Reported]:  # type: ignore[no-untyped-def]
        if row.what == "nap":
            self.nap.set(ctx.processing_time + minutes(1))
        elif row.what == "forget":
            self.last.clear()
            self.history.clear()
            self.counts.clear()
            self.silence.cancel()
        elif row.what == "mutate":
            last = self.last.get()
            assert last is not None
            last.degrees = 1000.0  # not set, so not kept
        elif row.what == "wrong":
            yield "not a Reported"  # type: ignore[misc]
        elif row.what == "past":
            self.silence.set(NOON - minutes(60))
        return

    def on_silence(self, ctx: hg.Context) -> hg.Out[Reported]:
        yield Reported("silent", ctx.timestamp)
        if ctx.timestamp is not None and ctx.timestamp >= NOON:
            self.silence.set(ctx.timestamp + minutes(5))

    def on_nap(self, ctx: hg.Context) -> hg.Out[Reported]:
        yield Reported("awake", ctx.timestamp)


def test_a_row_changes_state_and_gives_rows() -> None:
    driver = ProcessDriver(Watch())
    assert driver.send("readings", Reading("a", 20.5), key="a", at=NOON) == [
        Reported("a 1 [(20, 1)]", NOON)
    ]
    # a dict is a row as well, and what is missing has its default
    reported = driver.send(
        "readings", {"sensor": "a", "degrees": 10}, key="a", at="2026-01-01T12:01"
    )
    assert reported == [Reported("a 2 [(10, 1), (20, 1)]", NOON + minutes(1))]
    assert driver.side("jumps") == [-10.5]
    assert driver.side("jumps") == []
    assert driver.state("last", key="a") == Reading("a", 10.0)
    assert driver.state("history", key="a") == [20.5, 10.0]
    assert driver.state("counts", key="a") == {10: 1, 20: 1}
    assert driver.state("last", key="b") is None
    assert driver.state("history", key="b") == [] and driver.state("counts", key="b") == {}
    assert driver.timers(key="a") == {"silence": NOON + minutes(6)}


def test_timers_fire_in_order_and_once_also_those_that_timers_set() -> None:
    driver = ProcessDriver(Watch())
    driver.send("readings", Reading("a", 1), key="a", at=NOON)
    driver.send("readings", Reading("b", 1), key="b", at=NOON - minutes(1))
    assert driver.advance_watermark(NOON + minutes(3)) == []
    # of b first, though a came first; each sets its next, which is due as well
    fired = driver.restored().advance_watermark(NOON + minutes(11))
    assert fired == driver.advance_watermark(NOON + minutes(11))
    assert [t.time for t in fired] == [NOON + minutes(n) for n in (4, 9, 5, 10)]
    assert driver.timers(key="a") == {"silence": NOON + minutes(15)}
    assert driver.advance_watermark(NOON + minutes(11)) == []


def test_a_timer_for_the_past_fires_with_the_next_batch() -> None:
    driver = ProcessDriver(Watch())
    driver.advance_watermark(NOON)
    assert driver.send("commands", {"what": "past"}, key="a") == []
    assert driver.send("commands", {"what": "none"}, key="b") == [
        Reported("silent", NOON - minutes(60))
    ]
    assert driver.timers(key="a") == {}


def test_processing_time_has_its_own_timers() -> None:
    driver = ProcessDriver(Watch(), processing_time=NOON)
    driver.send("commands", {"what": "nap"}, key="a")
    assert driver.advance_processing_time("59 seconds") == []
    assert driver.advance_processing_time("1 second") == [Reported("awake", NOON + minutes(1))]


def test_what_is_older_than_its_ttl_is_forgotten_entry_by_entry() -> None:
    driver = ProcessDriver(Watch(), processing_time=NOON)
    driver.send("readings", Reading("a", 1), key="a")
    driver.advance_processing_time("6 minutes")
    driver.send("readings", Reading("a", 2), key="a")
    driver.advance_processing_time("5 minutes")
    assert driver.state("history", key="a") == [2.0]
    assert driver.state("counts", key="a") == {2: 1}
    assert driver.state("last", key="a") == Reading("a", 2.0)
    assert driver.restored().state("history", key="a") == [2.0]
    driver.advance_processing_time("6 minutes")
    assert driver.state("last", key="a") is None
    for _ in range(2):  # looked at again at the latest after another ttl
        driver.advance_processing_time("10 minutes")
    assert driver._memory.states == {}


def test_only_what_is_set_is_kept() -> None:
    driver = ProcessDriver(Watch())
    driver.send("readings", Reading("a", 1), key="a", at=NOON)
    driver.send("commands", {"what": "mutate"}, key="a")
    assert driver.state("last", key="a") == Reading("a", 1.0)
    driver.send("commands", {"what": "forget"}, key="a")
    assert driver._memory.states == {}


def test_an_error_shows_the_users_line_and_keeps_nothing() -> None:
    driver = ProcessDriver(Watch())
    driver.send("readings", Reading("a", 1), key="a", at=NOON)
    with pytest.raises(ValueError, match="too cold") as caught:
        driver.send("readings", Reading("a", -300), key="a", at=NOON)
    (note,) = caught.value.__notes__
    assert note.startswith(f"on_readings failed at {__file__}:") and "key='a'" in note
    assert "Reading(sensor='a', degrees=-300" in note
    with pytest.raises(TypeMistake, match="what on_commands yields must be Reported, got str"):
        driver.send("commands", {"what": "wrong"}, key="a")
    assert driver.state("last", key="a") == Reading("a", 1.0)
    assert driver.timers(key="a") == {"silence": NOON + minutes(5)}


def test_an_error_can_go_aside() -> None:
    driver = ProcessDriver(Watch(), on_error="side")
    driver.send("readings", Reading("a", 1), key={"sensor": "a"}, at=NOON)
    before = driver._memory.states
    assert driver.send("readings", Reading("a", -300), key={"sensor": "a"}) == []
    assert driver._memory.states == before and driver.counts == {}
    (error,) = driver.errors
    assert error["handler"] == "on_readings" and error["key"] == "sensor='a'"
    assert error["error"] == "ValueError: too cold" and "-300" in error["row"]
    assert error["location"].startswith(__file__)


def test_mistakes_in_a_test_are_told() -> None:
    driver = ProcessDriver(Watch())
    with pytest.raises(NotFoundError, match="no input 'reading'"):
        driver.send("reading", Reading("a", 1), key="a")
    with pytest.raises(NotFoundError, match="no side output"):
        driver.side("jump")
    with pytest.raises(NotFoundError, match="no state"):
        driver.state("lasts", key="a")
    with pytest.raises(UsageError, match=r"the row for on_readings\.degrees must be float"):
        driver.send("readings", {"sensor": "a", "degrees": "hot"}, key="a")


class Forgetful(hg.Process):
    """Keeps what is lost between tasks, and what is not."""

    kept = hg.value_state(int)

    def __init__(self, service: list[str]) -> None:
        self.service = Service(service)
        self.seen: list[int] = []
        self.turn = 0

    def open(self) -> None:
        self.service.reported("open")

    def close(self) -> None:
        self.service.reported("close")

    def on_rows(self, row: Reading, ctx: hg.Context) -> hg.Out[str]:
        ctx.count("rows")
        self.turn += 1
        self.seen.append(self.turn)
        self.kept.set((self.kept.get() or 0) + 1)
        if row.degrees < 0:
            raise ValueError("too cold")
        yield f"{self.turn} {len(self.seen)} {self.kept.get()}"


@dataclass
class Service:
    calls: list[str]

    def reported(self, what: str) -> None:
        self.calls.append(what)


def test_attributes_of_a_function_last_as_long_as_a_batch() -> None:
    calls: list[str] = []
    driver = ProcessDriver(Forgetful(calls))
    row = Reading("s", 1.0)
    assert driver.send("rows", row, key="a") == ["1 1 1"]
    assert driver.send("rows", row, key="a") == ["1 1 2"]
    two = [("rows", row, "a", None), ("rows", row, "b", None)]
    assert driver.send_batch(two) == ["1 1 3", "2 2 1"]
    assert calls == ["open", "close"] * 3
    with pytest.raises(ValueError, match="too cold"):
        driver.send_batch([("rows", row, "a", None), ("rows", Reading("s", -1.0), "a", None)])
    assert calls == ["open", "close"] * 4
    assert driver.state("kept", key="a") == 3
    assert driver.counts == {"rows": 4}, "what was counted in a batch that failed is not kept"


@pytest.mark.parametrize(
    ("one", "other", "seen"),
    [
        (float("nan"), float("nan"), None),
        (0.0, -0.0, 0.0),
        (NOON, NOON.replace(tzinfo=UTC), NOON),
        (b"ab", bytearray(b"ab"), b"ab"),
        ({"a": 1, "b": NOON}, (1, NOON.replace(tzinfo=UTC)), None),
    ],
)
def test_keys_that_are_one_in_a_job_are_one(one: Any, other: Any, seen: Any) -> None:
    driver = ProcessDriver(Keys())
    first = driver.send("rows", Reading("s", 1.0), key=other)
    second = driver.send("rows", Reading("s", 1.0), key=one)
    assert [first[0][0], second[0][0]] == ["1", "2"]
    if seen is not None:
        assert first[0] == f"1 {seen!r}"


class Keys(hg.Process):
    count = hg.value_state(int)

    def on_rows(self, row: Reading, ctx: hg.Context) -> hg.Out[str]:
        self.count.set((self.count.get() or 0) + 1)
        yield f"{self.count.get()} {ctx.key[0]!r}"


class Ends(hg.Process):
    long = hg.value_state(int, ttl="7 days")
    short = hg.value_state(str, ttl="1 hour")

    def on_rows(self, row: Reading, ctx: hg.Context) -> None:
        if row.degrees:
            self.long.set(1)
        else:
            self.short.set("secret")


def test_a_short_time_to_live_does_not_wait_for_a_long_one() -> None:
    driver = ProcessDriver(Ends())
    driver.send("rows", Reading("s", 1.0), key="a")
    driver.send("rows", Reading("s", 0.0), key="a")
    driver.advance_processing_time("2 hours")
    (state,) = driver._memory.states.values()
    assert "secret" not in repr(state) and driver.state("long", key="a") == 1
