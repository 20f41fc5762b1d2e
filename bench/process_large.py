"""Owns two questions of the process bench: what pending timers and large maps cost a batch.

Each is one job in a process of its own. Its batches are compared with batches of the same job at
another time, so that what differs is what is asked about.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import headgate as hg
from bench.process import run_measured

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AT_MS = 1_469_834_917_000
_FAR = datetime(2100, 1, 1)
_BATCH = 10_000
_BATCHES = 30
# The first batches after a load have its compactions beside them.
_LEFT_OUT = 10
_WAIT_SECONDS = 600.0


def pending_timers(work: Path, timers: int) -> dict[str, float]:
    """Milliseconds of a batch without timers, with so many that are not due, and without again."""
    return _measured("timers", work, timers)


def large_map(work: Path, entries: int) -> dict[str, float]:
    """Milliseconds of a batch with one event, which touches one entry of a map or all of them."""
    return _measured("map", work, entries)


def _measured(question: str, work: Path, size: int) -> dict[str, float]:
    folder = work / f"process-{question}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    ran = run_measured(
        [sys.executable, "-m", "bench.process_large", question, str(folder), str(size)],
        log=work / f"process-{question}.log",
        env={"PYTHONPATH": os.pathsep.join(sys.path), "PYSPARK_PYTHON": sys.executable},
        on_line=lambda line: print(f"  {line}", flush=True) if line.startswith("median") else None,
    )
    shutil.rmtree(folder)
    found = next(line for line in reversed(ran.lines) if line.startswith("RESULT "))
    result: dict[str, float] = json.loads(found.removeprefix("RESULT "))
    return result


# ------------------------------------------------------------- in the process that is measured


@dataclass
class Visit:
    """An event; `what` is what it does to its user's timer."""

    user: int
    at: int
    what: str


class Watch(hg.Process):
    """Counts visits, and has a timer that may be set."""

    seen = hg.value_state(int)
    deadline = hg.timer("event")

    def on_visits(self, visit: Visit, ctx: hg.Context) -> hg.Out[int]:
        seen = (self.seen.get() or 0) + 1
        self.seen.set(seen)
        if visit.what == "set":
            self.deadline.set(_FAR)
        elif visit.what == "cancel":
            self.deadline.cancel()
        yield seen

    def on_deadline(self, ctx: hg.Context) -> hg.Out[int]:
        yield -1


@dataclass
class Sale:
    """An event; `what` is whether one entry or all are looked at."""

    user: int
    item: int
    what: str


class Tally(hg.Process):
    """Counts the sales of each item of a user."""

    items = hg.map_state(int, int)

    def on_sales(self, sale: Sale, ctx: hg.Context) -> hg.Out[int]:
        if sale.what == "all":
            yield sum(self.items.values())
        else:
            self.items[sale.item] = self.items.get(sale.item, 0) + 1
            yield self.items[sale.item]


class _Running:
    """A job that runs while its topic is written to, and the times of its batches."""

    def __init__(self, folder: Path, spark: SparkSession, job: hg.JobDef) -> None:
        from headgate.connectors.log.files import TopicFiles

        self._topic = TopicFiles(folder / "in")
        self._topic.create(2)
        self._spark = spark
        self._handle = hg.start(job, spark=spark, home=str(folder / "home"))
        self._sent = 0
        self._times: dict[int, tuple[int, int]] = {}

    def send(self, rows: Iterable[Visit | Sale]) -> float:
        """Send events and wait until they are taken; milliseconds of their batches, summed."""
        from headgate.connectors.log.files import Record

        before = sum(ms for _, ms in self._times.values())
        records = [Record(json.dumps(asdict(row)), str(row.user)) for row in rows]
        self._sent += len(records)
        self._topic.append(records)
        end = time.monotonic() + _WAIT_SECONDS
        while sum(rows for rows, _ in self._times.values()) < self._sent:
            if not self._handle.running:
                self._handle.wait()
            if time.monotonic() > end:
                raise TimeoutError("the job does not take its events")
            time.sleep(0.02)
            for query in self._spark.streams.active:
                for p in query.recentProgress:
                    if p.numInputRows:
                        self._times[p.batchId] = p.numInputRows, p.durationMs["triggerExecution"]
        return sum(ms for _, ms in self._times.values()) - before

    def median(
        self, name: str, batches: Iterable[Iterable[Visit | Sale]], left_out: int = _LEFT_OUT
    ) -> float:
        """The median of several batches, the first of which do not count."""
        times = [self.send(batch) for batch in batches][left_out:]
        found = statistics.median(times)
        spread = f"{min(times):.0f} to {max(times):.0f}"
        print(f"median {found:.0f} ms ({spread}, {len(times)} batches): {name}", flush=True)
        return found

    def stop(self) -> None:
        self._handle.stop(savepoint=False)


def _timers(folder: Path, spark: SparkSession, size: int) -> dict[str, float]:
    @hg.job("bench_timers", checkpoints=hg.Checkpoints(every="50 ms"))
    def job(job: hg.Job) -> None:
        visits = job.source(
            "visits",
            hg.topic(f"log:{folder / 'in'}", schema=Visit),
            event_time=hg.event_time("timestamp_millis(at)", out_of_orderness="1 second"),
        )
        seen = job.process("watch", Watch(), visits=visits.key_by("user"))
        seen.sink("seen", hg.topic(f"log:{folder / 'out'}"))

    times = iter(range(_AT_MS, 2 * _AT_MS))

    def all_users(what: str) -> Iterator[Visit]:
        return (Visit(user, next(times), what) for user in range(size))

    def some_users() -> Iterator[Iterator[Visit]]:
        step = max(1, size // _BATCH)
        for number in range(_BATCHES):
            users = range(number % step, size, step)
            yield (Visit(user, next(times), "") for user in users)

    running = _Running(folder, spark, job)
    found = {}
    for name, what in (("before", ""), ("pending", "set"), ("after", "cancel")):
        running.send(all_users(what))
        pending = size if what == "set" else 0
        found[name] = running.median(f"{pending:,} pending timers", some_users())
    running.stop()
    return found


def _map(folder: Path, spark: SparkSession, size: int) -> dict[str, float]:
    @hg.job("bench_map", checkpoints=hg.Checkpoints(every="50 ms"))
    def job(job: hg.Job) -> None:
        sales = job.source("sales", hg.topic(f"log:{folder / 'in'}", schema=Sale))
        counts = job.process("tally", Tally(), sales=sales.key_by("user"))
        counts.sink("counts", hg.topic(f"log:{folder / 'out'}"))

    running = _Running(folder, spark, job)
    running.send(Sale(1, item, "one") for item in range(size))
    running.send([Sale(2, 0, "one")])
    one = [[Sale(2, 0, "one")] for _ in range(_BATCHES)]
    found = {"small": running.median("one entry of a map with 1 entry", one)}
    one = [[Sale(1, number * 7, "one")] for number in range(_BATCHES)]
    found["large"] = running.median(f"one entry of a map with {size:,} entries", one)
    whole = [[Sale(1, 0, "all")] for _ in range(4)]
    found["whole"] = running.median(f"all of a map with {size:,} entries", whole, left_out=1)
    running.stop()
    return found


def _main(question: str, folder: Path, size: int) -> None:
    from headgate.runtime.session import get_session

    conf = {"spark.driver.memory": "4g", "spark.local.dir": str(folder / "local")}
    spark = get_session(master="local[2]", conf=conf)
    found = {"timers": _timers, "map": _map}[question](folder, spark, size)
    spark.stop()
    print("RESULT " + json.dumps({"size": size, **found}), flush=True)


if __name__ == "__main__":
    # the worker imports the classes by the name of this module, which here is __main__
    from bench.process_large import _main as main

    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
