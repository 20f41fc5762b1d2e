"""Failures of a job: the user's own lines first, and what happened next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headgate.durations import format_duration
from headgate.snapshots.home import JobHome
from headgate.snapshots.model import EventRecord
from headgate.ui.model.view import View, as_name, flink


@dataclass(frozen=True)
class ExceptionView(View):
    """One failure."""

    timestamp: datetime = field(metadata=flink("timestamp"))
    run: str
    exception_name: str = field(metadata=as_name("exceptionName"))
    """The reason, one of an enum."""
    message: str
    task_name: str | None = field(metadata=as_name("taskName"))
    """The step."""
    location: str | None
    """The innermost line of the user's code."""
    stacktrace: str
    """Lines of the user's code, outermost first; Spark's own are in the driver's log."""
    frames: tuple[str, ...]
    remedy: str | None
    batch: int | None
    restart: int | None
    """The number of the restart that followed."""
    next: str
    """What happened next, in a sentence."""


@dataclass(frozen=True)
class ExceptionHistory(View):
    """The failures, the newest first."""

    entries: tuple[ExceptionView, ...]
    truncated: bool


@dataclass(frozen=True)
class ExceptionsView(View):
    """Every failure of a job."""

    job: str
    root_exception: str | None = field(metadata=as_name("root-exception"))
    timestamp: datetime | None = field(metadata=flink("timestamp"))
    exception_history: ExceptionHistory = field(metadata=as_name("exceptionHistory"))
    total: int


def exceptions_view(job: JobHome, *, limit: int) -> ExceptionsView:
    """Read the failures of all runs."""
    found: list[ExceptionView] = []
    for run in job.runs():
        events = run.events()
        found += [
            _failure(run.id, event, events[at + 1 :])
            for at, event in enumerate(events)
            if event.kind == "failed"
        ]
    found.sort(key=lambda one: one.timestamp, reverse=True)
    first = found[0] if found else None
    shown = found[:limit]
    return ExceptionsView(
        job.name,
        f"{first.exception_name}: {first.message}" if first else None,
        first.timestamp if first else None,
        ExceptionHistory(tuple(shown), len(shown) < len(found)),
        len(found),
    )


def _failure(run: str, event: EventRecord, after: Sequence[EventRecord]) -> ExceptionView:
    told = event.details
    frames = tuple(str(frame) for frame in told.get("frames") or ())
    restart, text = _what_next(event, after)
    return ExceptionView(
        timestamp=event.at,
        run=run,
        exception_name=str(told.get("reason")),
        message=str(told.get("message")),
        task_name=told.get("step"),
        location=frames[-1] if frames else None,
        stacktrace="\n".join([*frames, str(told.get("message"))]),
        frames=frames,
        remedy=told.get("remedy"),
        batch=told.get("batch"),
        restart=restart,
        next=text,
    )


def _what_next(event: EventRecord, after: Sequence[EventRecord]) -> tuple[int | None, str]:
    if why := event.details.get("gives_up"):
        return None, f"it was not started again, because {why}"
    again = after[0] if after and after[0].kind == "restarting" else None
    if again is None:
        return None, "its process ended before it was started again"
    attempt = int(again.details["attempt"])
    delay = format_duration(timedelta(seconds=float(again.details["delay_seconds"])))
    how = f"restart {attempt} ({again.details['strategy']}) after {delay}"
    then = after[1] if len(after) > 1 else None
    if then is None:
        return attempt, f"{how}, which is waited for now"
    if then.kind != "restarted":
        return attempt, f"{how} was to come, but the job was {then.kind} first"
    last = after[2] if len(after) > 2 else None
    if last is not None and last.kind == "failed":
        return attempt, f"{how}; it failed again after {format_duration(last.at - then.at)}"
    return attempt, f"{how}; it has not failed since"
