"""Holding a checkpoint while it is read: retention may delete its files at any moment."""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from headgate.base.errors import NotFoundError
from headgate.snapshots.closure import DamagedError
from headgate.snapshots.snapshot import Snapshot

_FOLDER = "reading"
_LEFT_SECONDS = 24 * 3600.0


@contextmanager
def held(snapshot: Snapshot) -> Iterator[Snapshot]:
    """The snapshot with links to its files in a folder of its own, for as long as the block is.

    A savepoint needs none: nothing deletes its files by itself. Nor does a store without links,
    where holding would be copying.
    """
    if snapshot.manifest is not None or snapshot.files.local() is None:
        yield snapshot
        return
    files = snapshot.files
    root = f"{snapshot.folder.removesuffix('/spark')}/{_FOLDER}"
    _sweep(snapshot, root)
    folder = f"{root}/{uuid.uuid4().hex}"
    try:
        try:
            for path in snapshot.closure().files:
                files.link(f"{snapshot.folder}/{path}", f"{folder}/spark/{path}")
        except (DamagedError, FileNotFoundError) as error:
            if files.exists(f"{snapshot.folder}/commits/{snapshot.batch}"):
                raise
            raise NotFoundError(
                f"{snapshot.name} was deleted by retention just now",
                remedy="name a newer one, or keep it first with headgate checkpoint pin",
            ) from error
        yield replace(snapshot, folder=f"{folder}/spark")
    finally:
        files.delete_tree(folder)


def _sweep(snapshot: Snapshot, root: str) -> None:
    """Delete what readers left that were killed."""
    for name in snapshot.files.list(root):
        written = snapshot.files.modified(f"{root}/{name}")
        if written is not None and time.time() - written > _LEFT_SECONDS:
            with contextlib.suppress(OSError):
                snapshot.files.delete_tree(f"{root}/{name}")
