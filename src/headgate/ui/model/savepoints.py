"""Savepoints of a job, the newest first, with the command that starts from each."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.base.errors import HeadgateError
from headgate.home.layout import JobHome
from headgate.home.model import RunRecord
from headgate.snapshots.savepoints import savepoints
from headgate.ui.model.resume_hint import ResumeHint, resume_hint
from headgate.ui.model.view import IsoTime, View


@dataclass(frozen=True)
class SavepointView(View):
    """One savepoint."""

    label: str
    name: str
    """As the command line takes it: sp:before_v2."""
    run: str
    checkpoint: int
    created_at: IsoTime
    files: int
    bytes: int
    path: str
    reason: str
    restore: ResumeHint


@dataclass(frozen=True)
class SavepointsView(View):
    """Every savepoint of a job."""

    job: str
    savepoints: tuple[SavepointView, ...]


def savepoints_view(job: JobHome) -> SavepointsView:
    """Read the job's savepoints."""
    found = []
    for record in reversed(savepoints(job)):
        run = _run(job, record.run)
        name = f"sp:{record.label}"
        text = f"a new run starts from {name}; existing runs stay"
        found.append(
            SavepointView(
                record.label,
                name,
                record.run,
                record.checkpoint,
                record.created_at,
                record.files,
                record.bytes,
                record.path,
                record.reason,
                resume_hint(job, run, text, snapshot=name),
            )
        )
    return SavepointsView(job.name, tuple(found))


def _run(job: JobHome, id: str) -> RunRecord | None:
    """The run that a savepoint is of; the current one if it was copied here from another job."""
    try:
        return job.run(id).read()
    except HeadgateError:
        current = job.current()
        return current.read() if current else None
