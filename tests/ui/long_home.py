"""A home whose job has made hundreds of thousands of checkpoints, built in seconds.

Old records are written as packs hold them; the newest come from the real recorder, and events from
a job that has failed many times.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from headgate.home.checkpoint_log import KEEP, SPAN
from headgate.home.layout import Home, RunHome
from headgate.home.model import CheckpointRecord
from headgate.home.offsets import SourceOffsets
from headgate.home.packs import Pack
from headgate.home.tally import Durations, Tally
from headgate.home.times import to_iso
from headgate.runtime.records import Recorder

JOB = "long"
FAILURES = 100
ROWS = 10
"""Rows of a batch."""


def long_home(folder: Path, checkpoints: int) -> Home:
    """A job with a source, a sink and so many checkpoints, the last of them now."""
    home = Home(folder)
    job = home.job(JOB)
    run = job.new_run(
        graph=_graph(), graph_fingerprint="f", parallelism=2, params={}, versions={}, code={}
    )
    job.set_current(run.id)
    run.add_event("started", how="new", bounded=False, master="local[1]", pid=1, params={})
    packed = (checkpoints - KEEP) // SPAN * SPAN
    began = datetime.now(UTC) - timedelta(seconds=10 * checkpoints)
    _write_packs(run, packed, began)
    for _ in range(FAILURES):
        run.add_event("failed", reason="STORAGE", message="m", batch=packed, gives_up=None)
        run.add_event("restarting", reason="STORAGE", attempt=1, delay_seconds=1, strategy="x")
        run.add_event("restarted", attempt=1)
    _drive(run, range(packed, checkpoints), began)
    return home


def _write_packs(run: RunHome, count: int, began: datetime) -> None:
    folder = run.files.local(f"{run.path}/packed/checkpoints")
    assert folder is not None
    folder.mkdir(parents=True)
    template = _record(0, began).to_json()
    for first in range(0, count, SPAN):
        records = {id: _like(template, id, began) for id in range(first, first + SPAN)}
        text = Pack(first, records).to_text()
        (folder / f"{first:010d}.json").write_text(text, encoding="utf-8")


def _like(template: dict[str, Any], id: int, began: datetime) -> dict[str, Any]:
    """The record of another checkpoint; making it anew would take ten times as long."""
    at = to_iso(began + timedelta(seconds=10 * id))
    buckets = [0, id + 1, *[0] * 9]
    return {
        **template,
        "id": id,
        "triggered_at": at,
        "completed_at": at,
        "totals": {name: {"records_out": ROWS * (id + 1)} for name in ("orders", "out")},
        "tally": {
            "completed": id + 1,
            "durations": {"total_ms": 130 * (id + 1), "buckets": buckets},
            "phases": {},
        },
    }


def _record(id: int, began: datetime) -> CheckpointRecord:
    counts = {"orders": {"records_out": ROWS}, "out": {"records_out": ROWS}}
    return CheckpointRecord(
        id=id, run="r1", status="COMPLETED", type="periodic", triggered_at=began,
        completed_at=began, duration_ms=130, rows=counts, totals=counts,
        sources={"orders": SourceOffsets({"0": ROWS * id}, {"0": ROWS * id + ROWS}, {})},
        tally=Tally(1, Durations().plus(130)),
    )  # fmt: skip


def _drive(run: RunHome, batches: range, began: datetime) -> None:
    recorder = Recorder(run, ["orders"], history=10**9)
    counters = {"orders": {"records_out": ROWS}, "out": {"records_in": ROWS, "records_out": ROWS}}
    for batch in batches:
        text = json.dumps({"batch": batch, "counters": counters})
        run.files.write_text(f"{run.path}/journal/{batch:010d}.json", text)
        progress = {
            "batchId": batch,
            "timestamp": to_iso(began + timedelta(seconds=10 * batch)),
            "durationMs": {"addBatch": 80, "triggerExecution": 130},
            "sources": [
                {"startOffset": {"0": ROWS * batch}, "endOffset": {"0": ROWS * batch + 10}}
            ],
        }
        recorder.observe([progress])


def _graph() -> dict[str, Any]:
    def step(id: str, kind: str, inputs: list[str]) -> dict[str, Any]:
        return {
            "id": id, "kind": kind, "named": True, "schema": "struct<>", "stateful": False,
            "inputs": [{"step": name, "output": "out"} for name in inputs],
            "outputs": [] if kind == "sink" else ["out"], "operator_id": None, "state_schema": "",
            "detail": {"address": f"log:{id}"}, "location": None, "stores": [],
        }  # fmt: skip

    steps = [step("orders", "source", []), step("out", "sink", ["orders"])]
    return {"job": JOB, "sources": ["orders"], "warnings": [], "steps": steps}
