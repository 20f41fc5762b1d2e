"""A home written by hand, in milliseconds: names and texts that somebody means no good with."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from headgate.home.model import CheckpointRecord
from headgate.home.offsets import SourceOffsets
from headgate.home.operations import Operations

EVIL = "\"><script>alert('name')</script>"
EVIL_ROW = "<img src=x onerror=alert('row')>"
JOB = "store"
LOG = "20260101T000000.000000Z.log"
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)


def small_home(folder: Path, *, checkpoints: int = 3) -> Home:
    """A job with a source, an evil step and a sink; checkpoints, a failure and an operation."""
    sink = TopicFiles(folder / "out")
    sink.create(1)
    sink.append([Record(json.dumps({"note": EVIL_ROW}))])
    home = Home(folder / "home")
    job = home.job(JOB)
    run = job.new_run(
        graph=_graph(folder), graph_fingerprint="f", parallelism=2,
        params={"note": EVIL, "db_password": "hunter2"}, versions={"headgate": "0.1.0"},
        code={"file": "/nowhere/app.py", "sha256": "0"},
    )  # fmt: skip
    job.set_current(run.id)
    run.add_event("started", how="new", bounded=False, master="local[1]", pid=1, params={})
    for id in range(checkpoints):
        run.write_checkpoint(_record(id))
    run.add_event("failed", reason="USER_CODE", message=f"it said {EVIL}", step=EVIL,
                  remedy=EVIL, batch=checkpoints, frames=[f'File "app.py", {EVIL}'],
                  gives_up="the job has no restart strategy")  # fmt: skip
    log = log_of(folder)
    log.parent.mkdir()
    log.write_text(f"03:04:05 it said {EVIL}\nWARN db_password=hunter2 is short\n")
    operation = Operations(job).request("savepoint", {"label": "x"})
    Operations(job).end(operation.id, "failed", message=EVIL)
    return home


def log_of(folder: Path) -> Path:
    """Its only log file."""
    return folder / "home" / "jobs" / JOB / "logs" / LOG


def _graph(folder: Path) -> dict[str, Any]:
    def step(id: str, kind: str, inputs: list[str], **detail: str) -> dict[str, Any]:
        return {
            "id": id, "kind": kind, "named": True, "schema": "struct<>", "stateful": False,
            "inputs": [{"step": name, "output": "out"} for name in inputs],
            "outputs": [] if kind == "sink" else ["out"], "operator_id": None, "state_schema": "",
            "detail": detail, "location": EVIL, "stores": [],
        }  # fmt: skip

    return {
        "job": JOB,
        "sources": ["orders"],
        "warnings": [EVIL],
        "steps": [
            step("orders", "source", [], address="log:orders"),
            step(EVIL, "transform", ["orders"], expression=EVIL),
            step("out", "sink", [EVIL], address=f"log:{folder / 'out'}"),
        ],
    }


def _record(id: int) -> CheckpointRecord:
    began = BEGAN + timedelta(seconds=10 * id)
    rows = {"orders": {"records_out": 10}, EVIL: {"records_in": 10, "records_out": 10, EVIL: 3},
            "out": {"records_in": 10, "records_out": 10}}  # fmt: skip
    totals = {step: {n: v * (id + 1) for n, v in counts.items()} for step, counts in rows.items()}
    return CheckpointRecord(
        id=id, run="r1", status="COMPLETED", type="periodic", triggered_at=began,
        completed_at=began + timedelta(milliseconds=100 + id), duration_ms=100 + id,
        phases={"sources": 10, "planning": 10, "execution": 70 + id, "commit": 10},
        rows=rows, totals=totals, state={},
        sources={"orders": SourceOffsets({"0": 10 * id}, {"0": 10 * id + 10}, {"0": 10 * id + 15})},
    )  # fmt: skip
