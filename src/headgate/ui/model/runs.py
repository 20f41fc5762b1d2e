"""Runs of a job as a tree: which one started from which checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.home.layout import JobHome, RunHome
from headgate.home.model import Parent
from headgate.home.read.run import RunFigures
from headgate.snapshots.snapshot import restorable, spans
from headgate.ui.model.view import IsoTime, View

_ENDED = {
    "finished": "FINISHED", "stopped": "STOPPED", "cancelled": "CANCELED", "failed": "FAILED",
}  # fmt: skip


@dataclass(frozen=True)
class RunView(View):
    """One run; the list has each one after its parent, `depth` says how deep it is."""

    run: str
    depth: int
    current: bool
    created_at: IsoTime
    parent_run: str | None
    parent_job: str | None
    parent_checkpoint: int | None
    parent_savepoint: str | None
    how: str | None
    """new, resumed, forked or restored: how it was last started."""
    starts: int
    last_event: str | None
    last_event_at: IsoTime | None
    first_checkpoint: int | None
    last_checkpoint: int | None
    checkpoints: int
    retained: str
    """Checkpoints from which a new run can start, in words."""
    parallelism: int
    versions: Mapping[str, str]
    code_file: str | None
    code_sha256: str | None
    graph_fingerprint: str


@dataclass(frozen=True)
class RunsView(View):
    """Every run of a job, parents before their children."""

    job: str
    runs: tuple[RunView, ...]


def runs_view(job: JobHome) -> RunsView:
    """Read the runs and put them in the order of the tree."""
    runs = {run.id: run for run in job.runs()}
    parents = {id: run.read().parent for id, run in runs.items()}
    current = job.read().current_run
    found: list[RunView] = []

    def add(id: str, depth: int) -> None:
        found.append(_run(runs[id], parents[id], depth, id == current))
        for child, parent in parents.items():
            if parent is not None and parent.run == id and _same_job(parent, job):
                add(child, depth + 1)

    for id, parent in parents.items():
        if parent is None or not _same_job(parent, job) or parent.run not in runs:
            add(id, 0)
    return RunsView(job.name, tuple(found))


def _same_job(parent: Parent, job: JobHome) -> bool:
    return parent.job in (None, job.name)


def _run(run: RunHome, parent: Parent | None, depth: int, current: bool) -> RunView:
    figures = RunFigures(run)
    record, events = figures.record, figures.events
    started, last = events.last("started"), events.newest
    kept, ends = restorable(run), run.checkpoint_log.bounds()
    return RunView(
        run=run.id,
        depth=depth,
        current=current,
        created_at=record.created_at,
        parent_run=parent.run if parent else None,
        parent_job=parent.job if parent else None,
        parent_checkpoint=parent.checkpoint if parent else None,
        parent_savepoint=parent.savepoint if parent else None,
        how=str(started.details.get("how")) if started else None,
        starts=events.tally.starts,
        last_event=_ENDED.get(last.kind, last.kind.upper()) if last else None,
        last_event_at=last.at if last else None,
        first_checkpoint=ends[0] if ends else None,
        last_checkpoint=ends[1] if ends else None,
        checkpoints=figures.checkpoints,
        retained=spans(kept) if kept else "none",
        parallelism=record.parallelism,
        versions=record.versions,
        code_file=record.code.get("file"),
        code_sha256=record.code.get("sha256"),
        graph_fingerprint=record.graph_fingerprint,
    )
