"""What a newcomer tries first: versions, completion, bare groups, typos, errors and numbers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from headgate.cli.main import invoke
from headgate.home.layout import Home
from headgate.home.run_logs import KEEP, logs, new_log
from tests.cli.test_jobs import checkpoint, make_job

GROUPS = ("topic", "checkpoint", "savepoint", "state", "op", "broker", "config")


def headgate(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headgate", *arguments],
        env={**os.environ, **environment}, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_the_module_is_the_command_and_says_its_version() -> None:
    ran = headgate("--version")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("headgate 0.1.0 (spark 4.2.0, python 3.")


def test_ctrl_c_while_python_imports_is_no_traceback(tmp_path: Path) -> None:
    interrupted = "import os, signal; os.kill(os.getpid(), signal.SIGINT)"
    (tmp_path / "typer.py").write_text(interrupted)  # imported in place of the real one
    ran = headgate("list", PYTHONPATH=f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}")
    assert (ran.returncode, ran.stderr) == (130, "interrupted\n")


@pytest.mark.parametrize("group", GROUPS)
def test_a_bare_group_shows_its_help(group: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke([group]) == 2
    out, err = capsys.readouterr()
    text = out + err
    assert text.startswith(f"Usage: headgate {group} [OPTIONS] COMMAND")
    assert "error:" not in text


def test_a_shell_completes_verbs_and_jobs(tmp_path: Path) -> None:
    ran = headgate(_HEADGATE_COMPLETE="complete_bash", COMP_WORDS="headgate to", COMP_CWORD="1")
    assert ran.stdout.split() == ["topic"]
    make_job(tmp_path)
    make_job(tmp_path, "other")
    ran = headgate(
        _HEADGATE_COMPLETE="complete_bash", COMP_WORDS="headgate show st", COMP_CWORD="2",
        HEADGATE_HOME=str(tmp_path),
    )  # fmt: skip
    assert ran.stdout.split() == ["store"]


def test_a_typo_in_a_verb_or_job_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_job(tmp_path)
    assert invoke(["shwo", "store"]) == 2
    assert capsys.readouterr().err == (
        "error: No such command 'shwo': did you mean 'show'? see headgate --help"
        " (headgate explain USAGE)\n"
    )
    assert invoke(["show", "stroe", "--home", str(tmp_path)]) == 3
    assert capsys.readouterr().err.endswith(
        "did you mean store? it has: store (headgate explain NOT_FOUND)\n"
    )
    run = Home(tmp_path).job("store").run("r1")
    run.files.write_text("jobs/store/savepoints/before_v2/manifest.json", "{}")
    assert invoke(["savepoint", "show", "store", "before_v1", "--home", str(tmp_path)]) == 3
    assert "did you mean sp:before_v2? it has: sp:before_v2" in capsys.readouterr().err


def test_metrics_are_those_of_the_newest_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint(make_job(tmp_path))
    assert invoke(["metrics", "store", "--home", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["records_in"] == 11_904_220 + 3
    assert found["records_out"] == 11_904_100
    assert found["records_behind"] == 10
    assert found["batch_ms"]["newest"] == 410
    assert found["state"] == [{"step": "users_lookup", "rows": 50_000, "bytes": 9_542_041}]
    assert invoke(["metrics", "store", "--home", str(tmp_path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["records", "behind", "10"] in lines
    assert ["state", "users_lookup", "50,000", "rows", "9.1", "MiB"] in lines

    assert invoke(["metrics", "store", "--over", "all", "--home", str(tmp_path), "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)["steps"]
    assert [step["batch_ms"] for step in steps if step["batch_ms"] is not None] == [410.0]
    assert invoke(["metrics", "store", "--over", "1h", "--home", str(tmp_path)]) == 0
    assert "9.1 MiB" in capsys.readouterr().out
    assert invoke(["metrics", "store", "--over", "2h", "--home", str(tmp_path)]) == 2
    capsys.readouterr()


def test_errors_say_what_went_wrong_and_what_became_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_job(tmp_path)
    run.add_event("failed", reason="USER_CODE", message="it said no", step="users_lookup",
                  remedy="correct the code", batch=3, frames=["File app.py, line 3"],
                  gives_up="the job has no restart strategy")  # fmt: skip
    assert invoke(["errors", "store", "--home", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith("USER_CODE   r1/ck:3   step users_lookup")
    assert lines[1:] == [
        "  it said no",
        "  File app.py, line 3",
        "  next    it was not restarted, because the job has no restart strategy",
        "  remedy  correct the code",
    ]
    make_job(tmp_path, "gone")  # it started, and nothing more is known: its process crashed
    assert invoke(["errors", "gone", "--home", str(tmp_path), "--json"]) == 0
    (crash,) = json.loads(capsys.readouterr().out)["errors"]
    assert crash["reason"] == "PROCESS_GONE"
    assert "headgate run APP" in crash["remedy"]


def test_watch_shows_it_again_until_ctrl_c(tmp_path: Path) -> None:
    checkpoint(make_job(tmp_path))
    process = subprocess.Popen(
        [sys.executable, "-m", "headgate", "list", "--home", str(tmp_path), "--watch", "--json"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    shown = [json.loads(process.stdout.readline()) for _ in range(2)]
    assert [one["jobs"][0]["job"] for one in shown] == ["store", "store"]
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30)[1] == ""
    assert process.returncode == 0


def test_what_a_command_writes_can_be_produced(tmp_path: Path) -> None:
    address = f"log:{tmp_path}/orders"
    assert invoke(["topic", "create", address, "--quiet"]) == 0
    line = f"{sys.executable} -m headgate topic produce {address} --file <(seq 3)"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, f"produced 3 records to {address}\n")
    assert headgate("topic", "read", address).stdout == "1\n2\n3\n"


def test_what_the_system_refuses_is_not_for_a_report(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.home.layout.Home.find", partial(open, tmp_path))
    assert invoke(["show", "r", "--home", str(tmp_path)]) == 1
    assert capsys.readouterr().err == (
        f"error: cannot use {tmp_path}: Is a directory: name a file, not a folder"
        " (headgate explain STORAGE)\n"
    )


def test_a_job_keeps_the_logs_of_its_newest_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = make_job(tmp_path).job
    assert invoke(["logs", "store", "--home", str(tmp_path)]) == 3
    assert "start it with headgate run APP --detach" in capsys.readouterr().err
    made = [new_log(job) for _ in range(KEEP + 2)]
    assert logs(job) == made[2:]
    made[-1].write_text("one\ntwo\nthree\n")
    assert invoke(["logs", "store", "-n", "2", "--follow", "--home", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "two\nthree\n"
