"""The first rows of keys and windows, and changes, over a random stream agree with plain Python.

One job has several steps over a stream of many keys. A case is one key's rows in one step: keys do
not touch each other, but share batches, watermark, crashes, restores and drain.
`HEADGATE_SEEDS` asks for more jobs, with other seeds.
"""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest
from pyspark.sql import functions as F

import headgate as hg
from headgate.connectors.log import connector as log
from headgate.snapshots.spark_log import read_entry
from headgate.testing import CrashPoint, JobDriver
from tests.steps.seeds import seeds
from tests.steps.top_truth import (
    ENDED,
    NEVER,
    Bid,
    Changes,
    SumTruth,
    TopTruth,
    WindowTopTruth,
    falling,
    rising,
)

START = datetime(2026, 1, 1, tzinfo=UTC)
KEYS = 520
ROWS = 3900
SECONDS = 900
DELAY = 20
COLUMNS = ("step", "key", "window_start", "window_end", "rank", "kind", "id", "price", "at")
WINDOWS = {"win": (60, 60, -7), "slide": (90, 30, 0)}


@hg.job("random")
def job(job: hg.Job) -> None:
    bids = job.source(
        "bids",
        hg.topic(
            "log:bids", schema="key STRING, kind STRING, id BIGINT, price BIGINT, at TIMESTAMP"
        ),
        event_time=hg.event_time("at", out_of_orderness=f"{DELAY} s"),
    )
    best = bids.key_by("key").top("best", 3, by=F.desc_nulls_last("price"))
    best.sink("best_out", hg.topic("log:best", key="to_json(struct(key, rank))"))
    sums = bids.key_by("key", "kind").aggregate(
        "sums", F.sum("price").alias("total"), F.count("*").alias("n"), having="total >= 0"
    )
    sums.sink("sums_out", hg.topic("log:sums", key="to_json(struct(key, kind))"))
    evens = sums.where("n % 2 = 0")
    evens.sink("evens_out", hg.topic("log:evens", key="to_json(struct(key, kind))"))
    kinds = sums.key_by("key").top("kinds", 2, by=[F.desc("total"), "kind"])
    kinds.sink("kinds_out", hg.topic("log:kinds", key="to_json(struct(key, rank))"))
    found = bids.lookup("found", sums.as_table(), on=["key", "kind"], take=["total"])
    within = {
        "win": hg.tumbling("60 s", offset="-7 s"),
        "slide": hg.sliding("90 s", every="30 s"),
    }
    first = bids.key_by("key").top("win", 2, by=F.desc_nulls_last("price"), within=within["win"])
    last = bids.key_by("key").top("slide", 3, by=["price", F.desc("id")], within=within["slide"])
    none = "CAST(NULL AS {}) AS {}"
    told = [
        rows.select(f"'{step}' AS step", *COLUMNS[1:])
        for step, rows in zip(WINDOWS, (first, last), strict=True)
    ]
    nothing = [none.format("TIMESTAMP", "window_start"), none.format("TIMESTAMP", "window_end")]
    for step, rows in zip(WINDOWS, (first.late, last.late), strict=True):
        rank = none.format("INT", "rank")
        told.append(rows.select(f"'{step}' AS step", "key", *nothing, rank, *COLUMNS[5:]))
    total = "CAST(total AS INT) AS rank"
    told.append(found.select("'found' AS step", "key", *nothing, total, *COLUMNS[5:]))
    told[0].union(*told[1:]).sink("told", hg.topic("log:told"))


@dataclass
class Truths:
    """All steps of the job in plain Python."""

    best: TopTruth = field(default_factory=lambda: TopTruth(3, falling))
    sums: SumTruth = field(default_factory=lambda: SumTruth(2))
    windows: dict[str, WindowTopTruth] = field(
        default_factory=lambda: {
            step: WindowTopTruth(n, order, *WINDOWS[step])
            for step, n, order in (("win", 2, falling), ("slide", 3, rising))
        }
    )
    cases: dict[str, set[Any]] = field(default_factory=dict)

    def batch(self, came: list[Bid], now: float) -> tuple[dict[str, Changes], list[Any]]:
        """What the sinks get: changes by sink, and rows."""
        by_rank = self.best.batch(came)
        sums, kinds, found = self.sums.batch(came)
        self.count(("best", "sums", "kinds", "found"), came)
        told = [("found", bid, None, total) for bid, total in found]
        for step, window in self.windows.items():
            told += [(step, bid, end, rank) for end, rank, bid in window.batch(came, now)]
            self.count((step,), came)
        return {
            "best_out": by_rank,
            "sums_out": sums,
            "evens_out": [(key, row if row and row[1] % 2 == 0 else None) for key, row in sums],
            "kinds_out": kinds,
        }, told

    def count(self, steps: Sequence[str], came: list[Bid]) -> None:
        for step in steps:
            self.cases.setdefault(step, set()).update(bid.key for bid in came)


def random_bids(dice: random.Random) -> list[Bid]:
    """Time goes on, with disorder and rows far behind; prices are often the same."""
    found, offsets = [], [0, 0]
    for id in range(ROWS):
        now = id * SECONDS // ROWS
        back = dice.randint(0, DELAY) if dice.random() < 0.85 else dice.randint(0, 500)
        key = None if dice.random() < 0.01 else f"k{dice.randrange(KEYS)}"
        price = None if dice.random() < 0.05 else dice.randint(-9, 12)
        part = dice.randrange(2)
        time = None if dice.random() < 0.01 else now - back
        found.append(Bid(id, key, dice.choice("abc"), price, time, (part, offsets[part])))
        offsets[part] += 1
    return found


class Story:
    """The job with its truths along its checkpoints."""

    def __init__(self, parallelism: int) -> None:
        self.driver = JobDriver(job, parallelism=parallelism)
        self.sent: tuple[list[Bid], list[Bid]] = ([], [])
        self.truths = Truths()
        self.done = -1
        self.kept: dict[str, tuple[int, Truths]] = {}
        self.compared: Counter[str] = Counter()

    def send(self, bids: list[Bid]) -> None:
        for part in range(2):
            mine = [bid for bid in bids if bid.place[0] == part]
            self.sent[part].extend(mine)
            self.driver.send("bids", *map(_record, mine), partition=part)

    def restore(self, checkpoint: str, parallelism: int) -> None:
        self.driver.restore(checkpoint, parallelism=parallelism)
        self.done, self.truths = copy.deepcopy(self.kept[checkpoint])

    def run(self, *, drain: bool = False) -> None:
        """Live through what was sent, and compare every change and row."""
        self.driver.run(drain=drain)
        home = self.driver._run_home
        wanted: dict[str, Counter[Any]] = {}
        told: Counter[Any] = Counter()
        for record in home.checkpoints():
            if record.id > self.done:
                changes, rows = self.truths.batch(*self._batch(record, read_entry(home, record.id)))
                for sink, made in changes.items():
                    wanted.setdefault(sink, Counter()).update(map(_due, made))
                told.update(self._row(*row) for row in rows)
                self.done = record.id
                self.kept[f"{home.id}/ck:{record.id}"] = copy.deepcopy((self.done, self.truths))
        for sink, due in wanted.items():
            got = Counter(_got(key, row) for key, row in self.driver.changes(sink))
            assert due == got, (sink, due - got, got - due)
            self.compared[sink] += got.total()
        got_rows = Counter(tuple(row[c] for c in COLUMNS) for row in self.driver.rows("told"))
        assert told == got_rows, (told - got_rows, got_rows - told)
        self.compared.update(row[0] for row in got_rows.elements())

    def _row(self, step: str, bid: Bid, end: int | None, rank: int | None) -> tuple[Any, ...]:
        start = None if end is None else _time(end - WINDOWS[step][0])
        rest = (bid.kind, bid.id, bid.price, _time(bid.time))
        return (step, bid.key, start, _time(end), rank, *rest)

    def _batch(self, record: Any, entry: Any) -> tuple[list[Bid], float]:
        offsets = record.sources["bids"]
        came = []
        for part, sent in enumerate(self.sent):
            start, end = (int(o.get(str(part), 0)) for o in (offsets.start, offsets.end))
            came += sent[start:end]
        if any('"drained":true' in line for line in entry.lines):
            return came, ENDED
        mark = entry.watermark_ms / 1000 - START.timestamp() if entry.watermark_ms else NEVER
        return came, mark

    def check_state(self) -> None:
        """Compare what the steps keep in the end: the first rows, and no windows."""
        for step in WINDOWS:
            assert self.driver.state(step).all() == []
        kept = Counter(
            (row["key"]["key"], row["row"]["id"], row["row"]["price"])
            for row in self.driver.state("best").all()
        )
        table = self.truths.best.table
        assert kept == Counter((key, bid.id, bid.price) for (key, _), bid in table.items())
        kinds = Counter(
            (row["key"]["key"], row["row"]["kind"]) for row in self.driver.state("kinds").all()
        )
        assert kinds == Counter(self.truths.sums.sums.keys())

    def check_counters(self) -> None:
        for step, window in self.truths.windows.items():
            counts = self.driver.metrics(step)
            sent = sum(map(len, self.sent))
            assert counts["records_in"] == sent
            assert counts["records_out"] == window.out
            assert counts["records_out_late"] == window.late


def _record(bid: Bid) -> dict[str, Any]:
    at = None if bid.time is None else _time(bid.time).isoformat()  # type: ignore[union-attr]
    return {"id": bid.id, "key": bid.key, "kind": bid.kind, "price": bid.price, "at": at}


def _time(seconds: int | None) -> datetime | None:
    return None if seconds is None else START + timedelta(seconds=seconds)


def _due(change: tuple[Any, Any]) -> str:
    """A change of a truth as text."""
    key, row = change
    if isinstance(row, Bid):
        row = (row.kind, row.id, row.price)
    return str((tuple(map(str, key)), row))


def _got(key: str | None, row: dict[str, Any] | None) -> str:
    """A change of a topic in the same form; the row of a sum or of a rank."""
    assert key is not None
    named = json.loads(key)
    parts = (named.get("key"), named.get("rank", named.get("kind")))
    value: Any = None
    if row is not None:
        assert {name: row[name] for name in named} == named
        names = ("kind", "id", "price") if "id" in row else ("kind", "total", "n")
        value = tuple(row[name] for name in names if name in row and name not in named)
    return str((tuple(map(str, parts)), value))


@pytest.mark.slow
@pytest.mark.parametrize("seed", seeds())
def test_tops_and_changes_agree_with_plain_python(seed: int, spark: object) -> None:
    dice = random.Random(seed)
    bids, story = random_bids(dice), Story(dice.choice([1, 2]))
    share = -(-len(bids) // 4)
    with pytest.MonkeyPatch.context() as patch, story.driver as driver:
        patch.setattr(log, "MAX_RECORDS", str(dice.randint(share // 3, share)))
        for number in range(4):
            last = number == 3
            if last:
                story.restore(dice.choice(list(story.kept)), parallelism=dice.choice([1, 3]))
            story.send(bids[number * share : (number + 1) * share])
            if number % 2:
                driver.crash(at=dice.choice(get_args(CrashPoint))).restore()
            story.run(drain=last)
        story.check_state()
        story.check_counters()
    assert all(len(keys) >= 500 for keys in story.truths.cases.values()), story.truths.cases.keys()
    assert all(window.late > 20 for window in story.truths.windows.values())
    assert min(story.compared.values()) > 500, story.compared
