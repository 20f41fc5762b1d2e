"""The home: names, runs, records and what a reader does with a newer format."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from headgate.base.errors import HeadgateError, NotFoundError, UsageError
from headgate.home.layout import Home, JobHome, RunHome, check_job_name, default_home
from headgate.home.model import CheckpointRecord, JobRecord, LeaseRecord, Owner, Parent
from headgate.home.offsets import SourceOffsets

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def new_run(job: JobHome, **changes: object) -> RunHome:
    options: dict[str, object] = {
        "graph": {"job": job.name, "sources": [], "steps": [], "warnings": []},
        "graph_fingerprint": "f1",
        "parallelism": 2,
        "params": {"a": "1"},
        "versions": {"spark": "4.2.0"},
        "code": {"sha256": "0"},
    }
    run = job.new_run(**{**options, **changes})  # type: ignore[arg-type]
    job.set_current(run.id)
    return run


def a_checkpoint(id: int = 17) -> CheckpointRecord:
    return CheckpointRecord(
        id=id,
        run="r1",
        status="COMPLETED",
        type="periodic",
        triggered_at=NOON,
        completed_at=NOON,
        duration_ms=120,
        phases={"execution": 100},
        rows={"orders": {"records_out": 5}},
        totals={"orders": {"records_out": 50}},
        state={"users_lookup": {"rows": 3, "bytes": 100}},
        sources={"orders": SourceOffsets({"0": 45}, {"0": 50}, {"0": 60})},
        watermark=NOON,
    )


@pytest.mark.parametrize("name", ["", "1a", "a b", "a/b", "../x", "é", "a" * 101, ".a"])
def test_a_name_that_cannot_be_a_folder_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="a job's name must be"):
        check_job_name(name)


@pytest.mark.parametrize("name", ["a", "store", "Store_2.v-1", "a" * 100])
def test_a_good_name_is_given_back(name: str) -> None:
    assert check_job_name(name) == name


def test_the_home_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADGATE_HOME", raising=False)
    assert default_home() == ".headgate"
    monkeypatch.setenv("HEADGATE_HOME", "/elsewhere")
    assert default_home() == "/elsewhere"


def test_a_home_without_jobs_is_empty(tmp_path: Path) -> None:
    assert Home(tmp_path / "none").jobs() == []


def test_runs_are_numbered_and_survive_a_reopening(tmp_path: Path) -> None:
    job = Home(tmp_path).job("store")
    assert [new_run(job).id, new_run(job, parent=Parent("r1", 17)).id] == ["r1", "r2"]
    again = Home(tmp_path).job("store")
    assert [run.id for run in again.runs()] == ["r1", "r2"]
    current = again.current()
    assert current is not None
    assert current.id == "r2"
    assert current.read().parent == Parent("r1", 17)
    assert current.read().params == {"a": "1"}
    assert current.graph()["job"] == "store"


def test_a_run_whose_making_was_cut_short_is_passed_over(tmp_path: Path) -> None:
    job = Home(tmp_path).job("store")

    def crash(run: RunHome) -> None:
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        new_run(job, fill=crash)
    assert job.runs() == []
    assert job.current() is None
    assert new_run(job).id == "r2", "the half-made folder is never used again"


def test_checkpoints_are_kept_in_order(tmp_path: Path) -> None:
    run = new_run(Home(tmp_path).job("store"))
    assert run.latest_checkpoint() is None
    for id in (2, 10, 9):
        run.write_checkpoint(a_checkpoint(id))
    assert run.checkpoint_ids() == [2, 9, 10]
    assert run.latest_checkpoint() == a_checkpoint(10)
    assert [record.id for record in run.checkpoints(limit=2)] == [9, 10]
    with pytest.raises(NotFoundError, match="no checkpoint ck:3: it has ck:2 to ck:10"):
        run.checkpoint(3)


def test_events_are_kept_in_order(tmp_path: Path) -> None:
    run = new_run(Home(tmp_path).job("store"))
    for kind in ("started", "failed", "started", "stopped"):
        run.add_event(kind, n=1)
    assert [event.kind for event in run.events()] == ["started", "failed", "started", "stopped"]
    assert [event.kind for event in run.events(limit=1)] == ["stopped"]
    assert run.events()[0].details == {"n": 1}


def test_a_job_is_found_by_a_unique_prefix(tmp_path: Path) -> None:
    home = Home(tmp_path)
    for name in ("orders", "orders_eu", "users"):
        new_run(home.job(name))
    assert home.find("u").name == "users"
    assert home.find("orders").name == "orders", "a whole name wins over a prefix"
    with pytest.raises(UsageError, match="'ord' is the start of several jobs: orders, orders_eu"):
        home.find("ord")
    with pytest.raises(NotFoundError, match=r"no job 'x'.*it has: orders, orders_eu, users"):
        home.find("x")


def test_every_record_survives_its_json() -> None:
    lease = LeaseRecord(Owner("host", 12, "345", "boot", "token"), NOON, NOON, 30.0)
    job = JobRecord("store", "r1", lease)
    assert JobRecord.from_json(json.loads(json.dumps(job.to_json()))) == job
    record = a_checkpoint()
    assert CheckpointRecord.from_json(json.loads(json.dumps(record.to_json()))) == record
    bare = replace(record, watermark=None, duration_ms=None, triggered_at=None)
    assert CheckpointRecord.from_json(json.loads(json.dumps(bare.to_json()))) == bare


def test_a_newer_format_is_refused_with_a_remedy(tmp_path: Path) -> None:
    job = Home(tmp_path).job("store")
    run = new_run(job)
    for name in ("job.json", "runs/r1/run.json", "runs/r1/graph.json"):
        path = tmp_path / "jobs" / "store" / name
        text = path.read_text()
        path.write_text(json.dumps({**json.loads(text), "version": 3}))
        with pytest.raises(HeadgateError, match=r"newer Headgate \(format 3.*upgrade headgate"):
            _ = job.current() and run.read() and run.graph()
        path.write_text(text)


def test_a_record_of_format_1_is_read(tmp_path: Path) -> None:
    """The bytes of the first released format: later versions must read them for ever."""
    run = new_run(Home(tmp_path).job("store"))
    text = (
        '{"version":1,"id":17,"run":"r1","status":"COMPLETED","type":"periodic",'
        '"triggered_at":"2026-01-01T12:00:00.000Z","completed_at":"2026-01-01T12:00:00.000Z",'
        '"duration_ms":120,"phases":{"execution":100},"rows":{"orders":{"records_out":5}},'
        '"totals":{"orders":{"records_out":50}},"state":{"users_lookup":{"rows":3,"bytes":100}},'
        '"sources":{"orders":{"start":{"0":45},"end":{"0":50},"latest":{"0":60}}},'
        '"watermark":"2026-01-01T12:00:00.000Z"}'
    )
    run.files.write_text(f"{run.path}/checkpoints/{17:010d}.json", text)
    assert run.checkpoint(17) == a_checkpoint()


def test_behind_counts_what_was_waiting() -> None:
    assert SourceOffsets({}, {"0": 5, "1": 7}, {"0": 8, "1": 7, "2": 4}).behind() == 7


def test_counters_are_summed_in_the_read_model_alone() -> None:
    """One definition of in and out: nobody else looks a counter up."""
    source = Path(__file__).parents[2] / "src" / "headgate"
    uses = re.compile(r"""(\.get\(|\[|startswith\()f?["']records_(in|out|dropped|unmatched)""")
    found = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*.py")
        if uses.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"home/read/counts.py"}
