"""Random windows and random streams: what the property tests of windows are made of."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as F

import headgate as hg
from tests.steps.window_truth import Event, Truth

DELAY = 30
CLOCK = 3600
KINDS = ("tumbling", "sliding", "session", "count", "count_every")


def values_of(rows: Sequence[Event]) -> list[int]:
    return [value for *_, value in rows if value is not None]


def sum_of(values: Sequence[int]) -> int | None:
    return sum(values) if values else None


def median(rows: Sequence[Event]) -> int | None:
    values = sorted(values_of(rows))
    return values[(len(values) + 1) // 2 - 1] if values else None


def distinct(rows: Sequence[Event]) -> int:
    """What approx_count_distinct says of the values modulo 5 with the fewest registers, 16.

    Their hashes lie in five of them; of so few values it counts the registers that have none.
    """
    used = len({value % 5 for value in values_of(rows)})
    return round(16 * math.log(16 / (16 - used)))


def of_values(rows: Sequence[Event], modulus: int) -> set[int]:
    return {value % modulus for value in values_of(rows)}


def rank(value: int | None) -> int:
    return 1 if value is None else -(value % 3)


def by_third(rows: Sequence[Event]) -> list[tuple[int, int | None]]:
    return [(value % 3, id) for id, *_, value in rows if value is not None]


def usual(rows: Sequence[Event], modulus: int) -> int | None:
    """The value that is there most often; of several the least."""
    counts = Counter(value % modulus for value in values_of(rows))
    return min(counts, key=lambda value: (-counts[value], value)) if counts else None


@dataclass(frozen=True)
class Aggregate:
    """The same in Spark and in Python."""

    column: Callable[[], Column]
    of: Callable[[Sequence[Event]], Any]


AGGREGATES = {
    "n": Aggregate(lambda: F.count("*"), len),
    "ids": Aggregate(
        lambda: F.collect_set("id"), lambda rows: tuple(sorted(row[0] for row in rows))
    ),
    "total": Aggregate(lambda: F.sum("value"), lambda rows: sum_of(values_of(rows))),
    "mean": Aggregate(
        lambda: F.avg("value"),
        lambda rows: sum(v) / len(v) if (v := values_of(rows)) else None,
    ),
    "least": Aggregate(lambda: F.min("value"), lambda rows: min(values_of(rows), default=None)),
    "most": Aggregate(lambda: F.max("value"), lambda rows: max(values_of(rows), default=None)),
    "known": Aggregate(lambda: F.count("value"), lambda rows: len(values_of(rows))),
    "big": Aggregate(
        lambda: F.expr("sum(value) FILTER (WHERE value > 50)"),
        lambda rows: sum_of([value for value in values_of(rows) if value > 50]),
    ),
    "first_value": Aggregate(
        lambda: F.min_by("value", "id"), lambda rows: min(rows)[3] if rows else None
    ),
    "middle": Aggregate(lambda: F.percentile_approx("value", 0.5), median),
    "kinds": Aggregate(lambda: F.approx_count_distinct(F.col("value") % 5, 0.3), distinct),
    "names": Aggregate(
        lambda: F.collect_set(F.concat(F.lit("v"), F.col("value") % 5)),
        lambda rows: tuple(sorted({f"v{value % 5}" for value in values_of(rows)})),
    ),
}
ALWAYS = ("n", "ids")
# what Spark has not in streams, or not in an order that a replayed batch finds again
AGGREGATES |= {
    "sorts": Aggregate(
        lambda: F.count_distinct(F.col("value") % 5), lambda rows: len(of_values(rows, 5))
    ),
    "pairs": Aggregate(
        lambda: F.count_distinct(F.col("value") % 3, F.col("id") % 2),
        lambda rows: len({(value % 3, id % 2) for id, *_, value in rows if value is not None}),
    ),
    "weight": Aggregate(
        lambda: F.sum_distinct(F.col("value") % 7), lambda rows: sum_of(list(of_values(rows, 7)))
    ),
    "odd": Aggregate(
        lambda: F.expr("count(DISTINCT value) FILTER (WHERE value % 2 = 1)"),
        lambda rows: len({value for value in values_of(rows) if value % 2}),
    ),
    "listed": Aggregate(lambda: F.collect_list("value"), lambda rows: tuple(values_of(rows))),
    "sorted": Aggregate(
        lambda: F.sort_array(F.collect_list("value")), lambda rows: tuple(sorted(values_of(rows)))
    ),
    "joined": Aggregate(
        lambda: F.expr("listagg(CAST(value AS STRING), ',')"),
        lambda rows: ",".join(map(str, values_of(rows))) or None,
    ),
    "ranked": Aggregate(
        lambda: F.expr(
            "listagg(CAST(id AS STRING), ',') WITHIN GROUP (ORDER BY value % 3 DESC NULLS LAST)"
        ),
        lambda rows: (
            ",".join(str(row[0]) for row in sorted(rows, key=lambda row: rank(row[3]))) or None
        ),
    ),
    "opening": Aggregate(lambda: F.first("value"), lambda rows: rows[0][3] if rows else None),
    "latest": Aggregate(
        lambda: F.last("value", ignorenulls=True),
        lambda rows: values_of(rows)[-1] if values_of(rows) else None,
    ),
    "usual": Aggregate(lambda: F.mode(F.col("value") % 3), lambda rows: usual(rows, 3)),
    "top": Aggregate(
        lambda: F.max_by("id", F.col("value") % 3),
        lambda rows: max(by_third(rows), default=(0, None))[1],
    ),
    "bottom": Aggregate(
        lambda: F.min_by("id", F.col("value") % 3),
        lambda rows: min(by_third(rows), default=(0, None))[1],
    ),
}
DISTINCT = ("sorts", "pairs", "weight", "odd")
ORDERED = ("listed", "sorted", "joined", "ranked", "opening", "latest")
TIED = ("usual", "top", "bottom")
NEW = (*DISTINCT, *ORDERED, *TIED)
CONDITIONS: dict[str, Callable[[Sequence[Event]], bool]] = {
    "n >= 3": lambda rows: len(rows) >= 3,
    "n % 2 = 0": lambda rows: len(rows) % 2 == 0,
    "array_max(ids) % 3 = 1": lambda rows: bool(rows) and max(row[0] for row in rows) % 3 == 1,
}


@dataclass(frozen=True)
class Config:
    """A window step; times are in seconds, and `size` and `slide` of count windows are rows."""

    kind: str
    size: int
    slide: int = 0
    offset: int = 0
    lateness: int = 0
    every: int = 0
    clock: int = 0
    after: int = 0
    conditions: tuple[tuple[str, bool], ...] = ()
    discarding: bool = False
    processing: bool = False
    extra: tuple[str, ...] = ()

    @property
    def counts(self) -> bool:
        return self.kind.startswith("count")

    @property
    def aggregates(self) -> tuple[str, ...]:
        return (*ALWAYS, *self.extra)

    def columns(self) -> list[Column]:
        return [AGGREGATES[name].column().alias(name) for name in self.aggregates]

    def evaluate(self, rows: Sequence[Event]) -> tuple[Any, ...]:
        return tuple(AGGREGATES[name].of(rows) for name in self.aggregates)

    def truth(self) -> Truth | CountTruth:
        if self.counts:
            return CountTruth(self.size, self.slide, self.evaluate)
        return Truth(
            size=self.size, delay=DELAY, session=self.kind == "session", slide=self.slide,
            offset=self.offset, lateness=self.lateness, every=self.every, clock=self.clock,
            after=self.after, discarding=self.discarding, evaluate=self.evaluate,
            processing=self.processing,
            conditions=[(CONDITIONS[name], once) for name, once in self.conditions],
        )  # fmt: skip

    def window(self) -> hg.Window:
        if self.counts:
            return hg.count_window(self.size, every=self.slide)
        clock: Any = "processing" if self.processing else "event"
        if self.kind == "session":
            return hg.session(f"{self.size} s", clock=clock)
        shift = f"{self.offset} s"
        if self.kind == "sliding":
            return hg.sliding(f"{self.size} s", every=f"{self.slide} s", offset=shift, clock=clock)
        return hg.tumbling(f"{self.size} s", offset=shift, clock=clock)

    def options(self) -> dict[str, Any]:
        if self.counts:
            return {}
        early: list[Any] = [hg.when(name, once=once) for name, once in self.conditions]
        if self.every:
            early.append(hg.every(f"{self.every} s"))
        if self.clock:
            early.append(hg.every(f"{self.clock} s", clock="processing"))
        if self.after:
            early.append(hg.after_count(self.after))
        return {
            "early": early,
            "allowed_lateness": f"{self.lateness} s",
            "panes": "discarding" if self.discarding else "accumulating",
        }

    def tries(self) -> list[str]:
        """What a case of this step is a case of."""
        found = {
            "all": True,
            "distinct": not set(DISTINCT).isdisjoint(self.extra),
            "ordered": not set(ORDERED).isdisjoint(self.extra),
            "processing": self.processing,
        }
        return [what for what, tried in found.items() if tried]

    def stores(self) -> list[str]:
        """The stores in which the step keeps rows."""
        if self.counts:
            return ["default", "numbers"]
        notes = ["changed"] if self.every or self.clock else []
        return ["default", *notes, *(["sessions"] if self.kind == "session" else [])]


@dataclass
class CountTruth:
    """Windows of so many rows; they know nothing of time."""

    size: int
    every: int
    evaluate: Callable[[Sequence[Event]], tuple[Any, ...]]
    rows: dict[str, list[Event]] = field(default_factory=dict)
    out: list[tuple[Any, ...]] = field(default_factory=list)
    late: list[int] = field(default_factory=list)

    def batch(self, events: Sequence[Event], *, ended: bool = False, at: float = 0) -> None:
        for event in events:
            rows = self.rows.setdefault(event[1], [])
            rows.append(event)
            if len(rows) % self.every == 0:
                self._tell(event[1], rows)
        if ended:
            for key, rows in self.rows.items():
                if len(rows) % self.every:
                    last = -(-len(rows) // self.every) * self.every
                    self._tell(key, rows[max(0, last - self.size) :])
            self.rows = {}

    def _tell(self, key: str, rows: list[Event]) -> None:
        mine = rows[-self.size :]
        times = [at for _, _, at, _ in mine if at is not None]
        start, end = min(times, default=None), max(times, default=None)
        self.out.append((key, start, end, *self.evaluate(mine), "on_time", 0))


def random_config(dice: random.Random, kind: str) -> Config:
    old = [a for a in AGGREGATES if a not in ALWAYS and a not in NEW]
    more = dice.sample(TIED, dice.randint(0, 1))
    extra = (
        *dice.sample(old, dice.randint(0, 2)), dice.choice(DISTINCT), dice.choice(ORDERED), *more,
    )  # fmt: skip
    if kind == "count":
        size = dice.randint(1, 6)
        return Config(kind, size, size, extra=extra)
    if kind == "count_every":
        size = dice.randint(1, 8)
        return Config(kind, size, dice.randint(1, size), extra=extra)
    size = dice.randint(5, 60) if kind == "session" else dice.randint(20, 200)
    triggers = dice.choice(
        [(), (), *[(t,) for t in "eecaw"], ("e", "a"), ("w", "w"), tuple("ecaw")]
    )
    names = dice.sample(list(CONDITIONS), triggers.count("w"))
    slide = dice.randint(size // 4, size) if kind == "sliding" else 0
    shift = dice.randint(1 - (slide or size), (slide or size) - 1)
    return Config(
        kind,
        size,
        slide=slide,
        offset=shift if kind != "session" and dice.random() < 0.5 else 0,
        lateness=dice.choice([0, 0, 25, 100, 1000]),
        every=dice.choice([20, 90]) if "e" in triggers else 0,
        clock=CLOCK if "c" in triggers else 0,
        after=dice.choice([1, 2, 5]) if "a" in triggers else 0,
        conditions=tuple((name, dice.random() < 0.5) for name in names),
        discarding=dice.random() < 0.4,
        extra=extra,
    )


def by_clock(dice: random.Random) -> Config:
    """Windows of processing time, which goes on in hours here."""
    config = random_config(dice, dice.choice(["tumbling", "sliding", "session"]))
    return replace(
        config,
        size=60 * config.size,
        slide=60 * config.slide,
        offset=60 * config.offset,
        lateness=0,
        every=0,
        processing=True,
    )


def random_configs(dice: random.Random, count: int) -> list[Config]:
    """So many steps, of every kind as often as that goes."""
    kinds = [*KINDS, "session", "sliding", "tumbling"]
    dice.shuffle(kinds)
    return [random_config(dice, kinds[number % len(kinds)]) for number in range(count)]


@dataclass
class Habit:
    """How the rows of a key come."""

    weight: int
    behind: tuple[int, ...]
    no_time: float
    ties: float
    last: int = 0


def random_stream(
    dice: random.Random, keys: Sequence[str], rows: int, *, inside: bool
) -> list[Event]:
    """Rows as they arrive; each key has its own density, disorder, ties and rows without a time.

    `inside` keeps all disorder inside the bound.
    """
    late = (0, 0, 10, DELAY, 60, 400, 2000)
    habits = {
        key: Habit(
            weight=dice.choice([1, 3, 9]),
            behind=tuple(dice.choices(late[: 4 if inside else len(late)], k=4)),
            no_time=dice.choice([0, 0, 0.1]),
            ties=dice.choice([0, 0.2, 0.6]),
        )
        for key in keys
    }
    return list(_arrivals(dice, habits, rows, inside))


def _arrivals(
    dice: random.Random, habits: dict[str, Habit], rows: int, inside: bool
) -> Iterator[Event]:
    now = newest = 0
    steps = dice.choice([(0, 1, 2), (0, 5), (0, 0, 0, 20), (1, 300)])
    for id in range(rows):
        if dice.random() < 0.1:
            steps = dice.choice([(0, 1, 2), (0, 5), (0, 0, 0, 20), (1, 300)])
        now += dice.choice(steps)
        key = dice.choices(list(habits), [h.weight for h in habits.values()])[0]
        habit = habits[key]
        time = habit.last if dice.random() < habit.ties else now - dice.choice(habit.behind)
        time = max(0, time, newest - DELAY if inside else 0)
        habit.last = time
        newest = max(newest, time)
        value = None if dice.random() < 0.05 else dice.randrange(100)
        yield id, key, None if dice.random() < habit.no_time else time, value
