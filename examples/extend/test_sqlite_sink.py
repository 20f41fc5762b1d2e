"""The sink into SQLite, in a job that is crashed at every point of a commit, killed and resumed."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from headgate.connectors.log.files import Record, TopicFiles
from headgate.testing import assert_crash_safe

from .once_job import once

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = [("events", {"id": id, "value": n}) for n, id in enumerate("abacabadd")]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "events.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE events (id TEXT, value INTEGER)")
    return path


def rows(path: Path) -> list[dict[str, Any]]:
    with closing(sqlite3.connect(path, timeout=60)) as db:
        return [{"id": id, "value": value} for id, value in db.execute("SELECT * FROM events")]


def test_no_crash_writes_a_row_twice_or_not_at_all(database: Path) -> None:
    params = {"events": "log:e", "again": "log:a", "database": str(database)}
    assert_crash_safe(once, SCRIPT, params=params, real_sinks={"table": lambda: rows(database)})
    assert len(rows(database)) == 6 * 4, "six runs, each with four ids"


def test_the_graph_names_the_class_and_its_config() -> None:
    params = {"events": "log:e", "again": "log:a", "database": "x.db"}
    built = once.build(params, check_connectors=False)
    step = built.graph.step("table")
    assert step.address == "python:SqliteSink"
    assert step.config == {"own": {"path": "x.db", "table": "events"}}
    assert step.labels == {"path": "x.db", "table": "events"}


def test_a_killed_driver_goes_on_where_it_was(database: Path, tmp_path: Path) -> None:
    topic, count = TopicFiles(tmp_path / "events"), 1200
    topic.create(2)
    made = [{"id": f"id{n * 7919 % 900}", "value": n} for n in range(count)]
    for partition in range(2):
        ours = [event for event in made if int(event["id"][2:]) % 2 == partition]
        topic.append([Record(json.dumps(event)) for event in ours], partition=partition)
    first: dict[str, int] = {}
    for event in made:
        first.setdefault(event["id"], event["value"])

    driver = _start(database, tmp_path)
    _wait(lambda: len(rows(database)) >= 150, driver)
    os.kill(driver.pid, signal.SIGKILL)
    driver.wait()
    assert len(rows(database)) < len(first), "it was killed at work"
    assert _start(database, tmp_path, "--bounded").wait(240) == 0
    found = rows(database)
    assert {row["id"]: row["value"] for row in found} == first
    assert len(found) == len(first) == 900
    again = [json.loads(r.value or "")["value"] for r in TopicFiles(tmp_path / "again").read()]
    assert sorted(again) == sorted(set(range(count)) - set(first.values()))


def _start(database: Path, folder: Path, *flags: str) -> subprocess.Popen[bytes]:
    sets = {"events": f"log:{folder / 'events'}", "again": f"log:{folder / 'again'}"}
    sets["database"] = str(database)
    words = [word for name, value in sets.items() for word in ("--set", f"{name}={value}")]
    app = f"{ROOT / 'examples' / 'extend' / 'once_job.py'}:once"
    with open(folder / "driver.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", "run", app, "--home",
             str(folder / "home"), *words, *flags],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip


def _wait(done: Any, driver: subprocess.Popen[bytes], seconds: float = 180) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert driver.poll() is None, "the driver ended"
        assert time.monotonic() < until, "nothing came"
        time.sleep(0.05)
