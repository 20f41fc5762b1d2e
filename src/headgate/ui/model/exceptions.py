"""Failures and crashes of a job: the user's own lines first, and what happened next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from headgate.base.durations import format_duration
from headgate.home.layout import JobHome
from headgate.home.model import EventRecord
from headgate.runtime.lease import is_live
from headgate.ui.model.crashes import crashes
from headgate.ui.model.exception import ExceptionView
from headgate.ui.model.view import FlinkTime, View, json_name


@dataclass(frozen=True)
class ExceptionHistory(View):
    """The failures, the newest first."""

    entries: tuple[ExceptionView, ...]
    truncated: bool


@dataclass(frozen=True)
class ExceptionsView(View):
    """Every failure and every crash of a job."""

    job: str
    root_exception: str | None = field(metadata=json_name("root-exception"))
    timestamp: FlinkTime | None
    exception_history: ExceptionHistory = field(metadata=json_name("exceptionHistory"))
    total: int


def exceptions_view(job: JobHome, *, limit: int) -> ExceptionsView:
    """Read the failures of all runs, and the crashes of drivers, which left no record."""
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
    details = event.details
    frames = tuple(str(frame) for frame in details.get("frames") or ())
    restart, text = _what_next(event, after, live=live)
    return ExceptionView(
        timestamp=event.at,
        run=run,
        exception_name=str(details.get("reason")),
        message=str(details.get("message")),
        task_name=details.get("step"),
        location=frames[-1] if frames else None,
        stacktrace="\n".join([*frames, str(details.get("message"))]),
        frames=frames,
        remedy=details.get("remedy"),
        batch=details.get("batch"),
        restart=restart,
        next=text,
    )


def _what_next(
    event: EventRecord, after: Sequence[EventRecord], *, live: bool
) -> tuple[int | None, str]:
    if why := event.details.get("gives_up"):
        return None, f"it was not restarted, because {why}"
    again = after[0] if after and after[0].kind == "restarting" else None
    if again is None:
        return None, "its process ended before the restart"
    attempt = int(again.details["attempt"])
    delay = format_duration(timedelta(seconds=float(again.details["delay_seconds"])))
    how = f"restart {attempt} ({again.details['strategy']}) after {delay}"
    then = after[1] if len(after) > 1 else None
    if then is None:
        if not live:
            return attempt, f"{how} was planned, but its process ended first"
        return attempt, f"{how}, which is due soon"
    if then.kind != "restarted":
        return attempt, f"{how} was planned, but the job was {then.kind} first"
    last = after[2] if len(after) > 2 else None
    if last is not None and last.kind == "failed":
        return attempt, f"{how}; it failed again after {format_duration(last.at - then.at)}"
    return attempt, f"{how}; it has not failed since"
