"""A home that the first version wrote (format 1) resumes, restores, plans and shows as it did.

The home has been left by a driver that died after its sinks had committed batch 4 and before Spark
had: it can only be resumed if the graph is found to be the same. What is expected was written by
the version that wrote the home, from the same home.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate import jvm
from headgate.connectors.log.files import TopicFiles
from headgate.graph import formats
from headgate.home.layout import Home
from headgate.runtime.run import run
from tests.formats.every_kind import every_kind

FIXTURES = Path(__file__).parents[1] / "fixtures"
SINKS = ("named", "tens", "late", "slides", "visits", "threes", "malformed")
APP = Path(__file__).parent / "every_kind.py"
WRITTEN_MS = 1_794_975_824_317
"""When the home's last batch began: rows wait for a day in it, and states are kept for thirty."""


@pytest.fixture
def old_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    with tarfile.open(FIXTURES / "format_1.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def then(spark: SparkSession) -> Iterator[None]:
    """The jobs' clock goes on a minute after the home was written."""
    offset = WRITTEN_MS + 60_000 - int(time.time() * 1000)
    spark.conf.set(jvm.CLOCK_OFFSET, str(offset))
    yield
    spark.conf.unset(jvm.CLOCK_OFFSET)


def expected(how: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FIXTURES / "format_1_expected.json").read_text())[how]
    return found


def rows() -> dict[str, list[str | None]]:
    found = {sink: sorted(r.value or "" for r in TopicFiles(sink).read()) for sink in SINKS}
    files = list(Path("settled").glob("batch=*/part-*.json"))
    found["settled"] = sorted(line for file in files for line in file.read_text().splitlines())
    return {sink: list(lines) for sink, lines in found.items()}


def totals() -> dict[str, dict[str, int]]:
    current = Home("home").job("every_kind").current()
    record = current.latest_checkpoint() if current else None
    assert record is not None
    return {
        # what tables have changed is counted since then
        step: {name: n for name, n in counts.items() if name != "state_changes"}
        for step, counts in record.totals.items()
    }


@pytest.mark.slow
@pytest.mark.usefixtures("then")
def test_it_resumes_the_batch_that_was_out(spark: SparkSession, old_home: Path) -> None:
    outcome = run(every_kind, home="home", bounded=True, drain=True, spark=spark)
    assert outcome.error is None
    assert outcome.run == "r1", "the graph is the same, so the run goes on"
    assert rows() == expected("resume")["rows"]
    assert totals() == expected("resume")["totals"]


@pytest.mark.slow
@pytest.mark.usefixtures("then")
def test_its_savepoint_is_restored(spark: SparkSession, old_home: Path) -> None:
    outcome = run(
        every_kind, home="home", bounded=True, drain=True, spark=spark, restore="sp:before",
        allow_duplicates=True,
    )  # fmt: skip
    assert outcome.error is None and outcome.run == "r2"
    assert rows() == expected("restore")["rows"]
    assert totals() == expected("restore")["totals"]
    graph = json.loads(Path("home/jobs/every_kind/runs/r2/graph.json").read_text())
    assert graph["version"] == formats.NEWEST


def headgate(*words: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", *words],
        capture_output=True, text=True, env={**os.environ, "COLUMNS": "200"}, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_it_is_planned(old_home: Path) -> None:
    plan = json.loads(
        headgate("plan", str(APP), "--home", "home", "--against", "sp:before", "--json")
    )
    assert plan["possible"] and not plan["losing"]
    assert {step["mark"] for step in plan["steps"]} == {"="}, plan["steps"]


def test_it_is_shown(old_home: Path) -> None:
    shown = headgate("show", "every_kind", "--home", "home", "--steps")
    for words in ("by_user_later", "lookup", "tens", "window", "settle", "process", "r1"):
        assert words in shown
    graph = headgate("graph", "every_kind", "--home", "home")
    assert "log:orders" in graph and "on=user, table=users" in graph


def test_what_is_read_of_it_is_what_the_current_format_has(old_home: Path) -> None:
    current = Home("home").job("every_kind").current()
    assert current is not None
    steps = {step["id"]: step for step in current.graph()["steps"]}
    assert steps["orders"]["role"] == "source" and steps["orders"]["address"] == "log:orders"
    assert steps["settle"]["state_view"] == "named" and steps["settle"]["state_key"] == ["user"]
    assert steps["tens"]["labels"]["window"] == "tumbling 10 minutes offset 1 minute"
    assert formats.config_of(steps["tens"])["window"] == {
        "type": "tumbling", "size_us": 600_000_000, "every_us": 600_000_000,
        "offset_us": 60_000_000,
    }  # fmt: skip
