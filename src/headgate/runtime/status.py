"""How a job is: whether a process drives it, what it waits for, and the figures of its run.

The figures are the read model's (`headgate.home.read`); what is added here needs the lease.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from headgate.home.layout import JobHome
from headgate.home.model import CheckpointRecord, EventRecord, LeaseRecord, RunRecord
from headgate.home.read.run import RunFigures, newest_run
from headgate.home.status_note import read_note
from headgate.home.times import now
from headgate.runtime.crash import Crash, crash_of
from headgate.runtime.lease import is_live
from headgate.runtime.waits import Wait, waits_of

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
    figures: RunFigures | None = None
    """Its run, to read more from."""


def job_status(job: JobHome) -> JobStatus:
    """Read how a job is."""
    record = job.read()
    live = is_live(record.lease)
    figures = newest_run(job)
    if figures is None:
        state = "INITIALIZING" if live else "CREATED"
        return JobStatus(
            job.name, state, None, None, None, None, None, None, None, 0, None, record.lease,
            waiting=waits_of(job, record.lease if live else None),
        )  # fmt: skip
    events, checkpoint = figures.events, figures.newest
    started = events.last("started")
    state, since = _state(events.newest, record.lease if live else None)
    rates = figures.rates() if state == "RUNNING" else (None, None)
    mark = figures.watermark
    lag = now() - mark if mark else None
    return JobStatus(
        name=job.name,
        state=state,
        since=since,
        run=figures.record,
        started=started,
        checkpoint=checkpoint,
        records_in_per_second=rates[0],
        records_out_per_second=rates[1],
        watermark_lag=lag if state == "RUNNING" else None,
        restarts=events.restarts,
        failure=events.last("failed"),
        lease=record.lease if live else None,
        crash=_crash(figures, started, record.lease) if state == "CRASHED" else None,
        waiting=_waiting(job, record.lease) if live and record.lease else (),
        figures=figures,
    )


def _crash(figures: RunFigures, started: EventRecord | None, lease: LeaseRecord | None) -> Crash:
    newest = figures.events.newest
    events = [event for event in (started, newest) if event is not None]
    return crash_of(figures.run, events, figures.newest, lease)


def _waiting(job: JobHome, lease: LeaseRecord) -> tuple[Wait, ...]:
    """What the driver wrote to the home, and beside it where the home takes no files."""
    waits, note = waits_of(job, lease), read_note(job)
    if note is None or note.token != lease.owner.token or not note.text or not note.alive:
        return waits
    return (*waits, Wait("disk", "the home", note.text, note.since))


def _state(last: EventRecord | None, lease: LeaseRecord | None) -> tuple[str, datetime | None]:
    if lease is not None:
        if last is None or last.at < lease.acquired_at:
            return "INITIALIZING", lease.acquired_at
        if last.kind == "failed" and last.details.get("gives_up", "") is None:
            return "RESTARTING", last.at
        return _UNDER_WAY.get(last.kind) or _ENDINGS.get(last.kind, "INITIALIZING"), last.at
    if last is None:
        return "CREATED", None
    return _ENDINGS.get(last.kind, "CRASHED"), last.at
