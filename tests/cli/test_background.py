"""The process of a job in the background: it is one, and nobody loses sight of it."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.base.errors import HeadgateError
from headgate.cli.main import invoke
from headgate.home.layout import Home
from headgate.home.run_logs import logs
from headgate.runtime import detached
from headgate.runtime.detached import MARK, start_detached

JOB = """
import headgate as hg

@hg.job("small")
def small(job: hg.Job) -> None:
    rows = job.source("rows", hg.topic("log:rows", schema="n BIGINT"))
    rows.sink("out", hg.topic("log:out"))
"""
SLEEPS = """
import os, pathlib, time

pathlib.Path("pid.new").write_text(str(os.getpid()))
os.rename("pid.new", "pid")
time.sleep(600)
"""


def test_it_starts_no_other(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "app.py").write_text(JOB)
    monkeypatch.setenv(MARK, "1")
    words = ["run", str(tmp_path / "app.py"), "-qd", "--from", "sp:none"]
    assert invoke([*words, "--home", str(tmp_path / "home")]) == 3
    assert "the start failed" not in capsys.readouterr().err
    assert not logs(Home(tmp_path / "home").job("small"))
    assert MARK not in os.environ  # what the job starts is no part of it


def test_it_ends_with_ctrl_c_and_is_named_when_it_takes_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app.py").write_text(SLEEPS)
    monkeypatch.chdir(tmp_path)
    pid = tmp_path / "pid"

    def press() -> None:
        while not pid.exists():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    job = Home(tmp_path / "home").job("slow")
    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        start_detached(job, ["run", "app.py"])
    _wait_for_end(int(pid.read_text()))

    monkeypatch.setattr(detached, "_SECONDS", 0.0)
    with pytest.raises(HeadgateError, match=r"process \d+ is there") as error:
        start_detached(job, ["run", "app.py"])
    found = re.search(r"process (\d+)", str(error.value))
    assert found is not None
    os.kill(int(found[1]), signal.SIGTERM)
    _wait_for_end(int(found[1]))


def _wait_for_end(pid: int) -> None:
    """Wait until there is no such process."""
    ends = time.monotonic() + 60
    while time.monotonic() < ends:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.kill(pid, signal.SIGKILL)
    raise AssertionError(f"process {pid} is still there")
