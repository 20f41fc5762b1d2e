"""Windows, killed with -9 on one machine and on a cluster, give what the events alone say."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.snapshots.home import Home
from headgate.snapshots.snapshot import find_snapshot
from headgate.state import StateReader
from tests.reliability.processes import Cluster, Driver
from tests.reliability.test_driver_kills import checkpoints, work_a_while
from tests.reliability.window_data import TOPICS, Events, finals, rows_of, window_of

APP = Path(__file__).parent / "window_job.py"
JOB = "visits"
STORES = {"counts": ("default", "changed"), "sessions": ("default", "sessions")}


def driver_of(data: Path, home: Path, *flags: str, spark: tuple[str, ...] = ()) -> Driver:
    return Driver(APP, data, home, *flags, spark=spark, job=JOB, names=TOPICS)


def finish(data: Path, home: Path) -> None:
    driver = driver_of(data, home, "--bounded", "--drain")
    assert driver.wait(240) == 0, driver.text()[-3000:]


def assert_truth(spark: SparkSession, data: Path, home: Path, events: Events) -> None:
    """Every event is in one final row, or in `.late`, of each step; nothing is there twice."""
    for step, truth in (("counts", events.tumbling()), ("sessions", events.sessions())):
        rows = rows_of(data / f"{step}_out")
        got = finals(rows)
        assert len(got) == len(dict(got)), f"{step}: a window with two on-time rows"
        assert dict(got) == truth, step
        late = Counter((r["id"], r["user"], r["at"]) for r in rows_of(data / f"{step}_late"))
        assert late == events.late(), step
        assert sum(len(ids) for _, ids in got) + sum(late.values()) == len(events.all)
    assert events.late(), "some rows are late"
    assert_panes(rows_of(data / "counts_out"))
    reader = StateReader(spark, find_snapshot(Home(str(home)), "latest", JOB))
    for step, stores in STORES.items():
        for store in stores:
            assert reader.frame(step, store).count() == 0, f"{step}: {store} is not empty"


def assert_panes(rows: list[dict[str, object]]) -> None:
    """Panes are numbered without a gap, early ones first, and each shows more than the last."""
    panes = defaultdict(list)
    for row in rows:
        panes[window_of(row)].append(row)
    early = 0
    for window, told in panes.items():
        told.sort(key=lambda row: int(str(row["pane"])))
        assert [row["pane"] for row in told] == list(range(len(told))), window
        assert [row["fired_by"] for row in told[:-1]] == ["early"] * (len(told) - 1), window
        counts = [int(str(row["n"])) for row in told]
        assert all(one < other for one, other in pairwise(counts[:-1])), window
        assert counts == sorted(counts), window
        early += len(told) - 1
    assert early > 0, "some windows gave early rows"


@pytest.mark.slow
def test_windows_are_exact_after_kills_at_random_moments(
    spark: SparkSession, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")
    moments = random.Random(seed)
    data, home = tmp_path / "data", tmp_path / "home"
    events = Events(data, chunks=30, size=1000, seed=1, taken=lambda: checkpoints(home, JOB))
    events.start()
    for _ in range(3):
        driver = driver_of(data, home)
        assert work_a_while(driver, home, 1, moments.uniform(0, 3), JOB)
        driver.kill()
    events.finish()
    finish(data, home)
    print(f"3 kills, {checkpoints(home, JOB)} checkpoints")
    assert_truth(spark, data, home, events)


@pytest.mark.long
def test_windows_are_exact_when_executors_die(spark: SparkSession, tmp_path: Path) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    cluster = Cluster(tmp_path, workers=2)
    kills = 0
    try:
        events = Events(data, chunks=30, size=1000, seed=2, taken=lambda: checkpoints(home, JOB))
        java = "-XX:+UseParallelGC -XX:TieredStopAtLevel=1"
        flags = ("--master", cluster.url, "--conf", "spark.executor.memory=1g",
                 "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.memory=1g",
                 "--conf", f"spark.executor.extraJavaOptions={java}",
                 "--conf", "spark.headgate.test.fail.after.state.commit=3")  # fmt: skip
        events.start()
        driver = driver_of(data, home, "--parallelism", "3", spark=flags)
        pick, until = random.Random(6), time.monotonic() + 180
        while kills < 2 and time.monotonic() < until:
            time.sleep(pick.uniform(3, 5))
            assert driver.process.poll() is None, driver.text()[-3000:]
            executors = cluster.executors()
            if executors and checkpoints(home, JOB) > 2 * kills:
                os.kill(pick.choice(executors), signal.SIGKILL)
                kills += 1
        assert kills == 2
        events.finish()
        driver.process.send_signal(signal.SIGTERM)
        assert driver.wait(180) == 0, driver.text()[-3000:]
    finally:
        cluster.stop()
    # what is left is read, and the windows are closed, by a local driver from the same home
    finish(data, home)
    print(f"{kills} executors killed, {checkpoints(home, JOB)} checkpoints")
    assert_truth(spark, data, home, events)
