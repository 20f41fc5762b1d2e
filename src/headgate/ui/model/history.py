"""What checkpoints of a run were like, one short row each, read once and remembered."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeAlias

from headgate.home.layout import RunHome
from headgate.home.model import CheckpointRecord
from headgate.home.packs import Range
from headgate.home.read.rows import CheckpointRow
from headgate.home.read.run import RECENT

_MOST_RANGES = 200

Key: TypeAlias = tuple[str, str, int]
"""A range of a run: its path, its own id, and the range's first number."""
Rows: TypeAlias = dict[int, CheckpointRow]


class History:
    """Rows of checkpoints of runs; a record never changes, so each is read once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._files: OrderedDict[Key, Rows] = OrderedDict()
        self._packs: OrderedDict[Key, Rows] = OrderedDict()

    def rows(
        self, run: RunHome, *, limit: int = RECENT, before: int | None = None
    ) -> list[CheckpointRow]:
        """The newest checkpoints of a run, or the newest before one, oldest first."""
        # by the run's own id, too: another home may have been put where this one was
        uid = run.read().uid
        found = (
            row
            for part in run.checkpoint_log.ranges(before=before)
            for row in self._newest_first((run.path, uid, part.first), part)
            if before is None or row.id < before
        )
        return list(islice(found, limit))[::-1]

    def _newest_first(self, key: Key, part: Range) -> Iterable[CheckpointRow]:
        if not part.is_pack:
            return _read(part, self._book(self._files, key))
        rows = self._book(self._packs, key)
        if not rows:
            made = {row.id: row for row in _read(part, {})}
            rows.update(made)  # all at once: another thread must not find a part of them
        return list(rows.values())

    def _book(self, books: OrderedDict[Key, Rows], key: Key) -> Rows:
        with self._lock:
            rows = books.setdefault(key, {})
            books.move_to_end(key)
            while len(books) > _MOST_RANGES:
                books.popitem(last=False)
            return rows


def _read(part: Range, known: Rows) -> Iterator[CheckpointRow]:
    """Rows of a range, the newest first; a record is read when its row is taken."""
    for number in part.numbers():
        row = known.get(number)
        if row is None:
            record = part.read(number)
            if record is None:
                continue  # deleted since it was listed
            row = known[number] = CheckpointRow.of(CheckpointRecord.from_json(record))
        yield row


__all__ = ["CheckpointRow", "History"]
