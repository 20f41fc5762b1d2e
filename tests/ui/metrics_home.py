"""A home whose job has run for days: busy by day, with a failure, a crash and a long stop."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headgate.home.files import write_json
from headgate.home.latency import bucket_of
from headgate.home.layout import Home
from headgate.home.metric_files import MetricFiles
from headgate.home.metric_log import MetricLog
from headgate.home.model import EventRecord
from headgate.home.points import Gauge, Point

JOB = "store"
HOUR, DAY = 3600, 86_400
END = 1_767_268_800
"""When its last batch ended: noon in UTC."""
STOPPED = (END - 30 * HOUR, END - 26 * HOUR)
"""When it did not run."""
FAILED = END - 20 * 60
RATE = 400


def metrics_home(folder: Path, *, days: float = 8) -> Home:
    """A job with metrics of a batch a second, up to a fixed time."""
    home = Home(folder)
    job = home.job(JOB)
    run = job.new_run(
        graph=_graph(), graph_fingerprint="f", parallelism=2, params={}, versions={}, code={}
    )
    job.set_current(run.id)
    began = END - int(days * DAY)
    marks = {began: "started", FAILED: "failed", FAILED + 40: "restarted", END - 1: "finished"}
    if days * DAY > END - STOPPED[0]:
        marks |= {STOPPED[0]: "crashed", STOPPED[1]: "started"}
    for number, at in enumerate(sorted(marks), 1):
        if marks[at] != "crashed":  # a driver that is gone says nothing
            event = EventRecord(marks[at], datetime.fromtimestamp(at, UTC), {"how": "resumed"})
            path = f"{run.path}/events/{number:010d}-{event.kind}.json"
            write_json(run.files, path, event.to_json())
    _write_metrics(MetricLog(MetricFiles(job.files, job.path)), began, marks)
    return home


def _write_metrics(log: MetricLog, began: int, marks: dict[int, str]) -> None:
    draw, second = random.Random(3), began
    while second < END:
        step = 1 if second >= END - 2 * HOUR else 30
        if second in marks:
            log.add(second, Point(marks={marks[second]: 1}))
        if not STOPPED[0] <= second < STOPPED[1] and not FAILED <= second < FAILED + 40:
            log.add(second, _point(draw, second, step))
        if second % (2 * HOUR) < step:
            log.flush()
        second += step
    log.flush()


def _graph() -> dict[str, Any]:
    def step(id: str, kind: str, inputs: list[str]) -> dict[str, Any]:
        return {
            "id": id, "kind": kind, "named": True, "schema": "struct<>", "stateful": False,
            "inputs": [{"step": name, "output": "out"} for name in inputs],
            "outputs": [] if kind == "sink" else ["out"], "operator_id": None, "state_schema": "",
            "detail": {"address": f"log:{id}"}, "location": None, "stores": [],
        }  # fmt: skip

    sinks = [step(name, "sink", ["orders"]) for name in ("even", "odd", "malformed")]
    steps = [step("orders", "source", []), *sinks]
    return {"job": JOB, "sources": ["orders"], "warnings": [], "steps": steps}


def _point(draw: random.Random, second: float, step: int) -> Point:
    day = 1 + 0.6 * math.sin(2 * math.pi * (second % DAY) / DAY)
    late = 4 if second % (6 * HOUR) < 20 * 60 else 1
    records = int(RATE * step * day)
    took = int(draw.gauss(120, 15) * late)
    behind = max(0, int(draw.gauss(30, 12) * late * day))
    counts: dict[int, int] = {}
    for _ in range(12):
        bucket = bucket_of(int(draw.lognormvariate(5.2, 0.4) * late))
        counts[bucket] = counts.get(bucket, 0) + records // 12
    size = int(40e6 * (1 + (second - END + 8 * DAY) / DAY) + draw.randrange(2_000_000))
    return Point(
        up_ms=1000 * step,
        batches=1,
        records_in=records,
        records_out=int(records * 0.93),
        gauges={
            "duration_ms": Gauge.of(took), "behind": Gauge.of(behind),
            "watermark_lag_ms": Gauge.of(5000 + took), "state_bytes": Gauge.of(size),
            "state_rows": Gauge.of(size // 300),
        },
        latency={("even", "odd"): counts, ("malformed",): {b - 4: n for b, n in counts.items()}},
    )  # fmt: skip
