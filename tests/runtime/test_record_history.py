"""What the recorder adds to records: tallies, table rows apart, and packs while the job runs."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headgate.home.checkpoint_log import KEEP, SPAN
from headgate.home.layout import Home, RunHome
from headgate.home.model import CheckpointRecord
from headgate.home.read.run import RunFigures
from headgate.runtime.records import Recorder, forked_record

GRAPH: dict[str, Any] = {
    "job": "store",
    "sources": ["orders", "users"],
    "warnings": [],
    "steps": [
        {"id": "orders", "kind": "source", "named": True, "inputs": [], "outputs": ["out"],
         "stateful": False},
        {"id": "users", "kind": "table", "named": True, "inputs": [], "outputs": ["out"],
         "stateful": False},
        {"id": "users_lookup", "kind": "lookup", "named": True, "stateful": True,
         "inputs": [{"step": "orders", "output": "out"}, {"step": "users", "output": "out"}],
         "outputs": ["out"]},
    ],
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunHome:
    monkeypatch.setattr(os, "fsync", lambda handle: None)  # hundreds of small files
    job = Home(tmp_path).job("store")
    made = job.new_run(
        graph=GRAPH, graph_fingerprint="f", parallelism=1, params={}, versions={}, code={}
    )
    job.set_current(made.id)
    return made


def drive(run: RunHome, batches: Iterable[int], *, history: int | None = None) -> Recorder:
    """Record batches of ten orders and two users as a driver does."""
    recorder = Recorder(run, ["orders", "users"], history=history)
    counters = {
        "orders": {"records_out": 10},
        "users": {"records_out": 2},
        "users_lookup": {"records_in": 12, "records_out": 9, "records_dropped": 1},
    }
    for batch in batches:
        text = json.dumps({"batch": batch, "counters": counters})
        run.files.write_text(f"{run.path}/journal/{batch:010d}.json", text)
        recorder.observe(
            [
                {
                    "batchId": batch,
                    "timestamp": "2026-01-01T12:00:00.000Z",
                    "durationMs": {"addBatch": 80, "triggerExecution": 130},
                }
            ]
        )
    return recorder


def as_before(run: RunHome, records: Iterable[CheckpointRecord]) -> None:
    """Write records as the Headgate before this one did."""
    for record in records:
        data = replace(record, tally=None).to_json()
        del data["tally"]
        for counts in (data["rows"], data["totals"]):
            for metrics in counts.values():
                metrics.pop("state_changes", None)
        run.files.write_text(f"{run.path}/checkpoints/{record.id:010d}.json", json.dumps(data))


def test_the_newest_record_has_the_tally_of_the_run(run: RunHome) -> None:
    drive(run, range(3))
    last = drive(run, range(3, 5)).last  # another driver goes on
    assert last is not None and last.tally is not None
    assert last.tally.completed == 5 and last.tally.durations.count == 5
    assert last.tally.durations.total_ms == 650
    assert last.tally.phases["execution"].total_ms == 400


def test_a_fork_begins_its_own_tally(run: RunHome) -> None:
    last = drive(run, range(3)).last
    assert last is not None
    forked = forked_record(last, run="r2", steps=["orders", "users_lookup"])
    assert forked.tally is not None and forked.tally.completed == 0


def test_table_rows_are_apart_from_the_streams_rows(run: RunHome) -> None:
    drive(run, range(3))
    lookup = RunFigures(run).steps[2]
    assert (lookup.totals.records_in, lookup.totals.table) == (30, 6)
    assert (lookup.batch.records_in, lookup.batch.table) == (10, 2)
    assert lookup.totals.dropped == 3 and lookup.totals.unaccounted() == 0


def test_a_lookup_that_comes_later_does_not_get_its_tables_old_rows(run: RunHome) -> None:
    last = drive(run, range(3)).last
    assert last is not None
    without = {step: counts for step, counts in last.totals.items() if step != "users_lookup"}
    run.write_checkpoint(replace(last, totals=without, rows={}))
    drive(run, [3])
    lookup = RunFigures(run).steps[2].totals
    assert (lookup.records_in, lookup.table, lookup.unaccounted()) == (10, 2, 0)


def test_records_are_packed_while_the_job_runs(run: RunHome) -> None:
    drive(run, range(SPAN + KEEP), history=10**6)
    assert len(run.files.list(f"{run.path}/checkpoints")) == KEEP
    assert run.files.list(f"{run.path}/packed/checkpoints") == ["0000000000.json"]
    assert run.checkpoint_ids() == list(range(SPAN + KEEP))
    drive(run, [SPAN + KEEP])
    last = run.latest_checkpoint()
    assert last is not None and last.totals["orders"]["records_out"] == 10 * (SPAN + KEEP + 1)


def test_who_only_recovers_packs_nothing(run: RunHome) -> None:
    drive(run, range(SPAN + KEEP))
    assert not run.files.exists(f"{run.path}/packed")


def test_a_home_of_an_older_headgate_is_read_and_packed_when_the_job_runs(run: RunHome) -> None:
    count = 3 * SPAN
    drive(run, range(3))
    first = run.checkpoints()
    as_before(run, first)
    as_before(run, (replace(first[-1], id=id) for id in range(3, count)))
    figures = RunFigures(run)
    assert figures.tally.completed == figures.checkpoints_kept == count
    assert figures.tally.durations.count == count
    lookup = figures.steps[2].totals
    assert (lookup.records_in, lookup.table, lookup.unaccounted()) == (30, 6, 0)

    last = drive(run, range(count, count + 3), history=10**6).last
    assert last is not None and last.tally is not None
    assert last.tally.completed == count + 3
    assert last.totals["users_lookup"]["state_changes"] == 12
    lookup = RunFigures(run).steps[2].totals
    assert (lookup.records_in, lookup.table, lookup.unaccounted()) == (60, 12, 0)
    assert len(run.files.list(f"{run.path}/packed/checkpoints")) == 2, "a range each checkpoint"
    assert run.checkpoint_ids() == list(range(count + 3))


def test_a_driver_keeps_no_more_records_than_the_job_says(run: RunHome) -> None:
    drive(run, range(3 * SPAN + KEEP), history=SPAN)
    ends = run.checkpoint_log.bounds()
    assert ends is not None and ends[1] == 3 * SPAN + KEEP - 1
    assert SPAN <= ends[1] - ends[0] + 1 <= 2 * SPAN + KEEP
