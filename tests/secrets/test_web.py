"""Secrets and the web interface: its answers, and the command line of a job that it starts."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from starlette.testclient import TestClient

from headgate.cli.main import invoke
from headgate.home.layout import Home
from headgate.runtime.lease import is_live
from headgate.ui.app import create_app
from tests.secrets.app import PASSWORD, SECRETS, STORE, TOKEN, leaks, produce, write_app, written


@pytest.fixture
def folder(tmp_path: Path, spark: SparkSession) -> Iterator[Path]:
    """A job that ran once, with every secret given as text; what drives it then is killed."""
    app = write_app(tmp_path)
    produce(tmp_path, 1)
    assert start(tmp_path, app, f"db_login={PASSWORD}", f"api_token={TOKEN}", f"store={STORE}") == 0
    yield tmp_path
    lease = Home(tmp_path / "home").job("keep").read().lease
    if lease is not None and is_live(lease):
        os.kill(lease.owner.pid, signal.SIGKILL)


def start(folder: Path, app: Path, *params: str) -> int:
    words = [word for pair in params for word in ("--set", pair)]
    return invoke(["run", str(app), "--home", str(folder / "home"), "--bounded", *words])


def answers(client: TestClient) -> str:
    """All that can be read of the job, through REST and as pages."""
    described = client.get("/openapi.json").json()["paths"]
    paths = [path.replace("{job}", "keep") for path, ways in described.items() if "get" in ways]
    pages = [f"/ui/jobs/keep{tab}" for tab in ("", "/configuration", "/exceptions", "/runs")]
    found = [client.get(path) for path in (*paths, *pages) if "{" not in path]
    assert sum(answer.status_code == 200 for answer in found) > 15
    return "".join(answer.text for answer in found)


def test_a_secret_that_is_not_kept_cannot_be_used_again(folder: Path) -> None:
    with TestClient(create_app(str(folder / "home")), base_url="http://127.0.0.1") as client:
        plan = client.get("/jobs/keep/plan/restart").json()
        assert plan["refusal"] == (
            "the secret db_login, api_token, store were given as text, which is not kept: start "
            "the job on the command line with --set db_login=env:VARIABLE or --set db_login=@FILE, "
            "and it can be started from here afterwards"
        )
        refused = client.post("/jobs/keep/restart", json={})
        assert refused.status_code == 409 and "db_login=******" in refused.json()["remedy"]
        told = answers(client) + refused.text
    assert [s for s in SECRETS if s in told] == [] and leaks(folder / "home") == []


@pytest.mark.slow
def test_a_job_is_started_again_with_its_references(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, app = folder / "home", folder / "app.py"
    (folder / "login").write_text(PASSWORD + "\n")
    monkeypatch.setenv("KEEP_TOKEN", TOKEN)
    monkeypatch.setenv("KEEP_STORE", STORE)
    given = (f"db_login=@{folder / 'login'}", "api_token=env:KEEP_TOKEN", "store=env:KEEP_STORE")
    produce(folder, 2)
    assert start(folder, app, *given) == 0
    with TestClient(create_app(str(home)), base_url="http://127.0.0.1") as client:
        asked = client.post("/jobs/keep/restart", json={"snapshot": "latest"})
        assert asked.status_code == 202, asked.text
        ended = _ended(client, asked.json()["id"])
        assert ended["state"] == "done", ended
        lines = _command_lines(ended["result"]["pid"])
        assert len(lines) > 1 and "--set\0api_token=env:KEEP_TOKEN" in lines[0]
        produce(folder, 3)
        _until(lambda: written(folder)[-1] == "3")
        produce(folder, 13)
        _until(lambda: client.get("/jobs/keep").json()["summary"]["state"] == "FAILED")
        told = answers(client)
        assert "cannot log in to postgresql://******@db:5432/shop as ******" in told
        told += "".join(lines) + Path(ended["result"]["log"]).read_text()
    assert [s for s in SECRETS if s in told] == []
    assert leaks(home) == []


def _ended(client: TestClient, operation: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = []

    def ended() -> bool:
        found.append(client.get(f"/jobs/keep/operations/{operation}").json())
        return bool(found[-1]["ended"])

    _until(ended)
    return found[-1]


def _until(condition: Any) -> None:
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, "not in time"
        time.sleep(0.1)


def _command_lines(pid: int) -> list[str]:
    """The command lines of a process and of all that it started."""
    found = [Path(f"/proc/{pid}/cmdline").read_text()]
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            found += _command_lines(int(child))
    return found
