"""``headgate metrics``: the numbers of a job, from the same read model as the pages and REST."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Any

import typer

from headgate.base.durations import format_duration
from headgate.cli.common import Ui, command
from headgate.cli.control import JobArgument
from headgate.cli.over_time import Over, over_time
from headgate.cli.tables import DASH, number, size, table
from headgate.cli.watch import WatchOption, watched
from headgate.runtime.status import JobStatus, job_status


def register(app: typer.Typer) -> None:
    """Add the verb."""
    command(app, "metrics")(show_metrics)


OverOption = Annotated[
    Over | None, typer.Option("--over", help="Show the numbers over this period, in intervals.")
]


def show_metrics(
    ui: Ui, job: JobArgument, over: OverOption = None, watch: WatchOption = False
) -> None:
    """Show a job's rates, lag, latency, batch times and state, now or over time."""
    home = ui.home.find(job)

    def show() -> None:
        if over is not None:
            ui.data(*over_time(home, over))
            return
        found = metrics_of(job_status(home))
        ui.data(found, lambda: _text(found))

    watched(ui, show, watch=watch)


def metrics_of(status: JobStatus) -> dict[str, Any]:
    """All numbers of a job by name; what is not known is None."""
    figures = status.figures
    lag = status.watermark_lag
    found: dict[str, Any] = {
        "job": status.name,
        "status": status.state,
        "run": status.run.run if status.run else None,
        "restarts": status.restarts,
        "records_in": figures.records_in if figures else None,
        "records_out": figures.records_out if figures else None,
        "records_in_per_second": status.records_in_per_second,
        "records_out_per_second": status.records_out_per_second,
        "records_behind": figures.behind if figures else None,
        "watermark_lag_seconds": lag.total_seconds() if lag else None,
        "latency": [],
        "checkpoints": 0,
        "batch_ms": {},
        "state": [],
    }
    if figures is None:
        return found
    tally, newest = figures.tally, figures.newest
    found["checkpoints"] = figures.checkpoints
    if newest is not None:
        mean = tally.durations.total_ms / tally.durations.count if tally.durations.count else None
        found["batch_ms"] = {
            "newest": newest.duration_ms,
            "mean": None if mean is None else round(mean),
            "phases": dict(newest.phases),
        }
    found["latency"] = [
        {"sink": one.sink, "p50_ms": one.p50_ms, "p99_ms": one.p99_ms, "records": one.records}
        for one in figures.latencies()
    ]
    found["state"] = [
        {"step": step.name, "rows": step.state_rows, "bytes": step.state_bytes}
        for step in figures.steps
        if step.state_rows is not None
    ]
    return found


def _text(found: dict[str, Any]) -> str:
    batch = found["batch_ms"]
    rows = [
        [name.replace("_", " "), number(found[name]), _rate(found.get(f"{name}_per_second"))]
        for name in ("records_in", "records_out", "records_behind")
    ]
    rows += [
        ["watermark lag", _duration(found["watermark_lag_seconds"]), ""],
        ["checkpoints", number(found["checkpoints"]), ""],
        ["newest batch", _millis(batch.get("newest")), _phases(batch.get("phases") or {})],
        ["mean batch", _millis(batch.get("mean")), ""],
        ["restarts", number(found["restarts"]), ""],
    ]
    rows += [
        [f"latency {one['sink']}", _millis(one["p50_ms"]), f"99 % in {_millis(one['p99_ms'])}"]
        for one in found["latency"]
    ]
    rows += [
        [f"state {one['step']}", f"{number(one['rows'])} rows", size(one["bytes"])]
        for one in found["state"]
    ]
    head = [f"{found['job']}  {found['status']}", found["run"] or "", ""]
    return table(head, rows, right=[head[1]] if head[1] else ())


def _rate(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}/s"


def _duration(seconds: float | None) -> str:
    return DASH if seconds is None else format_duration(timedelta(seconds=seconds))


def _millis(value: float | None) -> str:
    return DASH if value is None else format_duration(timedelta(milliseconds=value))


def _phases(phases: dict[str, int]) -> str:
    return "  ".join(f"{name} {ms:,} ms" for name, ms in phases.items())
