"""Windows, killed with -9 on one machine and on a cluster, give what the events alone say."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.home.layout import Home
from headgate.snapshots.snapshot import find_snapshot
from headgate.state import StateReader
from tests.reliability.deaths import drivers_die, executors_die
from tests.reliability.processes import Driver
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
    assert_rows(lambda topic: rows_of(data / topic), events)
    assert_state_is_empty(spark, home)


def assert_rows(read: Callable[[str], list[dict[str, Any]]], events: Events) -> None:
    """The rows of each topic, by its name, are those of the events."""
    for step, truth in (("counts", events.tumbling()), ("sessions", events.sessions())):
        got = finals(read(f"{step}_out"))
        assert len(got) == len(dict(got)), f"{step}: a window with two on-time rows"
        assert dict(got) == truth, step
        late = Counter((r["id"], r["user"], r["at"]) for r in read(f"{step}_late"))
        assert late == events.late(), step
        assert sum(len(ids) for _, ids in got) + sum(late.values()) == len(events.all)
    assert events.late(), "some rows are late"
    assert_panes(read("counts_out"))


def assert_state_is_empty(spark: SparkSession, home: Path) -> None:
    """Nothing is left after the drain."""
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


@pytest.mark.long
def test_windows_are_exact_after_kills_at_random_moments(
    spark: SparkSession, tmp_path: Path
) -> None:
    events = drivers_die(tmp_path, JOB, driver_of, finish)
    assert_truth(spark, tmp_path / "data", tmp_path / "home", events)


@pytest.mark.long
def test_windows_are_exact_when_executors_die(spark: SparkSession, tmp_path: Path) -> None:
    events = executors_die(tmp_path, JOB, driver_of, finish)
    assert_truth(spark, tmp_path / "data", tmp_path / "home", events)
