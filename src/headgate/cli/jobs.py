"""``headgate list`` and ``headgate show``: how jobs are, from the home alone."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, Any

import typer

from headgate.base.durations import format_duration
from headgate.cli.common import Ui, command
from headgate.cli.control import JobArgument
from headgate.cli.event_time import watermark_lines
from headgate.cli.tables import DASH, local_time, number, size, table
from headgate.cli.watch import WatchOption, watched
from headgate.home.layout import JobHome
from headgate.home.model import EventRecord, Owner
from headgate.home.read.latency import SinkLatency
from headgate.home.read.steps import StepFigures
from headgate.home.resume_hint import start_command
from headgate.home.times import now, to_iso
from headgate.runtime.status import STATES, JobStatus, job_status
from headgate.runtime.waits import Wait


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    command(app, "list")(list_jobs)
    command(app, "show")(show_job)


def list_jobs(
    ui: Ui,
    everything: Annotated[
        bool, typer.Option("--all", help="Include jobs that never had a run.")
    ] = False,
    state: Annotated[
        str | None, typer.Option("--state", metavar="S", help="Only jobs in this state.")
    ] = None,
    watch: WatchOption = False,
) -> None:
    """List the jobs in the home."""
    if state is not None and state.upper() not in STATES:
        raise typer.BadParameter(f"--state must be one of {', '.join(STATES)}, got '{state}'")
    watched(ui, lambda: _list(ui, everything, state), watch=watch)


def _list(ui: Ui, everything: bool, state: str | None) -> None:
    statuses = [job_status(job) for job in ui.home.jobs()]
    shown = [
        status
        for status in statuses
        if (everything or status.run is not None or status.state == "INITIALIZING")
        and (state is None or status.state == state.upper())
    ]
    if not shown:
        ui.say(f"no jobs in {ui.home.url}")
    ui.data({"jobs": [_job_json(status) for status in shown]}, lambda: _list_text(shown))


def _list_text(statuses: list[JobStatus]) -> str:
    if not statuses:
        return ""
    head = [
        "JOB", "STATE", "UP", "IN/S", "OUT/S", "WATERMARK LAG", "CHECKPOINT", "RESTARTS",
    ]  # fmt: skip
    return table(
        head,
        [
            [
                status.name,
                _state(status),
                _up(status),
                number(status.records_in_per_second),
                number(status.records_out_per_second),
                format_duration(status.watermark_lag) if status.watermark_lag else DASH,
                _checkpoint(status),
                number(status.restarts if status.state in ("RUNNING", "RESTARTING") else None),
            ]
            for status in statuses
        ],
        right=["UP", "IN/S", "OUT/S", "WATERMARK LAG", "RESTARTS"],
    )


def show_job(
    ui: Ui,
    job: JobArgument,
    steps: Annotated[
        bool, typer.Option("--steps", help="Show each step with its records and state.")
    ] = False,
    watch: WatchOption = False,
) -> None:
    """Show one job: its run, last checkpoint, steps and last failure."""
    home = ui.home.find(job)
    watched(ui, lambda: _show(ui, home, steps=steps), watch=watch)


def _show(ui: Ui, home: JobHome, *, steps: bool) -> None:
    status = job_status(home)
    rows = _steps(status)
    value = _job_json(status)
    value["steps"] = [_step_json(step) for step in rows]
    value["latency"] = [
        {"sink": sink.sink, "p50_ms": sink.p50_ms, "p99_ms": sink.p99_ms, "records": sink.records}
        for sink in (status.figures.latencies() if status.figures else ())
    ]
    if status.crash is not None:
        value["start_again"] = start_command(home, status.run)
    ui.data(value, lambda: _show_text(home, status, rows if steps else None))


def _steps(status: JobStatus) -> list[StepFigures]:
    """The steps in the order of the graph; unnamed ones only if they count."""
    found = status.figures.steps if status.figures else []
    return [step for step in found if step.named or step.is_counted]


def _show_text(home: JobHome, status: JobStatus, steps: list[StepFigures] | None) -> str:
    head = [f"{status.name}  {status.state}"]
    if status.since:
        head[0] += f" since {local_time(status.since)}"
    if status.run:
        head.append(f"run {status.run.run}")
    if status.started:
        head.append(str(status.started.details.get("master", "")))
        spark = status.started.details.get("versions", {}).get("spark")
        head.append(f"spark {spark}" if spark else "")
    lines = ["   ".join(part for part in head if part)]
    lines += [f"waiting      for {_waits_for(wait)}" for wait in status.waiting]
    if steps is not None:
        lines.append(_steps_text(steps))
    else:
        lines += _summary(status)
    if status.crash is not None:
        lines.append(f"crashed      {status.crash.sentence()}")
        lines.append(f"             last seen alive {local_time(status.crash.last_seen)}")
        lines.append(f"start again  {start_command(home, status.run)}")
    if status.failure:
        lines += _failure_text(status.failure)
    return "\n".join(lines)


def _summary(status: JobStatus) -> list[str]:
    lines = []
    if status.run and status.run.parent:
        lines.append(f"continues    ck:{status.run.parent.checkpoint} of {status.run.parent.run}")
    if status.run and status.run.params:
        params = "  ".join(f"{name}={value}" for name, value in status.run.params.items())
        lines.append(f"params       {params}")
    if status.lease:
        owner = status.lease.owner
        lines.append(f"driven by    process {owner.pid} on {owner.host}")
    record = status.checkpoint
    if record is None:
        return [*lines, "checkpoint   none yet"]
    took = ""
    if record.duration_ms is not None:
        took = f" in {format_duration(timedelta(milliseconds=record.duration_ms))}"
    lines.append(f"checkpoint   ck:{record.id} at {local_time(record.completed_at)}{took}")
    for name, offsets in record.sources.items():
        at = ", ".join(f"{part}:{place}" for part, place in offsets.places())
        behind = f"   behind by {offsets.behind():,}" if offsets.behind() else ""
        lines.append(f"source       {name} at {at or 'its start'}{behind}")
    lines += [_latency(sink) for sink in status.figures.latencies()] if status.figures else []
    return lines + watermark_lines(record, indent=13)


def _latency(sink: SinkLatency) -> str:
    p50, p99 = (format_duration(timedelta(milliseconds=ms)) for ms in (sink.p50_ms, sink.p99_ms))
    of = f"{sink.records:,} record{'s' * (sink.records != 1)}"
    return f"latency      {sink.sink}: 50 % within {p50}, 99 % within {p99} ({of})"


def _steps_text(steps: list[StepFigures]) -> str:
    """One line a step; columns in which no step has anything are left out."""
    columns: dict[str, list[str]] = {
        "STEP": [step.name for step in steps],
        "KIND": [step.kind for step in steps],
        "IN": [number(step.totals.records_in) for step in steps],
    }
    for name, values in _rare(steps).items():
        if any(values):
            columns[name] = [number(value) for value in values]
        if name == "TABLE":
            columns["OUT"] = [number(step.totals.records_out) for step in steps]
    if any(step.totals.side for step in steps):
        columns["SIDE"] = [_named(step.totals.side) for step in steps]
    columns["STATE ROWS"] = [number(step.state_rows) for step in steps]
    columns["STATE SIZE"] = [size(step.state_bytes) for step in steps]
    columns["WATERMARK"] = [_watermark(step) for step in steps]
    right = [name for name in columns if name not in ("STEP", "KIND", "SIDE", "WATERMARK")]
    rows = [list(row) for row in zip(*columns.values(), strict=True)]
    own = [
        f"{step.name} counted  {_named(step.totals.counted)}"
        for step in steps
        if step.totals.counted
    ]
    return "\n".join([table(list(columns), rows, right=right), *own])


def _rare(steps: list[StepFigures]) -> dict[str, list[int | None]]:
    """Where rows went beside the main output, as `headgate.home.read.counts` says."""
    totals = [step.totals for step in steps]
    return {
        "TABLE": [counts.table for counts in totals],
        "UNMATCHED": [counts.unmatched for counts in totals],
        "MISSING": [counts.missing for counts in totals],
        "LATE": [counts.late for counts in totals],
        "DROPPED": [counts.dropped for counts in totals],
        "WAITING": [counts.waiting for counts in totals],
        "TAKEN": [counts.taken for counts in totals],
    }


def _named(counts: Mapping[str, int]) -> str:
    return "  ".join(f"{name} {count:,}" for name, count in counts.items())


def _watermark(step: StepFigures) -> str:
    return step.watermark.astimezone().strftime("%H:%M:%S") if step.watermark else DASH


def _failure_text(failure: EventRecord) -> list[str]:
    step = f" in step '{failure.details['step']}'" if failure.details.get("step") else ""
    lines = [
        f"last error   {local_time(failure.at)}  {failure.details.get('reason')}{step}: "
        f"{failure.details.get('message')}"
    ]
    if failure.details.get("remedy"):
        lines.append(f"             {failure.details['remedy']}")
    return lines


def _waits_for(wait: Wait) -> str:
    age = format_duration(max(now() - wait.since, timedelta(0)))
    return f"{wait.subject}: {wait.why} (since {local_time(wait.since)}, {age})"


def _state(status: JobStatus) -> str:
    kinds = dict.fromkeys(wait.kind for wait in status.waiting)
    return f"{status.state} (waits for {', '.join(kinds)})" if kinds else status.state


def _up(status: JobStatus) -> str:
    running = status.state == "RUNNING" and status.since
    return format_duration(now() - status.since) if running and status.since else DASH


def _checkpoint(status: JobStatus) -> str:
    record = status.checkpoint
    if record is None:
        return DASH
    if status.state != "RUNNING" or record.completed_at is None:
        return f"ck:{record.id}"
    return f"ck:{record.id}  {format_duration(max(now() - record.completed_at, timedelta(0)))}"


def _job_json(status: JobStatus) -> dict[str, Any]:
    return {
        "job": status.name,
        "state": status.state,
        "since": to_iso(status.since),
        "run": status.run.to_json() if status.run else None,
        "started": status.started.to_json() if status.started else None,
        "owner": _owner_json(status.lease.owner) if status.lease else None,
        "records_in_per_second": status.records_in_per_second,
        "records_out_per_second": status.records_out_per_second,
        "watermark_lag_seconds": status.watermark_lag.total_seconds()
        if status.watermark_lag
        else None,
        "checkpoint": status.checkpoint.to_json() if status.checkpoint else None,
        "restarts": status.restarts,
        "last_error": status.failure.to_json() if status.failure else None,
        "waiting": [wait.to_json() for wait in status.waiting],
        "crash": status.crash.to_json() if status.crash else None,
    }


def _owner_json(owner: Owner) -> dict[str, Any]:
    """Who drives the job, without the token that proves it."""
    return {name: value for name, value in owner.to_json().items() if name != "token"}


def _step_json(step: StepFigures) -> dict[str, Any]:
    counts = step.totals
    beside = {"missing": counts.missing, "late": counts.late, **counts.side,
              "waiting": counts.waiting}  # fmt: skip
    return {
        "step": step.name,
        "kind": step.kind,
        "records_in": counts.records_in,
        "table_in": counts.table,
        "records_out": counts.records_out,
        "unmatched": counts.unmatched,
        "missing": counts.missing,
        "late": counts.late,
        "dropped": counts.dropped,
        "waiting": counts.waiting,
        "taken": counts.taken,
        "side": {name: count for name, count in beside.items() if count is not None},
        "state_rows": step.state_rows,
        "state_bytes": step.state_bytes,
        "counted": dict(counts.counted),
    }
