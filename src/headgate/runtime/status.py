"""How a job is, from the home alone: its state, rates, last checkpoint and last failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from headgate.graph.model import counted_by_users
from headgate.home.layout import JobHome, RunHome
from headgate.home.model import CheckpointRecord, EventRecord, LeaseRecord, RunRecord
from headgate.home.status_note import read_note
from headgate.home.times import now
from headgate.runtime.crash import Crash, crash_of
from headgate.runtime.lease import is_live
from headgate.runtime.waits import Wait, waits_of

_RATE_WINDOW = timedelta(seconds=60)
_ENDINGS = {
    "stopped": "STOPPED",
    "cancelled": "CANCELED",
    "finished": "FINISHED",
    "failed": "FAILED",
}
_UNDER_WAY = {"started": "RUNNING", "restarted": "RUNNING", "restarting": "RESTARTING"}
STATES = ("CREATED", "INITIALIZING", "RUNNING", "RESTARTING", *_ENDINGS.values(), "CRASHED")
"""All that a job can be."""


@dataclass(frozen=True)
class StepStatus:
    """One step's counts since its run's line began."""

    name: str
    kind: str
    records_in: int | None
    records_out: int | None
    side: Mapping[str, int]
    state_rows: int | None
    state_bytes: int | None
    counted: Mapping[str, int]
    """What the step's own code has counted, by name."""


@dataclass(frozen=True)
class JobStatus:
    """What ``headgate list`` and ``show`` say about a job."""

    name: str
    state: str
    """One of STATES."""
    since: datetime | None
    run: RunRecord | None
    started: EventRecord | None
    checkpoint: CheckpointRecord | None
    records_in_per_second: float | None
    records_out_per_second: float | None
    watermark_lag: timedelta | None
    restarts: int
    failure: EventRecord | None
    lease: LeaseRecord | None
    crash: Crash | None = None
    """Of a job that is CRASHED."""
    waiting: tuple[Wait, ...] = ()
    """What its driver waits for."""


def job_status(job: JobHome) -> JobStatus:
    """Read how a job is."""
    record = job.read()
    live = is_live(record.lease)
    run = job.current() or _newest(job)
    if run is None:
        state = "INITIALIZING" if live else "CREATED"
        return JobStatus(
            job.name, state, None, None, None, None, None, None, None, 0, None, record.lease,
            waiting=waits_of(job, record.lease if live else None),
        )  # fmt: skip
    events = run.events()
    state, since = _state(events, record.lease if live else None)
    checkpoint = run.latest_checkpoint()
    started = _last(events, "started")
    rates = _rates(run, checkpoint) if state == "RUNNING" else (None, None)
    mark = checkpoint.watermark_after if checkpoint else None
    lag = now() - mark if mark else None
    return JobStatus(
        name=job.name,
        state=state,
        since=since,
        run=run.read(),
        started=started,
        checkpoint=checkpoint,
        records_in_per_second=rates[0],
        records_out_per_second=rates[1],
        watermark_lag=lag if state == "RUNNING" else None,
        restarts=_restarts(events),
        failure=_last(events, "failed"),
        lease=record.lease if live else None,
        crash=crash_of(run, events, checkpoint, record.lease) if state == "CRASHED" else None,
        waiting=_waiting(job, record.lease) if live and record.lease else (),
    )


def _waiting(job: JobHome, lease: LeaseRecord) -> tuple[Wait, ...]:
    """What the driver wrote to the home, and beside it where the home takes no files."""
    waits, note = waits_of(job, lease), read_note(job)
    if note is None or note.token != lease.owner.token or not note.text or not note.alive:
        return waits
    return (*waits, Wait("disk", "the home", note.text, note.since))


def _newest(job: JobHome) -> RunHome | None:
    """The last run of a job that has no current one: it was cancelled, and its state deleted."""
    return next(reversed(job.runs()), None)


def step_statuses(
    graph: Mapping[str, Any], checkpoint: CheckpointRecord | None
) -> list[StepStatus]:
    """Each step's counts, in the order of the graph; unnamed steps only if they count."""
    result = []
    for step in graph["steps"]:
        name, kind = str(step["id"]), str(step["kind"])
        totals = checkpoint.totals.get(name, {}) if checkpoint else {}
        if not step["named"] and not totals:
            continue
        state = checkpoint.state.get(name) if checkpoint else None
        side = {
            output: int(totals.get(f"records_out_{output}", 0))
            for output in step["outputs"]
            if output != "out"
        }
        if state and "waiting" in state:
            side["waiting"] = state["waiting"]
        result.append(
            StepStatus(
                name=name,
                kind=kind,
                records_in=_count(totals, "records_in", has=bool(step["inputs"])),
                records_out=_count(totals, "records_out", has=True),
                side=side,
                state_rows=state["rows"] if state else (0 if step["stateful"] else None),
                state_bytes=state["bytes"] if state else (0 if step["stateful"] else None),
                counted=counted_by_users(totals),
            )
        )
    return result


def step_watermark(record: CheckpointRecord | None, role: str, name: str) -> datetime | None:
    """A source's own watermark, and for the steps behind it the job's."""
    if record is None or role in ("table", "sink"):
        return None
    if role == "source" and record.event_time is not None:
        own = record.event_time.sources.get(name)
        return own.watermark if own else None
    return record.watermark_after


def _count(totals: Mapping[str, int], metric: str, *, has: bool) -> int | None:
    return int(totals.get(metric, 0)) if has else None


def _state(events: Sequence[EventRecord], lease: LeaseRecord | None) -> tuple[str, datetime | None]:
    last = events[-1] if events else None
    if lease is not None:
        if last is None or last.at < lease.acquired_at:
            return "INITIALIZING", lease.acquired_at
        if last.kind == "failed" and last.details.get("gives_up", "") is None:
            return "RESTARTING", last.at
        return _UNDER_WAY.get(last.kind) or _ENDINGS.get(last.kind, "INITIALIZING"), last.at
    if last is None:
        return "CREATED", None
    return _ENDINGS.get(last.kind, "CRASHED"), last.at


def _last(events: Sequence[EventRecord], kind: str) -> EventRecord | None:
    return next((event for event in reversed(events) if event.kind == kind), None)


def _restarts(events: Sequence[EventRecord]) -> int:
    """Restarts by the supervisor since the last start."""
    count = 0
    for event in reversed(events):
        if event.kind == "started":
            break
        count += event.kind == "restarting"
    return count


def _rates(run: RunHome, checkpoint: CheckpointRecord | None) -> tuple[float, float]:
    """Records in and out a second over the last minute's checkpoints."""
    if checkpoint is None or checkpoint.completed_at is None:
        return 0.0, 0.0
    end = now()
    records = [
        record
        for record in run.checkpoints(limit=20)
        if record.completed_at and record.triggered_at and end - record.completed_at < _RATE_WINDOW
    ]
    if not records:
        return 0.0, 0.0
    first = min(record.triggered_at for record in records if record.triggered_at)
    seconds = max((end - first).total_seconds(), 0.001)
    graph = run.graph()
    sinks = [str(step["id"]) for step in graph["steps"] if step["role"] == "sink"]
    taken = sum(_out(record, source) for record in records for source in record.sources)
    given = sum(_out(record, sink) for record in records for sink in sinks)
    return taken / seconds, given / seconds


def _out(record: CheckpointRecord, step: str) -> int:
    metrics = record.rows.get(step, {})
    return sum(n for name, n in metrics.items() if name.startswith("records_out"))
