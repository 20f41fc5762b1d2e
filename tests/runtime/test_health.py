"""/healthz and /readyz of a driver: they fail when the home hangs or batches stop."""

from __future__ import annotations

import io
import json
import threading
import urllib.error
import urllib.request

from headgate.base.errors import HeadgateError
from headgate.home.model import CheckpointRecord
from headgate.runtime.health import Health, HealthServer, HomeCheck
from headgate.runtime.json_display import JsonDisplay


def ask(port: int, path: str) -> tuple[int, dict[str, object]]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error) if path != "/other" else {}


def test_a_home_that_hangs_is_a_problem_and_is_asked_once() -> None:
    go, asked = threading.Event(), []

    def read() -> None:
        asked.append(1)
        go.wait(30)

    check = HomeCheck(read, seconds=0.05)
    assert check.problem() == "the home has not answered within 0.05 seconds"
    assert check.problem() is not None and len(asked) == 1
    go.set()
    while check.problem() is not None:
        pass
    assert check.problem() is None

    def broken() -> None:
        raise HeadgateError("no bucket")

    assert HomeCheck(broken).problem() == "the home cannot be read: no bucket"


def test_probes_say_why() -> None:
    lives: list[bool] = [True]

    def read() -> None:
        if not lives:
            raise OSError("gone")

    health = Health(HomeCheck(read), limit=3600)
    with HealthServer(health, 0, job="store", host="127.0.0.1") as server:
        assert ask(server.port, "/healthz") == (200, {"job": "store", "ok": True, "problems": []})
        code, body = ask(server.port, "/readyz")
        assert code == 503 and body["problems"] == ["the first batch has not ended"]
        health.polled("one", triggered=True)
        assert ask(server.port, "/readyz")[0] == 200
        lives.clear()
        code, body = ask(server.port, "/healthz")
        assert code == 503 and body["problems"] == ["the home cannot be read: gone"]
        assert ask(server.port, "/other")[0] == 404


def test_a_driver_whose_batches_stop_is_not_well() -> None:
    health = Health(HomeCheck(lambda: None), limit=0.0)
    health.polled("one", triggered=True)
    assert any("has not looked at its query" in text for text in health.problems())
    health = Health(HomeCheck(lambda: None), limit=3600)
    health.polled("one", triggered=True)
    health._progress -= 7200  # as if two hours had gone
    health.polled("one", triggered=True)
    assert health.problems() == ["the query has ended no batch for 7200 seconds"]
    health.polled("two", triggered=True)
    assert health.problems() == []


def test_a_line_of_the_log_has_job_run_batch_and_step() -> None:

    out = io.StringIO()
    display = JsonDisplay("store", out)
    display.say("starting Spark")
    display.say("warning: the sink is at least once")
    display.checkpoint(
        CheckpointRecord(7, "r2", "completed", "periodic", None, None, 12, rows={"a": {"out": 3}})
    )
    display.error(HeadgateError("it failed", step="a", remedy="mend it"))
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["level"] for line in lines] == ["INFO", "WARN", "INFO", "ERROR"]
    assert [line["message"] for line in lines][:2] == [
        "starting Spark", "the sink is at least once",
    ]  # fmt: skip
    assert all(line["job"] == "store" for line in lines)
    assert (lines[2]["run"], lines[2]["batch"], lines[2]["steps"]) == ("r2", 7, {"a": {"out": 3}})
    assert (lines[3]["step"], lines[3]["batch"], lines[3]["remedy"]) == ("a", 7, "mend it")
