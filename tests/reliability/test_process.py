"""A process function, killed with -9 on one machine and on a cluster, is as if nothing had been."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.home.layout import Home
from headgate.snapshots.snapshot import find_snapshot
from headgate.state import StateReader
from tests.reliability.deaths import drivers_die, executors_die
from tests.reliability.process_job import LAST, next_link
from tests.reliability.processes import Driver
from tests.reliability.window_data import Events, rows_of

APP = Path(__file__).parent / "process_job.py"
JOB = "chains"
KEY = tuple[str, int]


def driver_of(data: Path, home: Path, *flags: str, spark: tuple[str, ...] = ()) -> Driver:
    return Driver(APP, data, home, *flags, spark=spark, job=JOB, names=("events", "links"))


def finish(data: Path, home: Path) -> None:
    driver = driver_of(data, home, "--bounded")
    assert driver.wait(240) == 0, driver.text()[-3000:]


def assert_truth(spark: SparkSession, data: Path, home: Path, events: Events) -> None:
    """Each event has given one row, by the events of its key before it; the state is that too."""
    seen: dict[KEY, list[int]] = defaultdict(list)
    chain: dict[KEY, int] = defaultdict(int)
    wanted = []
    for event in events.all:
        key = (event.user, event.id % 2)
        chain[key] = next_link(chain[key], event.id)
        seen[key].append(event.id)
        wanted.append((*key, event.id, len(seen[key]), chain[key], tuple(seen[key][-LAST:])))
    rows = [
        (r["user"], r["half"], r["id"], r["count"], r["chain"], tuple(r["last"]))
        for r in rows_of(data / "links")
    ]
    assert len(rows) == len(wanted) == len(events.all)
    assert Counter(rows) == Counter(wanted)
    reader = StateReader(spark, find_snapshot(Home(str(home)), "latest", JOB))
    for name, truth in {
        "count": {key: len(ids) for key, ids in seen.items()},
        "chain": chain,
        "seen": {key: ids[-LAST:] for key, ids in seen.items()},
        "sizes": {key: dict(Counter(id % 4 for id in ids)) for key, ids in seen.items()},
    }.items():
        kept = {
            (row["key"]["user"], row["key"]["half"]): row[name]
            for row in reader.frame("chain", name).collect()
        }
        assert kept == dict(truth), name


# The short run of the nemesis kills the driver of the same job; this one also reads its state.
@pytest.mark.long
def test_chains_are_whole_after_kills_at_random_moments(
    spark: SparkSession, tmp_path: Path
) -> None:
    events = drivers_die(tmp_path, JOB, driver_of, finish)
    assert_truth(spark, tmp_path / "data", tmp_path / "home", events)


@pytest.mark.long
def test_chains_are_whole_when_executors_die(spark: SparkSession, tmp_path: Path) -> None:
    events = executors_die(tmp_path, JOB, driver_of, finish)
    assert_truth(spark, tmp_path / "data", tmp_path / "home", events)
