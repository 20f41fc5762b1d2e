"""Failures and crashes of a job: the user's own lines first, and what happened next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headgate.base.durations import format_duration
from headgate.home.layout import JobHome
from headgate.home.model import EventRecord
from headgate.runtime.lease import is_live
from headgate.ui.model.crashes import crashes
from headgate.ui.model.exception import ExceptionView
from headgate.ui.model.view import View, as_name, flink


@dataclass(frozen=True)
class ExceptionHistory(View):
    """The failures, the newest first."""

    entries: tuple[ExceptionView, ...]
    truncated: bool


@dataclass(frozen=True)
class ExceptionsView(View):
    """Every failure and every crash of a job."""

    job: str
    root_exception: str | None = field(metadata=as_name("root-exception"))
    timestamp: datetime | None = field(metadata=flink("timestamp"))
    exception_history: ExceptionHistory = field(metadata=as_name("exceptionHistory"))
    total: int


def exceptions_view(job: JobHome, *, limit: int) -> ExceptionsView:
    """Read the failures of all runs, and what is known of drivers that died without a word."""
    found: list[ExceptionView] = crashes(job)
    live = is_live(job.read().lease)
    for run in job.runs():
        events = run.events()
        found += [
            _failure(run.id, event, events[at + 1 :], live=live)
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


def _failure(
    run: str, event: EventRecord, after: Sequence[EventRecord], *, live: bool
) -> ExceptionView:
    told = event.details
    frames = tuple(str(frame) for frame in told.get("frames") or ())
    restart, text = _what_next(event, after, live=live)
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


def _what_next(
    event: EventRecord, after: Sequence[EventRecord], *, live: bool
) -> tuple[int | None, str]:
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
        if not live:
            return attempt, f"{how} was to come, but its process was gone first"
        return attempt, f"{how}, which is waited for now"
    if then.kind != "restarted":
        return attempt, f"{how} was to come, but the job was {then.kind} first"
    last = after[2] if len(after) > 2 else None
    if last is not None and last.kind == "failed":
        return attempt, f"{how}; it failed again after {format_duration(last.at - then.at)}"
    return attempt, f"{how}; it has not failed since"
