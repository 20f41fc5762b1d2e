"""`headgate run --bounded --drain`: what is there is read, and every window is closed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.base.errors import ExitCode
from headgate.cli.main import invoke
from headgate.cli.tables import local_time
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home

APP = """
import headgate as hg
from pyspark.sql import functions as F

@hg.job("visits")
def visits(job: hg.Job) -> None:
    visits = job.source("visits", hg.topic("log:visits", schema="page STRING, at TIMESTAMP"),
                        event_time=hg.event_time("at", out_of_orderness="5 minutes"))
    counts = visits.key_by("page").window(
        "visits_15m", hg.tumbling("15 minutes"), F.count("*").alias("visits"))
    counts.sink("counts", hg.topic("log:counts"))
    counts.late.sink("too_late", hg.topic("log:too_late"))
"""


def counts(folder: Path) -> list[tuple[str, str, int]]:
    rows = [json.loads(r.value or "") for r in TopicFiles(folder / "counts").read(None)]
    return sorted((r["page"], r["window_start"][11:16], r["visits"]) for r in rows)


def app_and_topic(folder: Path) -> TopicFiles:
    (folder / "app.py").write_text(APP)
    topic = TopicFiles(folder / "visits")
    topic.create(1)
    return topic


def test_a_drained_run_closes_all_windows(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    topic = app_and_topic(tmp_path)
    topic.append(
        [
            Record(json.dumps({"page": page, "at": f"2026-01-01T10:{minute:02}:00Z"}))
            for page, minute in [("a", 1), ("b", 2), ("a", 14), ("a", 16), ("b", 40)]
        ]
    )
    assert invoke(["run", "app.py", "--drain"]) == ExitCode.USAGE
    assert invoke(["run", "app.py", "--bounded"]) == ExitCode.DONE
    assert counts(tmp_path) == [("a", "10:00", 2), ("a", "10:15", 1), ("b", "10:00", 1)]
    assert invoke(["run", "app.py", "--bounded", "--drain"]) == ExitCode.DONE
    assert counts(tmp_path)[-1] == ("b", "10:30", 1) and len(counts(tmp_path)) == 4
    topic.append([Record(json.dumps({"page": "b", "at": "2026-01-01T10:50:00Z"}))])
    capsys.readouterr()
    assert invoke(["run", "app.py", "--bounded", "--drain"]) == ExitCode.DONE
    assert "a drain has ended its event time" in capsys.readouterr().err
    assert len(counts(tmp_path)) == 4
    assert len(list(TopicFiles(tmp_path / "too_late").read(None))) == 1


def test_a_job_that_is_stopped_with_a_drain_closes_all_windows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    @hg.job("visits", checkpoints=hg.Checkpoints(every="100 ms"))
    def visits(job: hg.Job) -> None:
        schema = "page STRING, at TIMESTAMP"
        visits = job.source(
            "visits",
            hg.topic("log:visits", schema=schema, max_records="2"),
            event_time=hg.event_time("at"),
        )
        counts = visits.key_by("page").window(
            "visits_15m", hg.tumbling("15 minutes"), F.count("*").alias("visits")
        )
        counts.sink("counts", hg.topic("log:counts"))
        counts.late.sink("too_late", hg.topic("log:too_late"))

    def rows(*minutes: int) -> list[Record]:
        return [
            Record(json.dumps({"page": "a", "at": f"2026-01-01T10:{minute:02}:00Z"}))
            for minute in minutes
        ]

    topic = TopicFiles(tmp_path / "visits")
    topic.create(1)
    topic.append(rows(1, 2))
    handle = hg.start(visits, spark=spark, home=str(tmp_path / "home"))
    run = Home(tmp_path / "home").job("visits")
    wait_until(lambda: (now := run.current()) is not None and now.latest_checkpoint() is not None)
    topic.append(rows(3, 4, 5, 16, 17, 31))  # more than a batch may have
    handle.stop(drain=True)
    assert counts(tmp_path) == [("a", "10:00", 5), ("a", "10:15", 2), ("a", "10:30", 1)]
    assert list(TopicFiles(tmp_path / "too_late").read(None)) == []
    current = run.current()
    last = current.latest_checkpoint() if current else None
    assert last is not None and last.state["visits_15m"]["rows"] == 0
    assert last.event_time is not None and last.event_time.ended


def wait_until(done: Callable[[], bool], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_the_state_of_windows_can_be_looked_at(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    topic = app_and_topic(tmp_path)
    topic.append(
        [Record(json.dumps({"page": p, "at": "2026-01-01T10:01:00Z"})) for p in ("a", "a", "b")]
    )
    assert invoke(["run", "app.py", "--bounded", "--quiet"]) == ExitCode.DONE
    capsys.readouterr()
    assert invoke(["state", "get", "visits", "visits_15m", "--key", "page=a", "--json"]) == 0
    shown = capsys.readouterr().out
    assert '"visits": 2' in shown and '"window_end": "2026-01-01 10:15:00' in shown
    assert invoke(["checkpoint", "show", "visits"]) == 0
    line = capsys.readouterr().out.splitlines()[-1]
    assert line == f"watermark {local_time(datetime(2026, 1, 1, 9, 56, tzinfo=UTC))}"
    more = [("a", "10:02"), ("a", "10:16"), ("b", "10:17")]
    topic.append([Record(json.dumps({"page": p, "at": f"2026-01-01T{t}:00Z"})) for p, t in more])
    assert invoke(["run", "app.py", "--bounded", "--quiet"]) == ExitCode.DONE
    capsys.readouterr()
    assert invoke(["state", "diff", "visits@ck:0", "visits_15m", "--json"]) == 0
    diff = json.loads(capsys.readouterr().out)
    assert diff["counts"] == {"added": 2, "removed": 0, "changed": 1}
    (changed,) = [row for row in diff["rows"] if row["change"] == "changed"]
    assert (changed["before"]["visits"], changed["after"]["visits"]) == (2, 3)
