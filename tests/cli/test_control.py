"""`stop`, `cancel`, `restart` and `op` against a driver made of Python."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headgate.cli.main import invoke
from headgate.home.layout import Home, JobHome
from headgate.home.operations import OperationRecord, Operations
from headgate.runtime.lease import Lease

SAVEPOINT = {"label": "before_v2", "path": "/lake/before_v2", "bytes": 11_744_051}


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> JobHome:
    monkeypatch.setenv("HEADGATE_HOME", str(tmp_path))
    job = Home(tmp_path).job("store")
    run = job.new_run(
        graph={"steps": [], "sources": []}, graph_fingerprint="f", parallelism=2, params={},
        versions={}, code={"file": str(Path.cwd() / "app.py")},
    )  # fmt: skip
    job.set_current(run.id)
    return job


@contextmanager
def driver(
    job: JobHome, *, state: str = "done", result: Mapping[str, Any] | None = None,
    message: str | None = None, dies: bool = False,
) -> Iterator[list[OperationRecord]]:  # fmt: skip
    """Takes one operation and ends it so, then gives the lease back; or dies with it in hand."""
    taken: list[OperationRecord] = []
    ended, ready = threading.Event(), threading.Event()

    def work() -> None:
        operations = Operations(job)
        with Lease(job):
            ready.set()
            while not taken and not ended.wait(0.01):
                taken.extend(r for id in operations.ids() if (r := operations.take(id)))
            if not dies:
                for record in taken:
                    operations.end(record.id, state, result=result, message=message)
                time.sleep(0.3)  # Spark takes its time to go

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        yield taken
    finally:
        ended.set()
        thread.join()


def test_stop_says_where_the_job_can_be_started_again(
    job: JobHome, capsys: pytest.CaptureFixture[str]
) -> None:
    result = {"run": "r1", "checkpoint": 17, "savepoint": SAVEPOINT}
    with driver(job, result=result) as taken:
        assert invoke(["stop", "sto", "--label", "before_v2", "--drain"]) == 0
        assert job.read().lease is None, "the job can be started again at once"
    assert taken[0].args == {"savepoint": True, "drain": True, "label": "before_v2"}
    out, err = capsys.readouterr()
    assert out.startswith("savepoint sp:before_v2   /lake/before_v2   11.2 MiB   ")
    assert f"stopping store … operation {taken[0].id}\n" in err
    assert "store has stopped at ck:17\n" in err
    assert "start it again with: headgate run app.py:store\n" in err
    assert "go back to this point later: headgate run app.py:store --from sp:before_v2\n" in err


def test_stop_without_a_savepoint_as_json(job: JobHome, capsys: pytest.CaptureFixture[str]) -> None:
    with driver(job, result={"run": "r1", "checkpoint": 17, "savepoint": None}) as taken:
        assert invoke(["stop", "store", "--no-savepoint", "--json", "--quiet"]) == 0
    out, err = capsys.readouterr()
    data = json.loads(out)
    assert (data["version"], data["id"], data["state"]) == (1, taken[0].id, "done")
    assert data["args"] == {"savepoint": False, "drain": False}
    assert err == ""


@pytest.mark.parametrize("verb", [["stop"], ["cancel", "--yes"], ["restart"]], ids=" ".join)
def test_a_job_that_does_not_run_is_refused(
    job: JobHome, verb: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke([verb[0], "store", *verb[1:]]) == 5
    assert "job 'store' is not running" in capsys.readouterr().err
    assert Operations(job).ids() == []
    assert invoke([verb[0], "other"]) == 3


def test_an_operation_that_failed_exits_1_with_its_message(
    job: JobHome, capsys: pytest.CaptureFixture[str]
) -> None:
    with driver(job, state="failed", message="the disk is full"):
        assert invoke(["restart", "store", "--parallelism", "4", "--from", "ck:3"]) == 1
    assert "(restart of job 'store') failed: the disk is full" in capsys.readouterr().err
    record = Operations(job).read(Operations(job).ids()[0])
    assert record.args == {"from": "ck:3", "parallelism": 4}


def test_what_is_not_done_in_time_is_no_failure(
    job: JobHome, capsys: pytest.CaptureFixture[str]
) -> None:
    with Lease(job):
        assert invoke(["stop", "store", "--timeout", "0.3s"]) == 4
    (id,) = Operations(job).ids()
    out, err = capsys.readouterr()
    assert out == f"{id}\n"
    assert f"not finished after 0.3s: operation {id} is requested" in err
    assert "error" not in err and f"headgate op wait {id}" in err
    assert Operations(job).read(id).state == "requested"


def test_without_waiting_the_id_is_printed(
    job: JobHome, capsys: pytest.CaptureFixture[str]
) -> None:
    with Lease(job):
        assert invoke(["stop", "store", "--no-wait"]) == 0
    assert capsys.readouterr().out == f"{Operations(job).ids()[0]}\n"


def test_a_driver_that_dies_with_it_is_a_failure(
    job: JobHome, capsys: pytest.CaptureFixture[str]
) -> None:
    with driver(job, dies=True):
        assert invoke(["stop", "store"]) == 1
    assert "ended while it carried out op-" in capsys.readouterr().err


def test_a_job_that_ends_before_it_is_asked_is_told_so(
    job: JobHome, capsys: pytest.CaptureFixture[str]
) -> None:
    lease = Lease(job).acquire()
    threading.Timer(0.3, lease.release).start()
    assert invoke(["stop", "store"]) == 5
    assert "ended before it read the request" in capsys.readouterr().err
    assert Operations(job).read(Operations(job).ids()[0]).state == "cancelled"


def test_ctrl_c_leaves_the_operation_to_itself(
    job: JobHome, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(seconds: float) -> None:
        raise KeyboardInterrupt

    with Lease(job):
        monkeypatch.setattr("headgate.cli.control.time.sleep", interrupted)
        code = invoke(["stop", "store"])
        monkeypatch.undo()
    (id,) = Operations(job).ids()
    assert code == 130
    assert f"operation {id} goes on" in capsys.readouterr().err
    assert Operations(job).read(id).state == "requested"


def test_cancel_wants_to_be_sure(job: JobHome, capsys: pytest.CaptureFixture[str]) -> None:
    with Lease(job):
        assert invoke(["cancel", "store"]) == 5
    assert "pass --yes" in capsys.readouterr().err
    with driver(job, result={"run": "r1"}) as taken:
        assert invoke(["cancel", "store", "--yes"]) == 0
    assert taken[0].kind == "cancel"


def test_a_label_without_a_savepoint_is_wrong_usage(job: JobHome) -> None:
    with Lease(job):
        assert invoke(["stop", "store", "--no-savepoint", "--label", "x"]) == 2
        assert invoke(["stop", "store", "--timeout", "soon"]) == 2
        assert invoke(["restart", "store", "--parallelism", "0"]) == 2
    assert Operations(job).ids() == []


def test_operations_are_shown_waited_for_and_taken_back(
    job: JobHome, capsys: pytest.CaptureFixture[str]
) -> None:
    operations = Operations(job)
    done = operations.request("stop", {"drain": True})
    operations.end(done.id, "done", result={"run": "r1", "checkpoint": 4, "savepoint": SAVEPOINT})
    assert invoke(["op", "show", done.id[:8]]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{done.id}   stop of store   done\n")
    assert "savepoint    sp:before_v2" in text and "checkpoint   ck:4 of run r1" in text
    assert invoke(["op", "wait", done.id, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["state"] == "done"

    asked = operations.request("stop")
    assert invoke(["op", "cancel", asked.id]) == 0
    assert operations.read(asked.id).state == "cancelled"
    assert invoke(["op", "wait", asked.id]) == 1
    assert invoke(["op", "cancel", done.id]) == 5
    assert invoke(["op", "show", "op-ffffffff"]) == 3

    running = operations.request("savepoint")
    operations.take(running.id)
    with Lease(job):
        assert invoke(["op", "cancel", running.id]) == 5
        assert invoke(["op", "wait", running.id, "--timeout", "0.2s"]) == 4
    asked = operations.request("savepoint")
    capsys.readouterr()
    assert invoke(["op", "wait", asked.id]) == 4
    assert "its next start does it" in capsys.readouterr().err
