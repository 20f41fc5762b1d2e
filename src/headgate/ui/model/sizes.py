"""How large a checkpoint is: what it wrote and what it needs, by step and partition."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.home.layout import RunHome
from headgate.snapshots.closure import DamagedError, closure

_MOST = 5_000
_STATE = re.compile(r"state/(\d+)/(\d+)/(.*)")
_VERSION = re.compile(r"(?:.*/)?(\d+)_[^/]*\.(?:changelog|zip)")


@dataclass(frozen=True)
class PartSize:
    """Bytes of one partition of one step's state."""

    operator: int
    partition: int
    written: int
    """Of the files that this checkpoint has made."""
    full: int
    """Of all files that it needs."""
    files: int


@dataclass(frozen=True)
class Sizes:
    """Bytes of a checkpoint."""

    parts: tuple[PartSize, ...]

    @property
    def written(self) -> int:
        """What the checkpoint has made."""
        return sum(part.written for part in self.parts)

    @property
    def full(self) -> int:
        """What it needs."""
        return sum(part.full for part in self.parts)


class SizeBook:
    """Sizes of retained checkpoints; each is measured once, for its files stay as they are.

    Table files of a snapshot are in `full` alone: which checkpoint made them is not in their names.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str, int], Sizes] = OrderedDict()

    def of(self, run: RunHome, uid: str, batch: int, *, retained: bool) -> Sizes | None:
        """A checkpoint's sizes; None if its files are gone and it was not measured before.

        `uid` is the run's own: another home may have been put where this one was.
        """
        key = (run.path, uid, batch)
        with self._lock:
            if key in self._known:
                return self._known[key]
        if not retained:
            return None
        try:
            found = _measure(run, batch)
        except (DamagedError, OSError):
            return None  # retention was faster, or a file is damaged: verify says which
        with self._lock:
            self._known[key] = found
            while len(self._known) > _MOST:
                self._known.popitem(last=False)
        return found


def _measure(run: RunHome, batch: int) -> Sizes:
    parts: dict[tuple[int, int], list[int]] = {}
    needed = closure(run.files, run.spark_path, batch)
    for paths in needed.state.values():
        for path in paths:
            match = _STATE.fullmatch(path)
            if match is None or match[3].startswith("_metadata"):
                continue
            size = run.files.size(f"{run.spark_path}/{path}") or 0
            part = parts.setdefault((int(match[1]), int(match[2])), [0, 0, 0])
            version = _VERSION.fullmatch(match[3])
            part[0] += size if version and int(version[1]) == needed.version else 0
            part[1] += size
            part[2] += 1
    return Sizes(tuple(PartSize(at[0], at[1], *numbers) for at, numbers in sorted(parts.items())))


def by_step(sizes: Sizes, operators: Mapping[int, str]) -> dict[str, list[PartSize]]:
    """The sizes by the names of the steps."""
    found: dict[str, list[PartSize]] = {}
    for part in sizes.parts:
        if part.operator in operators:
            found.setdefault(operators[part.operator], []).append(part)
    return found
