"""REST over a home made by real jobs: what it says is compared with a truth from the orders."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from headgate.connectors.log.files import TopicFiles
from headgate.home.audit import audit
from headgate.home.layout import Home
from headgate.home.stages import Spread
from headgate.runtime.lease import is_live
from headgate.ui.app import create_app
from tests.ui.homes import _BASE_MS, APP, SECRET, USERS, VARIABLE, Homes, Truth

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def client(made: Homes) -> Iterator[TestClient]:
    with TestClient(create_app(str(made.home)), base_url="http://127.0.0.1") as found:
        yield found


def get(client: TestClient, path: str, **params: Any) -> Any:
    answer = client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def done(client: TestClient, job: str, path: str, **body: Any) -> dict[str, Any]:
    """Request an action and wait for the end of its operation."""
    begun = client.post(f"/jobs/{job}/{path}", json=body)
    assert begun.status_code == 202, begun.text
    end = time.monotonic() + 330
    while time.monotonic() < end:
        operation: dict[str, Any] = get(client, f"/jobs/{job}/operations/{begun.json()['id']}")
        if operation["ended"]:
            assert operation["state"] == "done", operation
            return operation
        time.sleep(0.1)
    raise AssertionError("not in time")


def test_jobs_are_listed_as_they_are(made: Homes, client: TestClient) -> None:
    view = get(client, "/jobs/overview")
    states = {job["name"]: job["state"] for job in view["jobs"]}
    assert states == {"crashed": "CRASHED", "failed": "FAILED", "restored": "FINISHED",
                      "running": "RUNNING", "stopped": "STOPPED"}  # fmt: skip
    assert view["counts"]["RUNNING"] == view["counts"]["CRASHED"] == 1 and not view["unreadable"]
    running = next(job for job in view["jobs"] if job["name"] == "running")
    assert running["end-time"] is None and running["duration"] > 0 and running["behind"] == 0


@pytest.mark.parametrize("job", ["crashed", "stopped", "restored", "running"])
def test_every_step_and_edge_has_its_true_count(made: Homes, client: TestClient, job: str) -> None:
    truth = made.truth(job)
    graph = get(client, f"/jobs/{job}/plan")
    found = truth.even + truth.odd
    edges = {(e["source"], e["output"], e["target"]): e["records"] for e in graph["edges"]}
    assert edges == {
        ("orders", "out", "users_lookup"): truth.orders,
        ("users", "out", "users_lookup"): truth.users,
        ("orders", "malformed", "malformed"): truth.malformed,
        ("users_lookup", "missing", "missing_users"): truth.missing,
        ("users_lookup", "out", "users_lookup/where1"): found,
        ("users_lookup/where1", "out", "users_lookup/where1/select1"): truth.even,
        ("users_lookup/where1/select1", "out", "even"): truth.even,
        ("users_lookup", "out", "users_lookup/where2"): found,
        ("users_lookup/where2", "out", "users_lookup/where2/select1"): truth.odd,
        ("users_lookup/where2/select1", "out", "odd"): truth.odd,
    }
    nodes = {node["id"]: node for node in graph["nodes"]}
    lookup = nodes["users_lookup"]
    assert lookup["records_in"] == truth.orders and lookup["table_in"] == truth.users
    assert lookup["records_out"] == found and lookup["side"] == [
        {"output": "missing", "records": truth.missing}
    ]
    assert lookup["state_rows"] == USERS and lookup["state_bytes"] > 0
    assert nodes["even"]["records_out"] == truth.even and nodes["orders"]["behind"] == 0
    # the newest order that parses, less the disorder that the source may have
    newest = max(n for n in range(made.data[job].sent) if n % 25 != 24)
    mark = datetime.fromtimestamp((_BASE_MS + newest * 1000 - 5000) / 1000, UTC)
    assert datetime.fromisoformat(nodes["orders"]["watermark"]) == mark
    watermarks = get(client, f"/jobs/{job}/watermarks")
    assert datetime.fromisoformat(watermarks["watermark"]) == mark


def test_a_killed_job_shows_its_last_checkpoint_and_how_to_resume(
    made: Homes, client: TestClient
) -> None:
    view = get(client, "/jobs/crashed")
    newest = view["summary"]["checkpoint"]
    assert "killed" in view["state_text"] and f"ck:{newest}" in view["state_text"]
    assert f"it resumes after ck:{newest}" in view["resume_hint"]["text"]
    words = shlex.split(view["resume_hint"]["command"])
    assert words[:3] == ["headgate", "run", f"{APP}:shop"] and view["resume_hint"]["file_is_here"]
    assert words[words.index("--name") + 1] == "crashed"
    assert words[words.index("--home") + 1] == str(made.home)
    assert f"data={made.data['crashed'].folder}" in words
    assert view["driver"] is None and get(client, "/jobs/running")["driver"]["pid"] == os.getpid()
    assert get(client, "/jobs/running")["resume_hint"] is None


def test_stages_of_a_batch_have_its_steps_and_how_its_rows_were_spread(
    made: Homes, client: TestClient
) -> None:
    """Orders 40 to 59 came in that batch, evenly over two partitions; number 49 is no JSON."""
    record = Home(made.home).job("restored").run("r2").record_at(1)
    assert record is not None
    read = [stage for stage in record.stages if stage.steps.get("orders")]
    (stage,) = read
    assert stage.steps["orders"] == Spread(19, 10, 10**2 + 9**2) and stage.tasks >= 2
    spread = [
        stage.steps["users_lookup"] for stage in record.stages if "users_lookup" in stage.steps
    ]
    assert sum(one.rows for one in spread if one) == record.rows["users_lookup"]["records_in"]
    counted = {step for step, of in record.rows.items() if any(of.values())}
    detail = get(client, "/jobs/restored/checkpoints/details/1")
    assert {step for stage in detail["stages"] for step in stage["steps"]} == counted
    for one in detail["stages"]:
        assert 0 <= one["longest_task"] <= one["worked"] and one["tasks"] >= 1
        assert one["began"] + one["took"] <= detail["checkpoint"]["end_to_end_duration"] / 1000 + 1
    (node,) = [n for n in get(client, "/jobs/restored")["graph"]["nodes"] if n["id"] == "orders"]
    assert 0 <= node["batch_share"] <= 1 and node["busy_share"] is None  # it does not run
    assert node["skew"] is None  # so few rows say nothing


def test_checkpoints_of_a_restored_job_by_run_step_partition_and_offset(
    made: Homes, client: TestClient
) -> None:
    view = get(client, "/jobs/restored/checkpoints")
    assert view["run"] == "r2" and view["runs"] == ["r1", "r2"]
    assert view["counts"] == {"total": 1, "in_progress": 0, "completed": 1, "failed": 0,
                              "restored": 1}  # fmt: skip
    assert [line["checkpoint_type"] for line in view["history"]] == ["periodic", "forked"]
    restored = view["latest"]["restored"]
    assert (restored["id"], restored["is_savepoint"], restored["how"]) == (0, True, "restored")
    assert view["latest"]["savepoint"]["label"] == "before_v2"
    assert view["summary"]["records"]["max"] == 20
    first = get(client, "/jobs/restored/checkpoints", run="r1", limit=1)
    assert len(first["history"]) == 1 and first["history_total"] == 2
    older = get(client, "/jobs/restored/checkpoints", run="r1", before=1)
    assert [line["id"] for line in older["history"]] == [0]

    detail = get(client, "/jobs/restored/checkpoints/details/1")
    truth, before = Truth.of(60), Truth.of(40)
    orders = next(source for source in detail["sources"] if source["id"] == "orders")
    assert [(p["partition"], p["start"], p["end"], p["records"]) for p in orders["partitions"]] == [
        ("0", 20, 30, 10), ("1", 20, 30, 10),
    ]  # fmt: skip
    steps = {step["id"]: step for step in detail["steps"]}
    assert steps["even"]["records_out"] == truth.even - before.even
    assert steps["even"]["total_records_out"] == truth.even
    lookup = get(client, "/jobs/restored/checkpoints/details/1/subtasks/users_lookup")
    assert lookup == steps["users_lookup"] and len(lookup["partitions"]) == 2
    assert lookup["full_size"] == sum(part["full_size"] for part in lookup["partitions"]) > 0
    assert 0 < lookup["checkpointed_size"] <= lookup["full_size"]
    assert "--from r2/ck:1" in detail["restore"]["command"]

    runs = get(client, "/jobs/restored/runs")["runs"]
    assert [(r["run"], r["depth"], r["current"]) for r in runs] == [
        ("r1", 0, False), ("r2", 1, True),
    ]  # fmt: skip
    assert runs[1]["parent_savepoint"] == "before_v2" and runs[1]["parent_checkpoint"] == 0
    saved = get(client, "/jobs/restored/savepoints")["savepoints"]
    assert [one["name"] for one in saved] == ["sp:before_v2"] and saved[0]["bytes"] > 0


def test_a_failure_has_the_users_line_and_what_happened_next(client: TestClient) -> None:
    view = get(client, "/jobs/failed/exceptions")
    last, first = view["exceptionHistory"]["entries"]
    line = next(n for n, text in enumerate(APP.read_text().splitlines(), 1) if "raise" in text)
    for failure in (last, first):
        assert "ValueError: sevens are not welcome <b>here</b>" in failure["message"]
        assert f"{APP.name}" in failure["location"] and str(line) in failure["location"]
        assert failure["batch"] == 0 and failure["remedy"]
    assert first["restart"] == 1 and "restart 1 (fixed_delay) after" in first["next"]
    assert "failed again" in first["next"]
    assert last["next"].startswith("it was not restarted, because it failed so twice")
    assert view["root-exception"].endswith(last["message"])
    assert get(client, "/jobs/stopped/exceptions")["total"] == 0


def test_each_value_says_where_it_came_from(made: Homes, client: TestClient) -> None:
    view = get(client, "/jobs/crashed/config")
    origin = {one["name"]: (one["value"], one["origin"]) for part in
              ("checkpoints", "job_settings", "params", "spark") for one in view[part]}  # fmt: skip
    assert origin["checkpoints.every"] == ("200 milliseconds", "job file")
    assert origin["checkpoints.durability"] == ("disk", "default")
    assert origin["checkpoints.retain"] == ("5", "job file")
    assert origin["checkpoints.timeout"] == ("none", "default")
    assert origin["restart.strategy"][1] == "default"
    assert origin["master"] == ("local[1]", "flag")
    assert origin["spark.driver.memory"] == ("1g", "flag")
    assert origin["spark.speculation"] == ("false", "headgate")
    assert origin["params.data"] == (str(made.data["crashed"].folder), "flag")
    assert origin["params.api_token"] == (f"env:{VARIABLE}", "reference")
    failed = get(client, "/jobs/failed/config")["job_settings"]
    assert "at most 3 restarts" in next(
        one["value"] for one in failed if one["name"] == "restart.strategy"
    )


def test_the_end_of_a_sink_is_what_its_topic_holds(made: Homes, client: TestClient) -> None:
    view = get(client, "/jobs/stopped/outputs/even", limit=5)
    topic = TopicFiles(made.data["stopped"].folder / "out" / "even")
    truth = [json.loads(record.value or "") for record in topic.read()]
    assert view["records"] == len(truth) == made.truth("stopped").even
    assert [json.loads(row["value"]) for row in view["rows"]] == truth[-5:]
    assert client.get("/jobs/stopped/outputs/orders").status_code == 404


def test_state_is_read_by_key_scanned_and_compared(client: TestClient) -> None:
    (kept,) = get(client, "/jobs/stopped/state")["steps"]
    assert (kept["step"], kept["key"], kept["rows"]) == ("users_lookup", ["id"], USERS)
    rows = get(client, "/jobs/stopped/state/users_lookup", limit=100)
    assert {r["key"]["id"]: r["row"]["name"] for r in rows["rows"]} == {
        n: f"u{n}" for n in range(USERS)
    }
    assert not rows["truncated"]
    two = get(client, "/jobs/stopped/state/users_lookup", limit=2, snapshot="sp:at_the_end")
    assert len(two["rows"]) == 2 and two["truncated"]
    (one,) = get(client, "/jobs/stopped/state/users_lookup", key="id=3")["rows"]
    assert one["row"] == {"id": 3, "name": "u3"}
    assert get(client, "/jobs/stopped/state/users_lookup", key="id")["rows"] == []  # null
    path = "/jobs/restored/state/users_lookup/diff"
    diff = get(client, path, before="sp:before_v2", after="r1/ck:1")
    assert diff["counts"] == {"added": 0, "removed": 0, "changed": 0}
    for wrong in ({"key": "name=x"}, {"key": "id=x"}, {"snapshot": "ck:99"}, {"state": "nope"}):
        assert client.get("/jobs/stopped/state/users_lookup", params=wrong).status_code in (
            400,
            404,
        )
    assert client.get("/jobs/stopped/state/orders").status_code == 404


def test_metrics_parse_and_are_true(made: Homes, client: TestClient) -> None:
    text = client.get("/metrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}

    def value(family: str, name: str, **labels: str) -> float:
        (found,) = [sample.value for sample in families[family].samples
                    if sample.name == name and labels.items() <= sample.labels.items()]  # fmt: skip
        return float(found)

    for job in ("crashed", "stopped", "restored"):
        truth = made.truth(job)
        name = "headgate_step_records_out_total"
        for step, output, count in (("even", "out", truth.even), ("odd", "out", truth.odd),
                                    ("orders", "malformed", truth.malformed),
                                    ("users_lookup", "missing", truth.missing)):  # fmt: skip
            labels = {"job": job, "step": step, "output": output}
            assert value("headgate_step_records_out", name, **labels) == count
        assert value("headgate_state_rows", "headgate_state_rows", job=job) == USERS
    name = "headgate_job_state"
    assert value(name, name, job="crashed", state="CRASHED") == 1
    assert value(name, name, job="crashed", state="RUNNING") == 0
    restarts = "headgate_job_restarts_total"
    assert value("headgate_job_restarts", restarts, job="failed") == 1
    name = "headgate_checkpoint_duration_seconds"
    assert value(name, f"{name}_count", job="restored") == 1
    assert value(name, f"{name}_bucket", job="restored", le="+Inf") == 1
    latency = "headgate_sink_latency_seconds"  # of the job that runs
    late = {(s.labels["job"], s.labels["step"]) for s in families[latency].samples}
    shown = get(client, "/jobs/running")["latency"]
    assert late == {("running", sink["sink"]) for sink in shown} and late
    for _, step in late:
        half = value(latency, latency, job="running", step=step, quantile="0.5")
        assert 0 < half <= value(latency, latency, job="running", step=step, quantile="0.99")
    types = {family.name: family.type for family in families.values()}
    assert types["headgate_checkpoints"] == "counter" and types[name] == "histogram"


def test_reading_changes_nothing_and_shows_no_secret(made: Homes, client: TestClient) -> None:
    before = made.tree()
    paths = get(client, "/openapi.json")["paths"]
    for job in made.data:
        for path, methods in paths.items():
            if "get" not in methods or "/state/" in path:
                continue
            for part, value in (("{job}", job), ("{checkpoint}", "0"), ("{step}", "even"),
                                ("{action}", "restart"), ("{operation}", "op-0")):  # fmt: skip
                path = path.replace(part, value)
            answer = client.get(path)
            assert answer.status_code in (200, 404), (path, answer.text)
            assert SECRET not in answer.text, path
    assert SECRET not in client.get("/metrics").text
    assert made.tree() == before


def test_a_running_job_is_saved_pinned_verified_moved_and_stopped(
    made: Homes, client: TestClient
) -> None:
    plan = get(client, "/jobs/running/plan/savepoint", label="from_ui")
    assert plan["allowed"] and plan["lines"] and "--label from_ui" in plan["command"]
    body = {"label": "from_ui", "confirm": plan["confirm"]}
    saved = done(client, "running", "savepoints", **body)
    assert saved["id"].startswith("op-") and saved["result"]["label"] == "from_ui"
    labels = [one["label"] for one in get(client, "/jobs/running/savepoints")["savepoints"]]
    assert labels == ["from_ui"]
    again = client.post("/jobs/running/savepoints", json=body)
    assert again.status_code == 409 and "already" in again.json()["errors"][0]

    made.data["running"].send(10)
    made.running.until_processed(made.data["running"].sent)
    newest = get(client, "/jobs/running/checkpoints")["latest"]["completed"]["id"]
    assert done(client, "running", "checkpoints")["result"]["checkpoint"] >= newest
    done(client, "running", f"checkpoints/{newest}/pin", run="r1")
    verified = done(client, "running", f"checkpoints/{newest}/verify")
    assert verified["result"]["ok"] and verified["result"]["files"] > 0
    assert get(client, "/jobs/running/checkpoints")["history"][0]["pinned"]
    done(client, "running", f"checkpoints/{newest}/pin", off=True)
    assert not get(client, "/jobs/running/checkpoints")["history"][0]["pinned"]
    assert done(client, "running", "savepoints/from_ui/verify")["result"]["ok"]

    plan = get(client, "/jobs/running/plan/restart", snapshot="sp:from_ui")
    assert any("a second time" in line for line in plan["lines"])
    moved = done(client, "running", "restart", snapshot="sp:from_ui", confirm=plan["confirm"])
    assert moved["result"]["run"] == "r2"
    made.running.until_processed(made.data["running"].sent)
    stale = client.post("/jobs/running/stop", json={"confirm": plan["confirm"]})
    assert stale.status_code == 409 and "has changed" in stale.json()["errors"][0]

    stopped = done(client, "running", "stop", label="the_end")
    assert stopped["result"]["savepoint"]["label"] == "the_end"
    made.running.stop()
    assert get(client, "/jobs/running")["summary"]["state"] == "STOPPED"
    assert client.post("/jobs/running/cancel", json={}).status_code == 409
    audited = [(one.action, bool(one.refused)) for one in audit(Home(made.home).job("running"))]
    assert audited[:2] == [("savepoint", False), ("savepoint", True)]
    assert audited[-2:] == [("stop", False), ("cancel", True)]
    made.start_again()
    assert get(client, "/jobs/running")["summary"]["state"] == "RUNNING"


# In part: test_crashed.py starts one again whose batch is out but not committed.
@pytest.mark.long
def test_a_killed_job_is_started_again_from_its_page(made: Homes, tmp_path: Path) -> None:
    home = tmp_path / "home"
    # a copy, since the others still want to see it killed; files of the running job come and go
    shutil.copytree(made.home, home, ignore=shutil.ignore_patterns("running"))
    job = Home(home).job("crashed")
    with TestClient(create_app(str(home)), base_url="http://127.0.0.1") as client:
        plan = get(client, "/jobs/crashed/plan/restart")
        assert plan["allowed"] and "run r1 goes on after ck:" in plan["lines"][1]
        plan = get(client, "/jobs/crashed/plan/restart", snapshot="latest")
        assert plan["allowed"] and "the newest checkpoint" in plan["lines"][1]
        try:
            started = done(client, "crashed", "restart", snapshot="latest")
            assert started["result"]["run"] == "r2"
            view = get(client, "/jobs/crashed")
            assert view["summary"]["state"] == "RUNNING"
            assert view["driver"]["pid"] == started["result"]["pid"]
            assert [(r["run"], r["depth"]) for r in get(client, "/jobs/crashed/runs")["runs"]] == [
                ("r1", 0), ("r2", 1),
            ]  # fmt: skip
            done(client, "crashed", "stop", savepoint=False)
        finally:
            if (lease := job.read().lease) is not None and is_live(lease):
                os.kill(lease.owner.pid, signal.SIGKILL)
        truth = made.truth("crashed")
        nodes = {node["id"]: node for node in get(client, "/jobs/crashed/plan")["nodes"]}
        assert nodes["even"]["records_out"] == truth.even, "nothing was lost or done twice"

    # elsewhere the file is not at hand: then there is the command
    runs = home / "jobs" / "stopped" / "runs" / "r1" / "run.json"
    runs.write_text(runs.read_text().replace(str(APP), "/nowhere/shop_app.py"))
    with TestClient(create_app(str(home)), base_url="http://127.0.0.1") as client:
        plan = get(client, "/jobs/stopped/plan/restart", snapshot="sp:at_the_end")
        assert not plan["allowed"] and "is not on the machine" in plan["refusal"]
        assert "--from sp:at_the_end" in plan["command"]
        answer = client.post("/jobs/stopped/restart", json={"snapshot": "sp:at_the_end"})
        assert answer.status_code == 409 and plan["command"] in answer.json()["remedy"]
