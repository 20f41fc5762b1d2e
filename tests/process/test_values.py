"""What a state gives back is what it was given, in the same batch and in later ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.base.errors import UsageError
from headgate.steps.process.codecs import TypeMistake
from headgate.testing import JobDriver, ProcessDriver

LARGE = "spark.headgate.steps.process.large.entries"


class Color(str, Enum):  # noqa: UP042 - not a StrEnum, whose text is its value
    RED = "red"


@dataclass
class Row:
    key: str
    n: int = 7


@dataclass
class Note:
    n: int
    text: str = "nothing"
    more: str | None = "something"


@dataclass
class Started:
    n: int
    twice: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        self.n += 100
        self.twice = 2 * self.n


@dataclass
class Seen:
    key: str
    text: str


class Odd(hg.Process):
    """Tells of values that are not quite as they were declared."""

    note = hg.value_state(Note)
    started = hg.value_state(Started)
    price = hg.value_state(Decimal)
    color = hg.value_state(str)
    at = hg.map_state(datetime, int)
    flags = hg.map_state(int, str)

    def on_rows(self, row: Row, ctx: hg.Context) -> hg.Out[Seen]:
        if self.note.get() is None:
            self.note.set(Note(1, None, None))  # type: ignore[arg-type]
            self.started.set(Started(1))
            self.price.set(Decimal("1.50"))
            self.color.set(Color.RED)
        zone = timezone(timedelta(hours=2))
        time = datetime(2026, 1, 1, 2, tzinfo=zone)
        self.at[time] = self.at.get(time, 0) + 1
        self.flags[True] = "yes"
        same = time.astimezone(UTC) in self.at and self.at[time] == self.at.get(time)
        text = f"{row.n} {self.note.get()} {self.started.get()} {self.price.get()} "
        text += f"{self.color.get()} {same} {dict(self.at)} {dict(self.flags)} {1.0 in self.flags}"
        yield Seen(row.key, text)
        del self.flags[True]
        yield Seen(Color.RED, f"{len(self.flags)} {self.flags.pop('x', None)}")  # type: ignore[call-overload]


@hg.job("odd")
def odd(job: hg.Job) -> None:
    rows = job.source("rows", hg.topic("log:rows", schema="key STRING, n BIGINT"))
    job.process("odd", Odd(), rows=rows.key_by("key")).sink("out", hg.topic("log:out"))


def lines(counts: range) -> list[tuple[str, str]]:
    found = []
    for count in counts:
        text = "7 Note(n=1, text='nothing', more=None) Started(n=101, twice=202) "
        text += "1.500000000000000000"
        at = {datetime(2026, 1, 1): count}
        found += [("a", f"{text} red True {at} {{1: 'yes'}} False"), ("red", "0 None")]
    return found


@pytest.mark.parametrize("cut", [1, 3])
def test_the_driver_gives_values_back_as_they_are_kept(cut: int) -> None:
    driver = ProcessDriver(Odd())
    rows: list[tuple[str, Any, Any, None]] = [("rows", {"key": "a", "n": None}, "a", None)] * 3
    given = [row for at in range(0, 3, cut) for row in driver.send_batch(rows[at : at + cut])]
    assert [(row.key, row.text) for row in given] == lines(range(1, 4))


@pytest.mark.parametrize("cut", [1, 3])
def test_the_kernel_does_so_too(spark: SparkSession, cut: int) -> None:
    with JobDriver(odd) as t:
        for _ in range(0, 3, cut):
            t.send("rows", *[{"key": "a", "n": None}] * cut).run()
        given = [(row["key"], row["text"]) for row in t.rows("out")]
    assert given == lines(range(1, 4))


class Fits(hg.Process):
    number = hg.value_state(int)
    price = hg.value_state(Decimal)

    def on_rows(self, row: Row, ctx: hg.Context) -> hg.Out[int]:
        self.number.set(2**row.n)
        self.price.set(Decimal(1) / Decimal(2**row.n))
        yield row.n


@pytest.mark.parametrize("n", [63, 20])
def test_a_number_that_does_not_fit_is_told_of_when_it_is_set(n: int) -> None:
    driver = ProcessDriver(Fits(), on_error="side")
    assert driver.send("rows", Row("a", 3), key="a") == [3]
    assert driver.send("rows", Row("a", n), key="a") == []
    [error] = driver.errors
    assert "that fits" in error["error"]
    assert driver.state("number", key="a") == 8
    with pytest.raises(TypeMistake, match="that fits"):
        ProcessDriver(Fits()).send("rows", Row("a", n), key="a")


class Replaced(hg.Process):
    seen = hg.value_state(int)

    def on_rows(self, row: Row, ctx: hg.Context) -> None:
        self.seen = row.n  # type: ignore[assignment]


def test_a_state_cannot_be_replaced_by_a_value() -> None:
    with pytest.raises(AttributeError, match="'seen' is declared by Replaced"):
        ProcessDriver(Replaced()).send("rows", Row("a"), key="a")


def test_a_record_without_a_field_that_is_wanted_is_refused() -> None:
    with pytest.raises(UsageError, match="has no 'key', which Row has"):
        ProcessDriver(Odd()).send("rows", {"kye": "a"}, key="a")


class Expiring(hg.Process):
    """Tells how many entries there are before it looks at any."""

    recent = hg.list_state(int, ttl="10 hours")
    by_number = hg.map_state(int, int, ttl="10 hours")

    def on_rows(self, row: Row, ctx: hg.Context) -> hg.Out[str]:
        if row.n:
            self.recent.extend(list(range(row.n)))
            self.by_number.update({100 * row.n + n: n for n in range(row.n)})
        yield f"{len(self.recent)} {len(self.by_number)}"


@hg.job("expiring")
def expiring(job: hg.Job) -> None:
    rows = job.source("rows", hg.topic("log:rows", schema=Row))
    job.process("expiring", Expiring(), rows=rows.key_by("key")).sink("out", hg.topic("log:out"))


@pytest.mark.parametrize("large", ["1", "1000"])
def test_what_is_over_is_not_counted_however_large_the_state(
    spark: SparkSession, large: str
) -> None:
    spark.conf.set(LARGE, large)
    try:
        driver, told = ProcessDriver(Expiring()), []
        with JobDriver(expiring) as t:
            for n, hours in ((3, 5), (4, 6), (0, 5), (0, 5), (2, 0)):
                told += driver.send("rows", Row("a", n), key="a")
                t.send("rows", Row("a", n)).run()
                driver.advance_processing_time(f"{hours} hours")
                t.advance_processing_time(f"{hours} hours")
            assert [row["value"] for row in t.rows("out")] == told
    finally:
        spark.conf.unset(LARGE)
    assert told == ["3 3", "7 7", "4 4", "0 0", "2 2"]
