"""Owns `make bench-durability`: what it costs that checkpoints survive a power cut.

python -m bench.durability --rounds 6

The store job (two lookups, three sinks) runs in one process, in turn with checkpoints that are
synced (``durability="disk"``) and that are not (``"process"``): once over many orders in large
batches, once over few in small ones. Each round begins with the other of the two.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

import headgate as hg
from bench.data import Segment, Sizes, item_line, order_lines, user_line
from bench.tws import ITEM, ORDER, USER
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from headgate.runtime.run import run
from headgate.runtime.session import get_session

Durability = Literal["disk", "process"]
MODES: tuple[Durability, Durability] = ("process", "disk")
JOB = "bench_durability"
_USERS, _ITEMS = 50_000, 10_000
_PARTITIONS = 2
_WARM = 10  # small batches at the start of a run that do not count: tables are loaded, code is cold


def main() -> int:
    """Fill the topics, run all rounds, print the ratio and the difference."""
    parser = argparse.ArgumentParser(prog="bench.durability", description="synced or not")
    parser.add_argument("--orders", type=int, default=1_500_000, help="of the throughput")
    parser.add_argument("--batch", type=int, default=150_000, help="orders in a large batch")
    parser.add_argument("--batches", type=int, default=80, help="small ones in a run")
    parser.add_argument("--small", type=int, default=200, help="orders in a small batch")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--folder", type=Path, help="where topics and homes are written")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-durability-", dir=options.folder))
    try:
        _say(f"one fsync of a new file of 1 KB takes {_fsync_ms(folder):.2f} ms here (median)")
        bench = Bench(folder)
        bench.fill("many", options.orders)
        bench.fill("few", options.small * (options.batches + _WARM))
        bench.warm_up(options.small, options.batch)
        bench.throughput(options.orders, options.batch, options.rounds)
        bench.latency(options.small, options.rounds)
        bench.spark.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


class Bench:
    """One session, its topics, and runs of the job in homes that nobody has used."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        conf = {"spark.driver.memory": "4g", "spark.local.dir": str(folder / "local")}
        self.spark: SparkSession = get_session(master="local[2]", conf=conf)

    def fill(self, name: str, orders: int) -> None:
        """Make the tables, once, and a topic of orders."""
        sizes = Sizes(orders=orders, users=_USERS, items=_ITEMS)
        if not (self._folder / "users").exists():
            self._write("users", (user_line(n) for n in range(_USERS)))
            self._write("items", (item_line(n) for n in range(_ITEMS)))
        self._write(name, order_lines(sizes, Segment("orders", 0, 0, orders, 0, 0)))

    def warm_up(self, small: int, batch: int) -> None:
        """Let the JVM compile what both need: the first rounds are a third slower without it."""
        for mode in MODES:
            self._run(mode, "few", small)
            self._run(mode, "many", batch)

    def throughput(self, orders: int, batch: int, rounds: int) -> None:
        """Orders a second in large batches; the first one of a run loads the tables."""
        rates: dict[Durability, list[float]] = {mode: [] for mode in MODES}
        for mode in _turns(rounds):
            times, rows = self._run(mode, "many", batch)
            assert sum(rows) == orders, f"{sum(rows)} of {orders} orders were read"
            rates[mode].append(sum(rows[1:]) / (sum(times[1:]) / 1000))
            _say(f"{mode}: {rates[mode][-1]:,.0f} orders/s")
        disk, process = (statistics.median(rates[mode]) for mode in ("disk", "process"))
        # The machine drifts over minutes; the two runs of a round are seconds apart.
        pairs = [d / p for d, p in zip(rates["disk"], rates["process"], strict=True)]
        by_rounds = f"{statistics.median(pairs):.3f} ({min(pairs):.2f} to {max(pairs):.2f})"
        _say(f"throughput: disk {disk:,.0f}/s, process {process:,.0f}/s, medians of {rounds} "
             f"rounds in turn: ratio {disk / process:.3f}; by rounds {by_rounds}")  # fmt: skip

    def latency(self, small: int, rounds: int) -> None:
        """How long a small batch takes, from its trigger to its commit."""
        took: dict[Durability, list[list[int]]] = {mode: [] for mode in MODES}
        for mode in _turns(rounds):
            times, _ = self._run(mode, "few", small)
            took[mode].append(times[_WARM:])
            _say(f"{mode}: median {statistics.median(took[mode][-1]):.0f} ms a batch")
        pairs = [
            statistics.median(disk) - statistics.median(process)
            for disk, process in zip(took["disk"], took["process"], strict=True)
        ]
        disk, process = ([t for round in took[mode] for t in round] for mode in ("disk", "process"))
        _say(f"small batches ({small} orders, {len(disk)} of each): disk {_spread(disk)}, process "
             f"{_spread(process)}: {statistics.median(disk) - statistics.median(process):+.1f} ms, "
             f"by rounds {statistics.median(pairs):+.1f} ms")  # fmt: skip

    def _run(self, mode: Durability, orders: str, batch: int) -> tuple[list[int], list[int]]:
        """Milliseconds and orders of each batch of one run."""
        place = Path(tempfile.mkdtemp(dir=self._folder))
        outcome = run(self._job(mode, orders, batch, place), home=str(place / "home"),
                      bounded=True, spark=self.spark)  # fmt: skip
        if outcome.error is not None:
            raise outcome.error
        current = Home(str(place / "home")).job(JOB).current()
        assert current is not None
        records = current.checkpoints()
        shutil.rmtree(place, ignore_errors=True)  # a store that is closed may still write there
        rows = [record.rows.get("orders", {}).get("records_out", 0) for record in records]
        return [record.duration_ms or 0 for record in records], rows

    def _job(self, mode: Durability, orders: str, batch: int, place: Path) -> hg.JobDef:
        def read(name: str, schema: str, **more: str) -> hg.Topic:
            return hg.topic(f"log:{self._folder / name}", schema=schema, **more)

        @hg.job(JOB, checkpoints=hg.Checkpoints(every="10 milliseconds", durability=mode))
        def job(job: hg.Job) -> None:
            source = job.source("orders", read(orders, ORDER, max_records=str(batch)))
            users = job.table("users", read("users", USER), key="id")
            items = job.table("items", read("items", ITEM), key="id")
            with_user = source.lookup("by_user", users, on="userId", into="user", missing="side")
            found = with_user.lookup("by_item", items, on="itemId", into="item", missing="side")
            found.sink("enriched", hg.topic(f"log:{place}/enriched"))
            with_user.missing.sink("no_user", hg.topic(f"log:{place}/no_user"))
            found.missing.sink("no_item", hg.topic(f"log:{place}/no_item"))

        return job

    def _write(self, name: str, lines: Iterator[str]) -> None:
        topic = TopicFiles(self._folder / name)
        topic.create(_PARTITIONS)
        made = list(lines)
        for partition in range(_PARTITIONS):
            topic.append([Record(line) for line in made[partition::_PARTITIONS]], partition)


def _turns(rounds: int) -> Iterator[Durability]:
    for number in range(rounds):
        yield from MODES if number % 2 == 0 else reversed(MODES)


def _spread(times: list[int]) -> str:
    found = sorted(times)
    return f"p50 {found[len(found) // 2]} ms, p90 {found[len(found) * 9 // 10]} ms"


def _fsync_ms(folder: Path) -> float:
    took = []
    for number in range(50):
        handle = os.open(folder / f"probe{number}", os.O_CREAT | os.O_WRONLY)
        os.write(handle, b"x" * 1000)
        began = time.perf_counter()
        os.fsync(handle)
        took.append((time.perf_counter() - began) * 1000)
        os.close(handle)
    return statistics.median(took)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
