"""Owns `make bench-small-batch`: what a batch of few rows costs, and against another source tree.

python -m bench.small_batch --against ../before --rounds 2

Two jobs run on log topics, in a process of their own for each tree and in turn: one lookup with one
sink (10 rows a batch), and the store with two lookups and three sinks (200 rows a batch). Their
topics are full before they start and a batch may take only so many rows, so one follows on the
other and nothing waits. The batches at the start do not count: tables are loaded and code is cold.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import headgate as hg
from bench.data import Segment, Sizes, item_line, order_lines, user_line
from bench.tws import ITEM, ORDER, USER
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from headgate.runtime.run import run
from headgate.runtime.session import get_session

_USERS, _ITEMS, _PARTITIONS = 5_000, 1_000, 2
_JOBS = {"lookup": 10, "store": 200}  # rows of a batch
_HERE = Path(__file__).resolve().parent.parent


def main() -> int:
    """Run both jobs in each tree in turn; print medians, and the ratio if there are two trees."""
    parser = argparse.ArgumentParser(prog="bench.small_batch", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--against", type=Path, help="another source tree with a .venv and a kernel"
    )
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--warm", type=int, default=120, help="batches that do not count")
    parser.add_argument("--batches", type=int, default=120, help="batches that count")
    parser.add_argument("--conf", action="append", default=[], help="a Spark setting, name=value")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        _measure(options.measure, options.warm, options.batches, options.conf)
        return 0
    trees = {"here": _HERE} | ({"before": options.against.resolve()} if options.against else {})
    found: dict[str, dict[str, list[dict[str, float]]]] = {name: {} for name in trees}
    for number in range(options.rounds):
        turn = list(trees) if number % 2 == 0 else list(reversed(trees))
        for name in turn:
            for job, figures in _run(trees[name], options).items():
                found[name].setdefault(job, []).append(figures)
                print(f"{name:7}{job:7}" + _shown(figures), flush=True)
    for job in _JOBS:
        if options.against:
            before, here = (_median(found[name][job]) for name in ("before", "here"))
            ratios = (
                f"{name} {before[name]:.1f} to {here[name]:.1f} ({here[name] / before[name]:.2f})"
                for name in here
                if before[name]
            )
            print(f"{job}: " + ", ".join(ratios), flush=True)
    return 0


def _run(tree: Path, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    with tempfile.TemporaryDirectory(
        prefix="headgate-small-batch-", ignore_cleanup_errors=True
    ) as at:
        command = [str(tree / ".venv/bin/python"), str(Path(__file__).resolve()), "--measure", at,
                   "--warm", str(options.warm), "--batches", str(options.batches)]  # fmt: skip
        for setting in options.conf:
            command += ["--conf", setting]
        ran = subprocess.run(command, cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)},
                             check=True, stdout=subprocess.PIPE, text=True)  # fmt: skip
    return json.loads(ran.stdout.splitlines()[-1])


def _median(rounds: list[dict[str, float]]) -> dict[str, float]:
    return {key: statistics.median(r.get(key, 0.0) for r in rounds) for key in rounds[0]}


def _shown(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.1f}" for name, value in figures.items())


# ------------------------------------------------------------- in the process that is measured


def _measure(folder: Path, warm: int, batches: int, conf: list[str]) -> None:
    settings = dict(setting.split("=", 1) for setting in conf)
    spark = get_session(master="local[2]",
                        conf={"spark.local.dir": str(folder / "local"), **settings})  # fmt: skip
    _write(folder / "users", (user_line(n) for n in range(_USERS)))
    _write(folder / "items", (item_line(n) for n in range(_ITEMS)))
    found = {}
    for name, rows in _JOBS.items():
        orders = rows * (warm + batches)
        sizes = Sizes(orders=orders, users=_USERS, items=_ITEMS)
        _write(folder / name, order_lines(sizes, Segment("orders", 0, 0, orders, 0, 0)))
        marks = _CpuMarks(folder / f"{name}-out", warm)
        job = _lookup(folder, rows) if name == "lookup" else _store(folder, rows)
        outcome = run(job, home=str(folder / f"{name}-home"), bounded=True, spark=spark)
        if outcome.error is not None:
            raise outcome.error
        found[name] = marks.figures(folder / f"{name}-home", name, orders)
    print(json.dumps(found), flush=True)
    spark.stop()


class _CpuMarks:
    """CPU seconds of this process and its JVM over a run, and the figures of its records."""

    def __init__(self, out: Path, warm: int) -> None:
        self._out, self._warm = out, warm
        self._before = _cpu_seconds()

    def figures(self, home: Path, job: str, orders: int) -> dict[str, float]:
        """Medians of the batches after the warm ones; the CPU is of all of them."""
        used = _cpu_seconds() - self._before
        current = Home(str(home)).job(job).current()
        assert current is not None
        records = current.checkpoints()
        read = sum(record.rows.get("orders", {}).get("records_out", 0) for record in records)
        assert read == orders, f"{read} of {orders} orders were read"
        counted = records[self._warm :]
        took = sorted(record.duration_ms or 0 for record in counted)
        shown = {"p50": statistics.median(took), "p90": took[len(took) * 9 // 10], "max": took[-1],
                 "cpu_all": 1000 * used / len(records)}  # fmt: skip
        for phase in ("sources", "planning", "execution", "commit"):
            shown[phase] = statistics.mean(record.phases.get(phase, 0) for record in counted)
        return shown


def _cpu_seconds() -> float:
    """Of this process and its children that live: the JVM is one of them."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            ticks += int(fields[11]) + int(fields[12])
    return own.ru_utime + own.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def _read(folder: Path, name: str, schema: str, **more: str) -> hg.Topic:
    return hg.topic(f"log:{folder / name}", schema=schema, **more)


def _lookup(folder: Path, rows: int) -> hg.JobDef:
    @hg.job("lookup", checkpoints=hg.Checkpoints(every="10 milliseconds"))
    def job(job: hg.Job) -> None:
        orders = job.source("orders", _read(folder, "lookup", ORDER, max_records=str(rows)))
        users = job.table("users", _read(folder, "users", USER), key="id")
        orders.lookup("by_user", users, on="userId", into="user", missing="null").sink(
            "enriched", hg.topic(f"log:{folder}/lookup-out")
        )

    return job


def _store(folder: Path, rows: int) -> hg.JobDef:
    @hg.job("store", checkpoints=hg.Checkpoints(every="10 milliseconds"))
    def job(job: hg.Job) -> None:
        orders = job.source("orders", _read(folder, "store", ORDER, max_records=str(rows)))
        users = job.table("users", _read(folder, "users", USER), key="id")
        items = job.table("items", _read(folder, "items", ITEM), key="id")
        with_user = orders.lookup("by_user", users, on="userId", into="user", missing="side")
        found = with_user.lookup("by_item", items, on="itemId", into="item", missing="side")
        found.sink("enriched", hg.topic(f"log:{folder}/store-out"))
        with_user.missing.sink("no_user", hg.topic(f"log:{folder}/no-user"))
        found.missing.sink("no_item", hg.topic(f"log:{folder}/no-item"))

    return job


def _write(at: Path, lines: Iterator[str]) -> None:
    topic = TopicFiles(at)
    topic.create(_PARTITIONS)
    made = list(lines)
    for partition in range(_PARTITIONS):
        topic.append([Record(line) for line in made[partition::_PARTITIONS]], partition)


if __name__ == "__main__":
    sys.exit(main())
