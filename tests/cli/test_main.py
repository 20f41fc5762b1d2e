"""The command line's manners: help, usage errors, one-sentence errors, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from headgate.cli.app import load_app
from headgate.cli.main import invoke
from headgate.home.layout import Home
from headgate.runtime.lease import Lease


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["--help"]) == 0
    text = capsys.readouterr().out
    for verb in ("run", "check", "graph", "list", "show", "topic", "doctor"):
        assert f" {verb} " in text


@pytest.mark.parametrize("verb", ["run", "check", "graph", "list", "show", "doctor"])
def test_every_verb_has_the_common_options(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([verb, "-h"]) == 0
    text = capsys.readouterr().out
    for option in ("--json", "--home", "--quiet", "--no-color", "--debug"):
        assert option in text


@pytest.mark.parametrize(
    "arguments",
    [["no_such_verb"], ["list", "--no-such-flag"], ["show"], ["run", "a.py", "--parallelism", "x"]],
)
def test_wrong_usage_exits_2_with_one_line(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert err.endswith("see headgate --help (headgate explain USAGE)\n")
    assert err.count("\n") == 1


def test_no_arguments_show_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([]) == 2
    captured = capsys.readouterr()
    assert "Usage: headgate" in captured.out + captured.err


def test_an_error_is_also_data_with_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["show", "nothing", "--json", "--home", str(tmp_path)]) == 3
    out, err = capsys.readouterr()
    told = json.loads(out)
    assert told["version"] == 1
    assert told["error"]["code"] == "NOT_FOUND"
    assert told["error"]["remedy"]
    assert err.startswith("error: there is no job 'nothing'")


def test_debug_adds_the_stack_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["show", "nothing", "--debug", "--home", str(tmp_path)]) == 3
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_a_bug_is_told_without_a_stack_trace(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("headgate.home.layout.Home.find", len)
    assert invoke(["show", "x", "--home", str(tmp_path)]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: unexpected AttributeError: ")
    remedy = "run the command again with --debug, and report the error together with the output"
    assert err.endswith(f"{remedy} (headgate explain UNEXPECTED)\n")


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / f"app_{uuid4().hex}.py"
    path.write_text('import headgate as hg\n@hg.job("store")\ndef store(job):\n    pass\n')
    return path


def test_a_home_that_cannot_be_written_is_a_clear_error(
    app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert invoke(["run", str(app), "--home", str(tmp_path / "file")]) == 1
    err = capsys.readouterr().err
    assert "a file is where a folder should be" in err
    assert "choose another home with --home or HEADGATE_HOME" in err


def test_a_second_copy_is_refused_before_spark_starts(
    app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    with Lease(Home(home).job("store")):
        assert invoke(["run", str(app), "--home", str(home)]) == 5
    assert f"job 'store' is driven by process {os.getpid()} on " in capsys.readouterr().err


def test_a_bad_name_for_a_run_is_refused(
    app: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["run", str(app), "--home", str(tmp_path), "--name", "a b"]) == 2
    assert "at most 100 in all, got 'a b'" in capsys.readouterr().err


def test_an_error_in_the_jobs_code_shows_its_line(
    app: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    app.write_text('import headgate as hg\n@hg.job("store")\ndef store(job):\n    1 / 0\n')
    monkeypatch.setattr(
        "headgate.cli.graphs._built",
        lambda ui, app, *_: load_app(app).job.function(None),
    )
    assert invoke(["check", str(app)]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: the job's own code raised ZeroDivisionError: division by zero")
    assert err.endswith(f"[{app}:4] (headgate explain USAGE)\n")


def test_a_client_that_crashes_when_it_is_taken_down_does_not_change_the_exit_code() -> None:
    script = """
import atexit, os, sys
from headgate.cli import main as command

class Client:
    def __del__(self):
        os.abort()

sys.modules["_pulsar"] = Client()  # as Pulsar's, whose threads are taken down with the process
atexit.register(print, "at exit")
command.invoke = lambda arguments: print("done") or 3
command.main([])
"""
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (3, "done\nat exit\n"), ran.stderr
