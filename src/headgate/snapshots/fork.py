"""Forks: a new run's Spark folder from the latest committed batch of another run."""

from __future__ import annotations

import re
from collections.abc import Sequence

from headgate.errors import HeadgateError
from headgate.snapshots.home import RunHome
from headgate.snapshots.spark_log import (
    OffsetEntry,
    committed_batches,
    pending_batch,
    planned_batches,
    read_entry,
)

__all__ = ["fork_latest", "latest_committed", "pending_batch"]

# <version>_<checkpoint id>.zip, .changelog and their checksums, or without the id in format 1.
_VERSIONED = re.compile(r"\.?(\d+)(?:_[^/]*)?\.(?:zip|changelog|delta|snapshot)(?:\..*)?")
_OPERATOR_METADATA = re.compile(r"\d+/_metadata/v\d+/\.?(\d+)(?:\.crc)?")


def latest_committed(run: RunHome) -> int | None:
    """The newest batch that is in for good, and so the place where a fork begins."""
    batches = set(committed_batches(run)) & set(planned_batches(run))
    return max(batches, default=None)


def fork_latest(
    old: RunHome, new: RunHome, old_sources: Sequence[str], new_sources: Sequence[str]
) -> int | None:
    """Make the new run's Spark folder from the old run's latest committed batch N.

    1. The state is linked (copied where there are no hard links), versions after N left out.
    2. Source folders are linked under the new place of each source.
    3. ``offsets/N-1`` and ``offsets/N`` are written with their lines in the new order.
    4. ``commits/N`` and the query's id are copied.

    Gives N, or nothing if the old run has not committed a batch (then the folder stays empty).
    The old run must not be running; it is not changed.
    """
    batch = latest_committed(old)
    if batch is None:
        return None
    files, source, target = old.files, old.spark_path, new.spark_path
    if files.exists(target):
        raise HeadgateError(
            f"{files.location(target)} is there already", remedy="use a new run for the fork"
        )

    for path in files.walk(f"{source}/state"):
        if _belongs(path, batch):
            files.link(f"{source}/state/{path}", f"{target}/state/{path}")

    first_places: dict[str, int] = {}
    for place, name in enumerate(old_sources):
        first_places.setdefault(name, place)
    for place, name in enumerate(new_sources):
        if name in first_places:
            folder = f"{source}/sources/{first_places[name]}"
            for path in files.walk(folder):
                if not path.endswith(".tmp"):
                    files.link(f"{folder}/{path}", f"{target}/sources/{place}/{path}")

    entries = {number: read_entry(old, number) for number in (batch - 1, batch) if number >= 0}
    for number, entry in entries.items():
        if entry is None:
            raise HeadgateError(
                f"Spark's folder of run {old.id} has no offsets of batch {number}",
                remedy="it was changed outside Headgate; start anew with --fresh",
            )
        files.write_text(
            f"{target}/offsets/{number}", _mapped(entry, old_sources, new_sources).to_text()
        )

    for name in (f"commits/{batch}", "metadata"):
        text = files.read_text(f"{source}/{name}")
        if text is None:
            raise HeadgateError(
                f"Spark's folder of run {old.id} has no {name}",
                remedy="it was changed outside Headgate; start anew with --fresh",
            )
        files.write_text(f"{target}/{name}", text)
    return batch


def _mapped(entry: OffsetEntry, old: Sequence[str], new: Sequence[str]) -> OffsetEntry:
    return entry if list(old) == list(new) else entry.reordered(old, new)


def _belongs(path: str, batch: int) -> bool:
    """Whether a file of the state folder is of batch N or before (its version is N + 1)."""
    name = path.rpartition("/")[2]
    if name.endswith(".tmp") or ".tmp." in name:
        return False
    version = _VERSIONED.fullmatch(name)
    if version:
        return int(version[1]) <= batch + 1
    metadata = _OPERATOR_METADATA.fullmatch(path)
    return metadata is None or int(metadata[1]) <= batch
