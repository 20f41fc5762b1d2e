"""State and memory stay what open windows need, however many windows have come and gone."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from pyspark.sql import functions as F

import headgate as hg
from headgate.connectors.log.files import Record
from headgate.home.layout import Home
from headgate.testing import JobDriver

VISIT = "id BIGINT, page STRING, at TIMESTAMP"
START = 1_700_000_100  # where a window of five minutes begins
WINDOW, SLIDE, GAP, DELAY, LATENESS = 300, 60, 45, 60, 120
CHUNKS, WINDOWS_A_CHUNK = 4, 50
PAGES = 20
# a garbage collector leaves more or less, and classes and code are loaded as they are needed
HEAP_NOISE = 60 << 20
# RocksDB takes memory for what is not yet in files in pieces of megabytes
MEMTABLE = 4 << 20
STORES = {"tumbling": ("default", "changed"), "sliding": ("default",),
          "sessions": ("default", "sessions")}  # fmt: skip
Visit = tuple[int, str, int]


@hg.job("many")
def many(job: hg.Job) -> None:
    visits = job.source(
        "visits",
        hg.topic("log:visits", schema=VISIT),
        event_time=hg.event_time("at", out_of_orderness=f"{DELAY} seconds"),
    )
    by_page = visits.key_by("page")
    n = F.count("*").alias("n")
    tumbling = by_page.window(
        "tumbling", hg.tumbling("5 minutes"), n, F.collect_set("id").alias("ids"),
        early=hg.every("2 minutes"), allowed_lateness=f"{LATENESS} seconds",
    )  # fmt: skip
    sliding = by_page.window("sliding", hg.sliding("5 minutes", every="1 minute"), n)
    sessions = by_page.window("sessions", hg.session(f"{GAP} seconds"), n)
    tumbling.where("NOT is_partial").sink("tumbling_out", hg.topic("log:tumbling_out"))
    sliding.sink("sliding_out", hg.topic("log:sliding_out"))
    sessions.sink("sessions_out", hg.topic("log:sessions_out"))


class Windows:
    """All windows of the visits so far, in plain Python: their ends, by step and page."""

    def __init__(self) -> None:
        self._visits: list[Visit] = []

    def add(self, visits: list[Visit]) -> None:
        self._visits += visits

    def ends(self) -> dict[str, list[int]]:
        tumbling, sliding = set(), set()
        by_page = defaultdict(list)
        for _, page, at in self._visits:
            tumbling.add((page, at // WINDOW * WINDOW + WINDOW))
            newest = at // SLIDE * SLIDE + WINDOW
            sliding |= {(page, newest - back * SLIDE) for back in range(WINDOW // SLIDE)}
            by_page[page].append(at)
        sessions = []
        for times in by_page.values():
            times.sort()
            sessions += [a + GAP for a, b in pairwise(times) if b - a > GAP]
            sessions.append(times[-1] + GAP)
        return {
            "tumbling": [end for _, end in tumbling],
            "sliding": [end for _, end in sliding],
            "sessions": sessions,
        }

    def open(self) -> dict[str, int]:
        """How many windows the state of each step must still have."""
        # a session is open until the watermark is beyond its end: a row at its end still joins it
        kept = {"tumbling": LATENESS, "sliding": 0, "sessions": 1}
        watermark = max(at for _, _, at in self._visits) - DELAY
        return {
            step: sum(end + kept[step] > watermark for end in ends)
            for step, ends in self.ends().items()
        }


def chunk_of(number: int, pick: random.Random) -> list[Visit]:
    """Fifty windows of five minutes, out of order by less than the bound."""
    length = WINDOWS_A_CHUNK * WINDOW
    first = START + number * length
    return [
        (number * length + second, f"page {pick.randrange(PAGES)}",
         first + second - pick.randrange(DELAY - 1))
        for second in range(0, length, 15)
    ]  # fmt: skip


def used_heap(driver: JobDriver) -> int:
    jvm: Any = driver.spark._jvm
    for _ in range(3):
        jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def state_of(driver: JobDriver) -> dict[str, dict[str, int]]:
    current = Home(driver.home).job("many").current()
    assert current is not None
    record = current.latest_checkpoint()
    assert record is not None
    return {step: dict(record.state[step]) for step in STORES}


@pytest.mark.slow
def test_state_and_memory_are_flat_over_two_hundred_windows(
    job_driver: Callable[..., JobDriver],
) -> None:
    t = job_driver(many)
    pick, truth = random.Random(4), Windows()
    heaps, sizes = [], []
    for number in range(CHUNKS):
        visits = chunk_of(number, pick)
        truth.add(visits)
        t.topic("visits").append(
            [Record(json.dumps({"id": id, "page": page, "at": _text(at)}))
             for id, page, at in visits], partition=0,
        )  # fmt: skip
        t.run()
        state = state_of(t)
        assert {step: state[step]["rows"] for step in STORES} == truth.open(), number
        heaps.append(used_heap(t))
        sizes.append({step: state[step]["bytes"] for step in STORES})
    # window 50 and window 200, by the same job in the same JVM
    print(f"heaps {[heap >> 20 for heap in heaps]} MB, state {sizes[0]} and {sizes[-1]} bytes")
    assert heaps[-1] < heaps[0] + HEAP_NOISE
    for step in STORES:
        assert sizes[-1][step] < 2 * sizes[0][step] + MEMTABLE, step
    for step, stores in STORES.items():
        kept = {store: len(t.state(step, store).all()) for store in stores}
        assert kept["default"] == truth.open()[step]
        assert kept.get("changed", 0) <= kept["default"]
        assert kept.get("sessions", kept["default"]) == kept["default"]
    t.run(drain=True)
    for step, stores in STORES.items():
        for store in stores:
            assert t.state(step, store).all() == [], f"{step}: {store}"
        assert state_of(t)[step]["rows"] == 0
        assert len(t.rows(f"{step}_out")) == len(truth.ends()[step]), step


def _text(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
