"""Savepoints and pins: the closure of one checkpoint in a folder of its own, with a manifest."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headgate.base.errors import NotFoundError, RefusedError, UsageError
from headgate.base.near import did_you_mean
from headgate.home.files import Files, open_files, write_json
from headgate.home.layout import JobHome, RunHome
from headgate.home.times import now, to_iso
from headgate.home.versions import VERSION
from headgate.snapshots.closure import closure
from headgate.snapshots.manifest import (
    MANIFEST,
    Manifest,
    entries,
    read_manifest,
    write_manifest,
)
from headgate.snapshots.snapshot import Snapshot, restorable

_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_TRIES = 3
_COPIES = 16


@dataclass(frozen=True)
class SavepointRecord:
    """A savepoint as commands and pages show it."""

    label: str
    job: str
    run: str
    checkpoint: int
    created_at: datetime
    files: int
    bytes: int
    path: str
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        """For --json and the records of operations."""
        return {
            "label": self.label,
            "job": self.job,
            "run": self.run,
            "checkpoint": self.checkpoint,
            "created_at": to_iso(self.created_at),
            "files": self.files,
            "bytes": self.bytes,
            "path": self.path,
            "reason": self.reason,
        }


def check_label(label: str) -> str:
    """Give the label back if it can name a folder, else say what is wrong with it."""
    if not _LABEL.fullmatch(label):
        raise UsageError(
            "a label must be letters, digits, '_', '.' or '-', at most 100, a letter or digit "
            "first",
            got=repr(label),
            remedy="choose another, for instance before_v2",
        )
    return label


def create_savepoint(
    run: RunHome,
    *,
    checkpoint: int | None = None,
    label: str | None = None,
    reason: str = "manual",
) -> SavepointRecord:
    """Make a savepoint of a run's checkpoint, by default its newest; the run may be running.

    Only links are made (copies where a store has none), so it takes the same few milliseconds
    whatever the size of the state, but for its hashes.
    """
    job = run.job
    if label is not None:
        check_label(label)
        if read_manifest(job.files, f"{job.path}/savepoints/{label}") is not None:
            raise RefusedError(
                f"job '{job.name}' already has a savepoint '{label}'",
                remedy=f"choose another --label, or delete it: headgate savepoint delete "
                f"{job.name} sp:{label}",
            )
    batch = _newest(run) if checkpoint is None else checkpoint
    name = label or _free_label(job, batch)
    folder = f"{job.path}/savepoints/{name}"
    manifest = _keep(run, batch, folder, kind="savepoint", label=name, reason=reason)
    return _record(job.files, folder, manifest)


def savepoints(job: JobHome) -> list[SavepointRecord]:
    """Every savepoint of a job, oldest first."""
    found = []
    for label in job.files.list(f"{job.path}/savepoints"):
        folder = f"{job.path}/savepoints/{label}"
        manifest = read_manifest(job.files, folder)
        if manifest is not None:  # else one whose making was cut short
            found.append(_record(job.files, folder, manifest))
    return sorted(found, key=lambda record: record.created_at)


def copy_savepoint(snapshot: Snapshot, target: str, *, job: str | None = None) -> SavepointRecord:
    """Copy a savepoint to another folder or URL: a backup that shares nothing with it.

    Into another job of the home (``job``) its files are linked where they can be.
    """
    if snapshot.manifest is None:
        raise UsageError(
            f"{snapshot.name} is not a savepoint",
            remedy="make one of it first with headgate savepoint create",
        )
    for problem in snapshot.problems():
        raise problem
    files = open_files(target)
    if files.names(""):
        raise RefusedError(
            f"{files.url} must be empty or not exist, and it has files",
            remedy="name another folder",
        )
    for path in snapshot.manifest.files:
        old = f"{snapshot.root}/{path}" if snapshot.root else path
        files.receive(snapshot.files, old, path, link=job is not None)
    files.sync("")
    manifest = snapshot.manifest
    if job is not None:
        manifest = Manifest(**{**vars(manifest), "job": job})
    write_manifest(files, "", manifest)
    return _record(files, "", manifest)


def delete_savepoint(job: JobHome, label: str) -> None:
    """Delete a savepoint; the manifest first, so that half of one never counts."""
    folder = f"{job.path}/savepoints/{label}"
    if "/" in label or not job.files.exists(folder):
        labels = job.files.list(f"{job.path}/savepoints")
        raise NotFoundError(
            f"job '{job.name}' has no savepoint '{label}'",
            remedy=did_you_mean(label, labels, prefix="sp:")
            or f"see headgate savepoint list {job.name}",
        )
    job.files.withdraw(f"{folder}/{MANIFEST}")
    job.files.delete_tree(folder)


def pin(run: RunHome, checkpoint: int) -> Manifest:
    """Keep a checkpoint whatever retention does, until it is unpinned."""
    folder = run.pin_path(checkpoint)
    kept = read_manifest(run.files, folder)
    return kept or _keep(
        run, checkpoint, folder, kind="pin", label=f"ck:{checkpoint}", reason="pinned"
    )


def unpin(run: RunHome, checkpoint: int) -> bool:
    """Let retention have a checkpoint again; False if it was not pinned."""
    folder = run.pin_path(checkpoint)
    if read_manifest(run.files, folder) is None:
        return False
    run.files.withdraw(f"{folder}/{MANIFEST}")
    run.files.delete_tree(folder)
    return True


def _keep(run: RunHome, batch: int, folder: str, *, kind: str, label: str, reason: str) -> Manifest:
    files = run.files
    for tries in range(_TRIES):
        files.delete_tree(folder)  # what a killed process left
        wanted = closure(files, run.spark_path, batch)
        try:
            _link_all(files, run.spark_path, f"{folder}/spark", wanted.files)
            break
        except FileNotFoundError:
            # Spark's maintenance took a file that a newer snapshot makes superfluous
            if tries == _TRIES - 1:
                raise
    record = run.record_at(batch)
    write_json(files, f"{folder}/graph.json", {"version": VERSION, **run.graph()})
    write_json(files, f"{folder}/run.json", run.read().to_json())
    own = ["graph.json", "run.json"]
    if record is not None:
        write_json(files, f"{folder}/checkpoint.json", record.to_json())
        own.append("checkpoint.json")
    paths: Sequence[str] = [*own, *(f"spark/{path}" for path in wanted.files)]
    manifest = Manifest(
        kind=kind,
        label=label,
        job=run.job.name,
        run=run.id,
        checkpoint=batch,
        created_at=now(),
        reason=reason,
        files=entries(files, folder, paths),
    )
    files.sync(folder)  # whoever reads the manifest relies on all of them
    write_manifest(files, folder, manifest)
    return manifest


def _link_all(files: Files, source: str, target: str, paths: Sequence[str]) -> None:
    """Links on a disk take no time; copies in a store elsewhere are made several at a time."""
    if files.local() is not None:
        for path in paths:
            files.link(f"{source}/{path}", f"{target}/{path}")
        return
    with ThreadPoolExecutor(_COPIES) as pool:
        for _ in pool.map(lambda path: files.link(f"{source}/{path}", f"{target}/{path}"), paths):
            pass


def _newest(run: RunHome) -> int:
    found = restorable(run)
    if not found:
        raise NotFoundError(
            f"run {run.id} of job '{run.job.name}' has no checkpoint yet",
            remedy="wait for its first one, then try again",
        )
    return found[-1]


def _free_label(job: JobHome, batch: int) -> str:
    taken = set(job.files.list(f"{job.path}/savepoints"))
    stem = f"ck{batch}-{now():%Y%m%d-%H%M%S}"
    return next(
        name
        for name in (stem, *(f"{stem}-{number}" for number in range(2, 10_000)))
        if name not in taken
    )


def _record(files: Files, folder: str, manifest: Manifest) -> SavepointRecord:
    return SavepointRecord(
        label=manifest.label,
        job=manifest.job,
        run=manifest.run,
        checkpoint=manifest.checkpoint,
        created_at=manifest.created_at,
        files=len(manifest.files),
        bytes=manifest.bytes,
        path=files.address(folder),
        reason=manifest.reason,
    )
