"""`headgate ui` and `headgate dev` as real processes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.cli.dev import saved
from headgate.cli.main import invoke
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home

JOB = """
import headgate as hg

@hg.job("doubled", checkpoints=hg.Checkpoints(every="200 ms"))
def doubled(job: hg.Job) -> None:
    numbers = job.source("numbers", hg.topic("log:{data}/numbers", schema="n BIGINT"))
    numbers.select("n * {times} AS n").sink("out", hg.topic("log:{data}/out"))
"""


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    found: list[subprocess.Popen[str]] = []
    yield found
    for process in found:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(90)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def start(started: list[subprocess.Popen[str]], log: Path, *words: str) -> subprocess.Popen[str]:
    with log.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", *words], text=True, stderr=errors,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            # a test run in the background of a shell ignores Ctrl-C, and so would its children
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )  # fmt: skip
    started.append(process)
    return process


def until(condition: Callable[[], Any], log: Path, seconds: float = 180) -> Any:
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, log.read_text()
        time.sleep(0.1)
    return found


def fetch(address: str) -> Any:
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.read().decode()


def test_the_server_tells_its_address_and_ends_on_ctrl_c(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    log = tmp_path / "log"
    home = str(tmp_path / "home")
    process = start(started, log, "ui", "--home", home, "--port", "0", "--read-only", "--json")
    assert process.stdout is not None
    told = json.loads(process.stdout.readline())
    assert told["home"] == home and told["read_only"]

    def answers() -> bool:
        try:
            return bool(fetch(f"{told['address']}healthz") == "ok\n")
        except OSError:
            return False

    until(answers, log)
    assert json.loads(fetch(f"{told['address']}jobs/overview"))["jobs"] == []
    port = told["address"].rstrip("/").rpartition(":")[2]
    assert invoke(["ui", "--home", home, "--port", port]) == 2, "the port is taken"
    process.send_signal(signal.SIGINT)
    assert process.wait(30) in (0, 130), log.read_text()


def test_an_open_address_without_a_token_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HEADGATE_UI_TOKEN", raising=False)
    monkeypatch.delenv("HEADGATE_UI_READ_TOKEN", raising=False)
    assert invoke(["ui", "--host", "0.0.0.0"]) == 2
    assert "set HEADGATE_UI_TOKEN" in capsys.readouterr().err
    assert invoke(["ui", "--token", "short"]) == 2


def test_only_python_files_that_are_not_hidden_count_as_saved(tmp_path: Path) -> None:
    for name in ("app.py", "more/steps.py", ".venv/x.py", "__pycache__/app.py", "notes.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    assert set(saved(tmp_path)) == {"app.py", "more/steps.py"}


@pytest.mark.slow
def test_a_job_in_development_starts_again_when_it_is_saved(
    tmp_path: Path, started: list[subprocess.Popen[str]]
) -> None:
    data, home, log = tmp_path / "data", tmp_path / "home", tmp_path / "log"
    numbers, out = TopicFiles(data / "numbers"), TopicFiles(data / "out")
    numbers.create(1)
    numbers.append([Record('{"n": 1}')])
    app = tmp_path / "code" / "app.py"
    app.parent.mkdir()
    app.write_text(JOB.format(data=data, times=2))
    process = start(started, log, "dev", str(app), "--home", str(home), "--ui-port", "0",
                    "--master", "local[1]", "--json")  # fmt: skip
    assert process.stdout is not None
    address = json.loads(process.stdout.readline())["address"]

    def rows() -> list[int]:
        return [json.loads(r.value or "")["n"] for r in out.read()] if out.exists() else []

    until(lambda: rows() == [2], log)
    app.write_text(JOB.format(data=data, times=3))
    until(lambda: "app.py was saved" in log.read_text(), log)
    numbers.append([Record('{"n": 5}')])
    # what came before the old code had stopped is doubled, nothing is lost or done twice
    until(lambda: len(rows()) == 2, log)
    until(lambda: len(Home(home).job("doubled").runs()) == 2, log)
    numbers.append([Record('{"n": 7}')])
    assert until(lambda: len(rows()) == 3 and rows(), log)[-1] == 21
    shown = json.loads(fetch(f"{address}jobs/doubled"))
    assert shown["summary"]["state"] == "RUNNING" and shown["summary"]["run"] == "r2"
    process.send_signal(signal.SIGINT)
    assert process.wait(90) == 0, log.read_text()
    events = Home(home).job("doubled").run("r2").events()
    assert events[-1].kind == "stopped"
