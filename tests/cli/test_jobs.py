"""`headgate list` and `show` on a home made by hand: states, tables, JSON, and no Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from headgate.cli.main import invoke
from headgate.cli.tables import local_time
from headgate.home.event_time import EventTimeRecord, SourceTime
from headgate.home.layout import Home, RunHome
from headgate.home.model import CheckpointRecord
from headgate.home.offsets import SourceOffsets
from headgate.home.times import now
from headgate.runtime.lease import Lease

GRAPH = {
    "job": "store",
    "sources": ["orders", "users"],
    "warnings": [],
    "steps": [
        {"id": "orders", "kind": "source", "named": True, "inputs": [],
         "outputs": ["out", "malformed"], "schema": "", "stateful": False, "operator_id": None,
         "state_schema": "", "detail": {}, "location": None},
        {"id": "users", "kind": "table", "named": True, "inputs": [], "outputs": ["out"],
         "schema": "", "stateful": False, "operator_id": None, "state_schema": "", "detail": {},
         "location": None},
        {"id": "users_lookup", "kind": "lookup", "named": True,
         "inputs": [{"step": "orders", "output": "out"}, {"step": "users", "output": "out"}],
         "outputs": ["out", "missing"], "schema": "", "stateful": True, "operator_id": 7,
         "state_schema": "", "detail": {}, "location": None},
        {"id": "select_1", "kind": "select", "named": False,
         "inputs": [{"step": "users_lookup", "output": "out"}], "outputs": ["out"], "schema": "",
         "stateful": False, "operator_id": None, "state_schema": "", "detail": {},
         "location": None},
        {"id": "enriched", "kind": "sink", "named": True,
         "inputs": [{"step": "select_1", "output": "out"}], "outputs": [], "schema": "",
         "stateful": False, "operator_id": None, "state_schema": "", "detail": {},
         "location": None},
    ],
}  # fmt: skip


def make_job(home: Path, name: str = "store") -> RunHome:
    job = Home(home).job(name)
    run = job.new_run(
        graph=GRAPH, graph_fingerprint="f", parallelism=2, params={"a": "1"}, versions={}, code={}
    )
    job.set_current(run.id)
    run.add_event("started", master="local[2]", versions={"spark": "4.2.0"})
    return run


def checkpoint(run: RunHome, id: int = 17, *, age: float = 4.0) -> CheckpointRecord:
    done = now() - timedelta(seconds=age)
    totals = {
        "orders": {"records_out": 11_904_220, "records_out_malformed": 3},
        "users": {"records_out": 50_000},
        "users_lookup": {"records_in": 11_954_220, "records_out": 11_904_100,
                         "records_out_missing": 120, "state_inserted": 5, "retries": 1200},
        "enriched": {"records_in": 11_904_100, "records_out": 11_904_100},
    }  # fmt: skip
    record = CheckpointRecord(
        id=id,
        run=run.id,
        status="COMPLETED",
        type="periodic",
        triggered_at=done - timedelta(seconds=1),
        completed_at=done,
        duration_ms=410,
        rows={"orders": {"records_out": 1000}, "enriched": {"records_out": 900}},
        totals=totals,
        state={"users_lookup": {"rows": 50_000, "bytes": 9_542_041}},
        sources={"orders": SourceOffsets({}, {"0": 88_120}, {"0": 88_130})},
        watermark=now() - timedelta(seconds=9),
    )
    run.write_checkpoint(record)
    return record


def test_no_jobs_is_an_empty_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["list", "--home", str(tmp_path)]) == 0
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"no jobs in {tmp_path}\n"
    assert invoke(["list", "--home", str(tmp_path), "--json", "--quiet"]) == 0
    assert capsys.readouterr() == ('{"version": 1, "jobs": []}\n', "")


def test_list_shows_each_job_with_its_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint(make_job(tmp_path))
    make_job(tmp_path, "crashed_one")
    make_job(tmp_path, "done_one").add_event("finished")
    make_job(tmp_path, "failed_one").add_event("failed", reason="X", message="m")
    make_job(tmp_path, "stopped_one").add_event("stopped")
    with Lease(Home(tmp_path).job("store")):
        Home(tmp_path).job("store").run("r1").add_event("started", master="local[2]")
        assert invoke(["list", "--home", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == [
        "JOB", "STATE", "UP", "IN/S", "OUT/S", "WATERMARK", "LAG", "CHECKPOINT", "RESTARTS",
    ]  # fmt: skip
    states = {line.split()[0]: line.split()[1] for line in lines[1:]}
    assert states == {
        "store": "RUNNING", "crashed_one": "CRASHED", "done_one": "FINISHED",
        "failed_one": "FAILED", "stopped_one": "STOPPED",
    }  # fmt: skip
    assert "ck:17" in lines[-1]


def test_a_job_between_two_tries_is_restarting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_job(tmp_path)

    def shown() -> list[str]:
        assert invoke(["list", "--home", str(tmp_path)]) == 0
        return capsys.readouterr().out.splitlines()[1].split()

    with Lease(run.job):
        run.add_event("started", master="local[2]")
        run.add_event("failed", reason="STORAGE", message="m", gives_up=None)
        assert shown()[1] == "RESTARTING"
        run.add_event("restarting", attempt=1, delay_seconds=10, strategy="fixed_delay")
        assert shown()[1] == "RESTARTING" and shown()[-1] == "1"
        run.add_event("restarted", attempt=1)
        assert shown()[1] == "RUNNING" and shown()[-1] == "1"
        run.add_event("failed", reason="STORAGE", message="m", gives_up="it may not")
        assert shown()[1] == "FAILED"
    run.add_event("cancelled", checkpoint=3)
    assert shown()[1] == "CANCELED"
    assert invoke(["list", "--home", str(tmp_path), "--state", "restarting"]) == 0


def test_list_can_be_narrowed_to_a_state(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_job(tmp_path, "a").add_event("stopped")
    make_job(tmp_path, "b").add_event("failed", reason="X", message="m")
    assert invoke(["list", "--home", str(tmp_path), "--state", "failed", "--json"]) == 0
    assert [job["job"] for job in json.loads(capsys.readouterr().out)["jobs"]] == ["b"]
    assert invoke(["list", "--home", str(tmp_path), "--state", "odd"]) == 2


def test_show_steps_is_a_table_of_counts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint(make_job(tmp_path))
    assert invoke(["show", "sto", "--steps", "--home", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("store  CRASHED since ")
    assert "run r1" in lines[0]
    assert lines[0].endswith("local[2]   spark 4.2.0")
    counted = lines.index("users_lookup counted  retries 1,200")
    rows = {line.split()[0]: line for line in lines[2:counted]}
    assert list(rows) == ["orders", "users", "users_lookup", "enriched"]
    assert lines[1].split()[:7] == ["STEP", "KIND", "IN", "TABLE", "OUT", "MISSING", "SIDE"]
    assert rows["users_lookup"].split()[1:8] == [
        "lookup", "11,904,220", "50,000", "11,904,100", "120", "50,000", "9.1",
    ]  # fmt: skip
    assert "malformed 3" in rows["orders"]
    assert rows["enriched"].split()[1:5] == ["sink", "11,904,100", "–", "11,904,100"]


def test_show_tells_offsets_and_the_last_failure(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_job(tmp_path)
    checkpoint(run)
    run.add_event(
        "failed", reason="MALFORMED_RECORD", message="it broke", step="orders", remedy="mend it"
    )
    assert invoke(["show", "store", "--home", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "orders at 0:88,120   behind by 10" in text
    assert "MALFORMED_RECORD in step 'orders': it broke" in text
    assert "mend it" in text
    assert "checkpoint   ck:17 at " in text


def test_show_tells_why_the_watermark_stands_still_and_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = make_job(tmp_path)
    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def shown(time: EventTimeRecord) -> list[str]:
        run.write_checkpoint(replace(checkpoint(run), event_time=time))
        assert invoke(["show", "store", "--home", str(tmp_path)]) == 0
        lines = capsys.readouterr().out.splitlines()
        first = next(i for i, line in enumerate(lines) if line.startswith("watermark"))
        end = next(i for i, line in enumerate(lines) if line.startswith("crashed"))
        return [" ".join(line.split()) for line in lines[first:end]]

    def minutes(n: float) -> datetime:
        return noon + timedelta(minutes=n)

    orders = SourceTime(minutes(9), rows_at=minutes(10), since=minutes(10))
    clicks = SourceTime(minutes(2), rows_at=minutes(3), since=minutes(3))
    silent = EventTimeRecord(minutes(10), minutes(2), False, {"orders": orders, "clicks": clicks})
    assert shown(silent) == [
        f"watermark {local_time(minutes(2))} source 'clicks' holds it back by 7m 00s",
        f"orders {local_time(minutes(9))}",
        f"clicks {local_time(minutes(2))}",
        f"source 'clicks' has had no rows since {local_time(minutes(3))}, and without idle_after "
        "all windows wait for it; if it may be silent, set idle_after: hg.event_time(..., "
        'idle_after="1 minute")',
    ]
    assert invoke(["show", "store", "--steps", "--home", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    counted = lines.index("users_lookup counted  retries 1,200")
    rows = {line.split()[0]: line.split() for line in lines[2:counted]}
    assert rows["orders"][-1] == minutes(9).astimezone().strftime("%H:%M:%S")
    assert rows["users_lookup"][-1] == minutes(2).astimezone().strftime("%H:%M:%S")

    idle = replace(clicks, idle_after=timedelta(minutes=5), idle_since=minutes(8))
    found = shown(replace(silent, next=minutes(9), sources={"orders": orders, "clicks": idle}))
    assert found == [
        f"watermark {local_time(minutes(9))}",
        f"orders {local_time(minutes(9))}",
        f"clicks {local_time(minutes(2))} idle since {local_time(minutes(8))}",
    ]
    new = EventTimeRecord(minutes(10), None, False, {"orders": orders, "clicks": SourceTime()})
    assert shown(new)[:3] == [
        "watermark – no rows yet from source 'clicks'",
        f"orders {local_time(minutes(9))}",
        "clicks – no rows yet",
    ]
    assert "has had no rows yet, and without idle_after" in shown(new)[3]
    assert shown(EventTimeRecord(minutes(10), minutes(9), False, {"orders": orders})) == [
        f"watermark {local_time(minutes(9))}"
    ]
    assert shown(EventTimeRecord(minutes(10), minutes(2), False, {"clicks": idle})) == [
        f"watermark {local_time(minutes(2))} the source is idle since {local_time(minutes(8))}"
    ]
    ended = shown(EventTimeRecord(minutes(10), minutes(9), True, {"orders": orders}))
    assert "event time was ended by a drain" in ended[0] and "--fresh" in ended[1]


def test_show_json_has_utc_times_and_a_version(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = checkpoint(make_job(tmp_path))
    assert invoke(["show", "store", "--json", "--home", str(tmp_path)]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["version"] == 1
    assert data["checkpoint"] == record.to_json()
    assert data["since"].endswith("Z")
    steps = {step["step"]: step for step in data["steps"]}
    assert steps["users_lookup"]["side"] == {"missing": 120}
    assert steps["users_lookup"]["counted"] == {"retries": 1200}
    assert steps["orders"]["records_in"] is None
    lookup = steps["users_lookup"]
    assert (lookup["records_in"], lookup["table_in"]) == (11_904_220, 50_000)
    assert lookup["records_in"] == lookup["records_out"] + lookup["missing"]
    assert datetime.fromisoformat(data["since"]).tzinfo == UTC


def test_an_unknown_job_exits_3_with_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_job(tmp_path)
    assert invoke(["show", "other", "--home", str(tmp_path)]) == 3
    out, err = capsys.readouterr()
    assert out == ""
    said = f"error: there is no job 'other' in {tmp_path}: it has: store"
    assert err == f"{said} (headgate explain NOT_FOUND)\n"


def test_the_graph_of_a_job_comes_from_the_home(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_job(tmp_path)
    assert invoke(["graph", "store", "--home", str(tmp_path)]) == 0
    assert "users_lookup" in capsys.readouterr().out
    assert invoke(["graph", "store", "--format", "mermaid", "--home", str(tmp_path)]) == 0
    assert capsys.readouterr().out.startswith("flowchart")


def test_list_and_show_do_not_import_spark(tmp_path: Path) -> None:
    make_job(tmp_path)
    code = (
        "import sys; from headgate.cli.main import invoke\n"
        "assert invoke(['list', '--home', sys.argv[1]]) == 0\n"
        "assert invoke(['show', 'store', '--steps', '--home', sys.argv[1]]) == 0\n"
        "assert not [name for name in sys.modules if name.partition('.')[0] == 'pyspark']"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
