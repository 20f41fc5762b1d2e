"""Owns `make bench-ui`: how fast the web interface answers for a job with a long history.

python -m bench.ui --checkpoints 1000 --steps 200
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient

from headgate.home.layout import Home
from headgate.home.model import CheckpointRecord
from headgate.home.offsets import SourceOffsets
from headgate.ui.app import create_app

PATHS = (
    "/ui/jobs/bench",
    "/ui/jobs/bench/checkpoints",
    "/jobs/overview",
    "/jobs/bench",
    "/jobs/bench/checkpoints",
    "/jobs/bench/checkpoints?limit=1000",
    "/jobs/bench/checkpoints/details/{last}",
    "/jobs/bench/exceptions",
    "/jobs/bench/runs",
    "/metrics",
)


def main() -> int:
    """Write a home, ask for each path, and print the first time and the median of the others."""
    parser = argparse.ArgumentParser(prog="bench.ui", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--checkpoints", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--times", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headgate-bench-") as folder:
        home = Home(Path(folder))
        began = time.monotonic()
        write_home(home, options.checkpoints, options.steps)
        print(f"{options.checkpoints:,} checkpoints of {options.steps} steps written in "
              f"{time.monotonic() - began:.1f} s")  # fmt: skip
        with TestClient(create_app(home), base_url="http://127.0.0.1") as client:
            for path in PATHS:
                measure(client, path.format(last=options.checkpoints - 1), options.times)
    return 0


def measure(client: TestClient, path: str, times: int) -> None:
    """Ask for a path again and again, and print how long it took."""
    spent = []
    for _ in range(times + 1):
        began = time.perf_counter()
        answer = client.get(path)
        spent.append(1000 * (time.perf_counter() - began))
        if answer.status_code != 200:
            print(f"{path:45} {answer.status_code}")
            return
    print(f"{path:45} first {spent[0]:7.0f} ms   then {statistics.median(spent[1:]):6.1f} ms   "
          f"{len(answer.content) / 1024:7.0f} KiB", flush=True)  # fmt: skip


def write_home(home: Home, checkpoints: int, steps: int) -> None:
    """A job whose steps stand in a row, with a lookup at every third."""
    names = ["orders", *(f"step_{n:03d}" for n in range(steps - 2)), "out"]
    job = home.job("bench")
    run = job.new_run(
        graph=_graph(names), graph_fingerprint="f", parallelism=2, params={}, versions={}, code={}
    )
    job.set_current(run.id)
    run.add_event("started", how="new", bounded=False, master="local[2]", params={})
    for id in range(checkpoints):
        run.write_checkpoint(_record(id, names))
    run.add_event("stopped", checkpoint=checkpoints - 1, reason="bench", savepoint=None)


def _graph(names: list[str]) -> dict[str, Any]:
    steps = []
    for at, name in enumerate(names):
        ends = {0: "source", len(names) - 1: "sink"}
        stateful = at % 3 == 1 and at not in ends
        kind = ends.get(at, "lookup" if stateful else "transform")
        steps.append(
            {
                "id": name, "kind": kind, "named": True, "schema": "struct<n:bigint>",
                "inputs": [{"step": names[at - 1], "output": "out"}] if at else [],
                "outputs": [] if kind == "sink" else ["out"], "stateful": stateful,
                "operator_id": at if stateful else None, "state_schema": "", "location": None,
                "detail": {"expression": "n"}, "stores": [],
            }
        )  # fmt: skip
    return {"job": "bench", "sources": ["orders"], "warnings": [], "steps": steps}


def _record(id: int, names: list[str]) -> CheckpointRecord:
    began = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=10 * id)
    rows = {name: {"records_in": 1000, "records_out": 1000} for name in names}
    totals = {name: {m: n * (id + 1) for m, n in counts.items()} for name, counts in rows.items()}
    return CheckpointRecord(
        id=id,
        run="r1",
        status="COMPLETED",
        type="periodic",
        triggered_at=began,
        completed_at=began + timedelta(milliseconds=300 + id % 100),
        duration_ms=300 + id % 100,
        phases={"sources": 20, "planning": 50, "execution": 200 + id % 100, "commit": 30},
        rows=rows,
        totals=totals,
        state={name: {"rows": 100, "bytes": 10_000} for name in names[1:-1:3]},
        sources={"orders": SourceOffsets({"0": id * 1000}, {"0": id * 1000 + 1000}, {})},
    )


if __name__ == "__main__":
    sys.exit(main())
