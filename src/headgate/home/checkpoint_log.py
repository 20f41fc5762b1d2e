"""The records of a run's checkpoints: the newest are files, older ones are packed, few are read."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from headgate.base.errors import HeadgateError
from headgate.home.files import Files, read_json, write_json
from headgate.home.model import CheckpointRecord
from headgate.home.packs import PackedFolder, Range

SPAN = 250
"""Checkpoints in a pack: with small records half a megabyte, with those of 200 steps ten."""
KEEP = 100
"""Newest records that are files at least: pages and rates are made of them."""
_NAME = re.compile(r"(\d{10})\.json")


class CheckpointLog:
    """Records of checkpoints by number; each method says what it reads."""

    def __init__(self, files: Files, run_path: str) -> None:
        self._files = files
        self._folder = PackedFolder(
            files,
            f"{run_path}/checkpoints",
            f"{run_path}/packed/checkpoints",
            _NAME,
            span=SPAN,
            keep=KEEP,
        )

    def newest(self) -> CheckpointRecord | None:
        """The newest record; lists the files and reads one."""
        return next(self._newest_first(None), None)

    def at(self, id: int) -> CheckpointRecord | None:
        """The record of a checkpoint if there is one; reads a file or a pack."""
        own = read_json(self._files, self._path(id))
        data = own if own is not None else self._folder.packed(id)
        return CheckpointRecord.from_json(data) if data is not None else None

    def last(self, limit: int | None, *, before: int | None = None) -> list[CheckpointRecord]:
        """The newest records, or the newest before one, oldest first; all without a limit.

        Reads as many files as it gives records, or a pack for 250 of them.
        """
        return list(islice(self._newest_first(before), limit))[::-1]

    def newest_first(self) -> Iterator[CheckpointRecord]:
        """Records from the newest on, read as they are taken."""
        return self._newest_first(None)

    def ranges(self, *, before: int | None = None) -> Iterator[Range]:
        """The ranges of numbers that hold records, the newest first; two listings."""
        return self._folder.ranges(before=before)

    def ids(self) -> list[int]:
        """All checkpoints that have a record, oldest first; reads every pack."""
        packed = (self._folder.pack(first) for first in self._folder.packs())
        found = {*self._folder.loose(), *(n for pack in packed if pack for n in pack.records)}
        return sorted(found)

    def bounds(self) -> tuple[int, int] | None:
        """The oldest and the newest checkpoint that have a record; reads one pack at most."""
        loose, packs = self._folder.loose(), self._folder.packs()
        first = self._folder.pack(packs[0]) if packs else None
        ends = [*(first.records if first else ()), *([min(loose), max(loose)] if loose else ())]
        if not loose and packs:
            last = self._folder.pack(packs[-1])
            ends += last.records if last else ()
        return (min(ends), max(ends)) if ends else None

    def newest_by(self, when: datetime) -> CheckpointRecord | None:
        """The newest checkpoint that was completed by a time; reads some 20 packs of a million."""
        ends = self.bounds()
        low, high = ends if ends else (0, -1)
        found: CheckpointRecord | None = None
        while low <= high:
            middle = (low + high) // 2
            record = next(self._newest_first(middle + 1), None)  # a number may have none
            done = record.completed_at if record else None
            if record is None or done is None or done <= when:
                found, low = record or found, middle + 1
            else:
                high = record.id - 1
        return found

    def count_files(self) -> int:
        """How many records are files; one listing."""
        return len(self._folder.loose())

    def write(self, record: CheckpointRecord) -> None:
        """Keep a record."""
        write_json(self._files, self._path(record.id), record.to_json())

    def forget(self, id: int) -> None:
        """Delete a record, before the files that it tells of."""
        self._files.withdraw(self._path(id))
        self._folder.forget(id)

    def tidy(self, history: int) -> bool:
        """Pack the oldest files and delete packs beyond the newest `history` records.

        Packs one range at most, so that a long history of an older Headgate is packed little by
        little while the job runs. Gives whether there may be more.
        """
        try:
            more = self._folder.pack_oldest()
            newest = max(self._folder.loose(), default=None)
            if more and newest is not None:
                self._folder.drop_older(newest + 1 - history)
            return more
        except HeadgateError:
            # A full disk or a damaged pack must not end the job: the files stay, and are found.
            return False

    def _newest_first(self, before: int | None) -> Iterator[CheckpointRecord]:
        for _, data in self._folder.newest_first(before=before):
            yield CheckpointRecord.from_json(data)

    def _path(self, id: int) -> str:
        return f"{self._folder.loose_path}/{id:010d}.json"
