"""Crashes of a job: drivers that died without writing down how they ended."""

from __future__ import annotations

from datetime import datetime
from itertools import pairwise

from headgate.home.layout import JobHome, RunHome
from headgate.home.model import EventRecord
from headgate.home.resume_hint import start_command
from headgate.home.times import now, to_iso
from headgate.runtime.crash import REASON, UNDER_WAY, Crash, crash_of
from headgate.runtime.lease import is_live
from headgate.ui.model.exception import ExceptionView


def crashes(job: JobHome) -> list[ExceptionView]:
    """The driver of each run that is gone, and those before it whose runs were resumed."""
    record = job.read()
    live = record.lease if is_live(record.lease) else None
    found: list[ExceptionView] = []
    for run in job.runs():
        events = run.events()
        found += [
            _resumed(run, event, after)
            for event, after in pairwise(events)
            if event.kind in UNDER_WAY and after.kind == "started"
        ]
        last = events[-1] if events else None
        if last is None or last.kind not in UNDER_WAY:
            continue
        current = run.id == record.current_run
        if current and live and live.acquired_at <= last.at:
            continue  # its driver runs
        lease = record.lease if current else None
        crash = crash_of(run, events, run.latest_checkpoint(), lease)
        found.append(_crashed(job, run, crash, over=not current, starting=live is not None))
    return found


def _crashed(
    job: JobHome, run: RunHome, crash: Crash, *, over: bool, starting: bool
) -> ExceptionView:
    """A crash after which the run has not been resumed."""
    seen = f", last seen alive at {to_iso(crash.last_seen)}" if crash.last_seen else ""
    if over:
        next_, remedy = "the job continued in another run", None
    elif starting:
        next_, remedy = "a process has taken the job and is starting it", None
    else:
        next_ = "the job does not run: nothing restarts it automatically"
        remedy = f"press Start again, or run: {start_command(job, run.read())}"
    return _view(run, crash.last_seen or now(), crash.sentence() + seen, next_, remedy,
                 batch=crash.pending)  # fmt: skip


def _resumed(run: RunHome, before: EventRecord, after: EventRecord) -> ExceptionView:
    """A crash that is over; the heartbeat of its driver has been overwritten since."""
    pid = before.details.get("pid")
    who = f"process {pid}" if pid else "the process that drove it"
    message = (
        f"{who} is gone without a word (killed, or its machine went down), some time after "
        f"{to_iso(before.at)}"
    )
    return _view(run, after.at, message, f"it was resumed at {to_iso(after.at)}", None)


def _view(
    run: RunHome, at: datetime, message: str, next_: str, remedy: str | None,
    *, batch: int | None = None,
) -> ExceptionView:  # fmt: skip
    return ExceptionView(
        timestamp=at,
        run=run.id,
        exception_name=REASON,
        message=message,
        task_name=None,
        location=None,
        stacktrace=message,
        frames=(),
        remedy=remedy,
        batch=batch,
        restart=None,
        next=next_,
    )
