"""A job killed with -9 while a batch was in its sinks and not committed: how it is shown, and that
`Start again` resumes it as `headgate run` does."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from headgate.cli.main import invoke
from headgate.connectors.log.files import TopicFiles
from headgate.home.layout import Home
from headgate.home.times import to_ms
from headgate.runtime.lease import is_live
from headgate.snapshots.spark_log import pending_batch
from headgate.ui.app import create_app
from tests.ui.homes import APP, SECRET, VARIABLE, Data, processed, until
from tests.ui.test_rest import done, get

pytestmark = pytest.mark.slow
JOB = "shop"


@dataclass(frozen=True)
class Crashed:
    """The home of the dead job, its topics, and the process that died."""

    home: Path
    data: Data
    pid: int


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Crashed:
    """Its JVM dies between the commit of its sinks and Spark's, and then its driver."""
    folder = tmp_path_factory.mktemp("crashed")
    home, log = folder / "home", folder / "driver.log"
    data = Data(folder / "data")
    data.send(20)
    os.environ[VARIABLE] = SECRET  # for the server that starts it again, too
    params = {**data.params, "api_token": f"env:{VARIABLE}"}
    sets = [word for pair in params.items() for word in ("--set", "=".join(pair))]
    with log.open("wb") as out:
        driver = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", "run", f"{APP}:shop", "--home", str(home),
             *sets, "--", "--master", "local[1]"],
            stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "HEADGATE_HALT": "after_sink:1"},
        )  # fmt: skip
    try:
        until(lambda: processed(home, JOB) == 20, log.read_text)
        os.kill(driver.pid, signal.SIGSTOP)  # it must not live to write down that the JVM is gone
        data.send(30)
        until(lambda: not _works(driver.pid), log.read_text)
    finally:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
    run = Home(home).job(JOB).current()
    assert run is not None and pending_batch(run) == 1, log.read_text()
    return Crashed(home, data, driver.pid)


def _works(parent: int) -> bool:
    """Whether a process has a child that is not dead."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, above = stat.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(above) == parent and state != "Z":
            return True
    return False


@pytest.fixture
def client(crashed: Crashed) -> Iterator[TestClient]:
    with TestClient(create_app(str(crashed.home)), base_url="http://127.0.0.1") as found:
        yield found


def written(data: Data) -> dict[str, list[int]]:
    """The numbers of the orders in each output that has them."""
    return {
        sink: sorted(
            json.loads(record.value or "")["n"]
            for record in TopicFiles(data.folder / "out" / sink).read()
        )
        for sink in ("even", "odd", "missing_users")
    }


def truth(count: int) -> dict[str, list[int]]:
    """The same from the orders alone, as `Data.send` makes them."""
    good = [n for n in range(count) if n % 25 != 24]
    known = [n for n in good if n % 10 != 9]
    return {
        "even": [n for n in known if n % 2 == 0],
        "odd": [n for n in known if n % 2 == 1],
        "missing_users": [n for n in good if n % 10 == 9],
    }


def test_the_crash_is_on_the_exceptions_tab_with_what_to_do(
    crashed: Crashed, client: TestClient
) -> None:
    view = get(client, f"/jobs/{JOB}/exceptions")
    (entry,) = view["exceptionHistory"]["entries"]
    assert view["total"] == 1 and view["root-exception"] == f"PROCESS_GONE: {entry['message']}"
    assert f"process {crashed.pid} on " in entry["message"]
    assert "gone without a word" in entry["message"] and "last seen alive at" in entry["message"]
    assert "ck:0; batch 1 was begun and not committed" in entry["message"]
    assert entry["batch"] == 1 and "Start again" in entry["remedy"]
    job = get(client, f"/jobs/{JOB}")
    assert job["resume_hint"]["command"] in entry["remedy"] and "--from" not in entry["remedy"]
    assert job["crash"]["pending_batch"] == 1 and job["crash"]["pid"] == crashed.pid
    lease = Home(crashed.home).job(JOB).read().lease
    assert lease is not None and entry["timestamp"] >= to_ms(lease.heartbeat)
    page = client.get(f"/ui/jobs/{JOB}/exceptions").text
    assert "gone without a word" in page and "has not failed" not in page
    assert "first does batch 1 again" in client.get(f"/ui/jobs/{JOB}").text


def test_show_says_what_is_known_of_the_crash(
    crashed: Crashed, client: TestClient, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["show", JOB, "--home", str(crashed.home)]) == 0
    said = capsys.readouterr().out
    assert f"process {crashed.pid} on " in said and "gone without a word" in said
    assert "batch 1 was begun and not committed" in said and "last seen alive" in said
    command = get(client, f"/jobs/{JOB}")["resume_hint"]["command"]
    assert f"start again  {command}\n" in said
    assert invoke(["show", JOB, "--home", str(crashed.home), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["state"] == "CRASHED" and shown["start_again"] == command
    assert (shown["crash"]["pid"], shown["crash"]["pending_batch"]) == (crashed.pid, 1)


def test_start_again_resumes_it_and_writes_no_row_twice(
    crashed: Crashed, client: TestClient
) -> None:
    job = Home(crashed.home).job(JOB)
    plan = get(client, f"/jobs/{JOB}/plan/restart")
    assert plan["allowed"], plan
    assert "--from" not in shlex.split(plan["command"])
    assert any("batch 1" in line for line in plan["lines"]), plan
    try:
        started = done(client, JOB, "restart", confirm=plan["confirm"])
        assert started["result"]["run"] == "r1", "the run that died goes on"
        # orders are sent one by one, so the batch that died may not have had them all
        until(lambda: processed(crashed.home, JOB) == crashed.data.sent, lambda: str(started))
        done(client, JOB, "stop", savepoint=False)
    finally:
        if (lease := job.read().lease) is not None and is_live(lease):
            os.kill(lease.owner.pid, signal.SIGKILL)
    assert written(crashed.data) == truth(crashed.data.sent)
    (entry,) = get(client, f"/jobs/{JOB}/exceptions")["exceptionHistory"]["entries"]
    assert entry["exceptionName"] == "PROCESS_GONE" and "it was resumed at" in entry["next"]
