"""The last time that a job went on from a snapshot: after a stop, a failure or a restore."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from headgate.home.event_tally import is_restore
from headgate.home.layout import JobHome
from headgate.home.model import EventRecord
from headgate.home.read.run import RunFigures
from headgate.ui.model.view import FlinkTime, View

Done: TypeAlias = tuple[int, datetime | None]
"""A checkpoint and when it was completed."""


@dataclass(frozen=True)
class Restored(View):
    """The last time that the job went on from a snapshot."""

    id: int | None
    run: str
    restore_timestamp: FlinkTime
    is_savepoint: bool
    how: str
    """resumed, restored, forked or restarted."""
    external_path: str | None
    pid: int | None
    version: str | None
    """The version of Headgate that did it."""


def last_restore(figures: RunFigures) -> EventRecord | None:
    """The last start or restart that went on from a checkpoint."""
    found = [figures.events.last("started"), figures.events.last("restarted")]
    restores = [event for event in found if event is not None and is_restore(event)]
    return max(restores, key=lambda event: event.at, default=None)


def restored(job: JobHome, figures: RunFigures, recent: Sequence[Done]) -> Restored | None:
    """How a job last went on; `recent` are its newest checkpoints, oldest first."""
    event, run = last_restore(figures), figures.run
    if event is None:
        return None
    how = str(event.details.get("how") or event.kind)
    started = figures.events.last("started") or event
    parent = figures.record.parent
    versions = started.details.get("versions") or {}
    pid = started.details.get("pid")
    if parent is None or how in ("resumed", "restarted"):
        id, path, label = _newest_by(figures, recent, event.at), run.spark, None
    else:
        id, label = parent.checkpoint, parent.savepoint
        owner = job.home.job(parent.job) if parent.job else job
        folder = f"{owner.path}/savepoints/{label}" if label else owner.run(parent.run).spark_path
        path = job.files.location(folder)
    return Restored(
        id, run.id, event.at, label is not None, how, path, pid, versions.get("headgate")
    )


def _newest_by(figures: RunFigures, recent: Sequence[Done], when: datetime) -> int | None:
    """The newest checkpoint that was completed by a time; a far one is searched by halves."""
    done = [(id, at) for id, at in recent if at is not None]
    before = [id for id, at in done if at <= when]
    if before or not done:
        return before[-1] if before else None
    found = figures.run.checkpoint_log.newest_by(when)
    return found.id if found else None
