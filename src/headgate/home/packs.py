"""Numbered records of a folder that do not grow for ever: the newest are files, older ones packed.

A record is first a file of its own. When enough newer ones are there, the records of a fixed range
of numbers move into one file, the pack, which is named by the range's first number: so a record is
found by its number, with no listing. A pack is whole before the files that it holds are deleted,
and a file counts more than a pack: a crash at any point leaves every record, and none twice.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.base.errors import HeadgateError
from headgate.home.files import Files, read_json
from headgate.home.versions import VERSION, check_version

Json = Mapping[str, Any]
Head = Callable[["Pack | None", Mapping[int, Json]], Json]
"""Makes what a pack says about all records up to its end, from the pack before it."""


@dataclass(frozen=True)
class Pack:
    """The records of one range of numbers."""

    first: int
    records: Mapping[int, Json]
    head: Json = field(default_factory=dict)

    def to_text(self) -> str:
        """As it stands in its file; without blanks, as it may be large."""
        data = {
            "version": VERSION,
            "first": self.first,
            "head": dict(self.head),
            "records": {str(n): self.records[n] for n in sorted(self.records)},
        }
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"

    @staticmethod
    def from_json(data: Json) -> Pack:
        """From what its file holds."""
        check_version(data, "a pack of records")
        records = {int(number): record for number, record in data["records"].items()}
        return Pack(int(data["first"]), records, data.get("head") or {})


@dataclass(frozen=True)
class PackedFolder:
    """The files and packs of one kind of record."""

    files: Files
    loose_path: str
    """The folder of records that are files."""
    packs_path: str
    name: re.Pattern[str]
    """Of a record's file; its first group is the number."""
    span: int
    """How many numbers a pack covers."""
    keep: int
    """How many of the newest are files at least."""
    head: Head | None = None

    def loose(self) -> dict[int, str]:
        """The records that are files, by number; lists one folder."""
        names = self.files.list(self.loose_path)
        return {int(match[1]): name for name in names if (match := self.name.fullmatch(name))}

    def packs(self) -> list[int]:
        """The first numbers of the packs, in order; lists one folder."""
        found = (name.removesuffix(".json") for name in self.files.list(self.packs_path))
        return sorted(int(stem) for stem in found if stem.isdigit())

    def pack(self, first: int) -> Pack | None:
        """One pack."""
        data = read_json(self.files, self._pack_path(first))
        return Pack.from_json(data) if data is not None else None

    def packed(self, number: int) -> Json | None:
        """A record from the pack of its range; its name is known without a listing."""
        found = self.pack(self._first(number))
        return found.records.get(number) if found else None

    def newest_first(self, *, before: int | None = None) -> Iterator[tuple[int, Json]]:
        """Records from the newest on, or from the one before a number; read as they are taken."""
        for part in self.ranges(before=before):
            for number in part.numbers():
                if before is None or number < before:
                    record = part.read(number)
                    if record is not None:
                        yield number, record

    def ranges(self, *, before: int | None = None) -> Iterator[Range]:
        """The ranges that hold records, the newest first; two listings."""
        # Files first: what is packed while we look is in both, and would be in neither otherwise.
        ranges: dict[int, dict[int, str]] = {}
        for number, name in self.loose().items():
            ranges.setdefault(self._first(number), {})[number] = name
        packed = set(self.packs())
        for first in sorted({*ranges, *packed}, reverse=True):
            if before is None or first < before:
                yield Range(self, first, ranges.get(first, {}), packed=first in packed)

    def pack_oldest(self) -> bool:
        """Pack the oldest range whose newest record is old enough; False if there is none.

        A file that is not valid JSON stays as it is, for somebody to look at.
        """
        loose = self.loose()
        newest = max(loose, default=0)
        ready = [n for n in sorted(loose) if self._first(n) + self.span + self.keep <= newest + 1]
        for first in dict.fromkeys(map(self._first, ready)):
            names = {n: loose[n] for n in ready if self._first(n) == first}
            if self._pack_range(first, names):
                return True
        return False

    def forget(self, number: int) -> None:
        """Take a record out of the pack of its range, if it is there."""
        found = self.pack(self._first(number))
        if found is not None and number in found.records:
            left = {n: record for n, record in found.records.items() if n != number}
            pack = Pack(found.first, left, found.head)
            self.files.write_text(self._pack_path(found.first), pack.to_text())

    def drop_older(self, oldest: int) -> None:
        """Delete the packs that hold only records below a number."""
        for first in self.packs():
            if first + self.span > oldest:
                break
            self.files.delete(self._pack_path(first))

    def _pack_range(self, first: int, names: Mapping[int, str]) -> bool:
        found = {number: self._readable(name) for number, name in names.items()}
        whole = {number: record for number, record in found.items() if record is not None}
        if not whole:
            return False
        old = self.pack(first)  # of a packing that was cut short, or has missed a record
        records = {**(old.records if old else {}), **whole}
        if old is None or records != old.records:
            head = self.head(self._pack_before(first), records) if self.head else {}
            text = Pack(first, records, head).to_text()
            self.files.write_text(self._pack_path(first), text)
        for number in whole:
            self.files.delete(f"{self.loose_path}/{names[number]}")
        return True

    def _readable(self, name: str) -> Json | None:
        try:
            return read_json(self.files, f"{self.loose_path}/{name}")
        except HeadgateError:
            return None

    def _pack_before(self, first: int) -> Pack | None:
        earlier = [known for known in self.packs() if known < first]
        return self.pack(earlier[-1]) if earlier else None

    def _first(self, number: int) -> int:
        return number - number % self.span

    def _pack_path(self, first: int) -> str:
        return f"{self.packs_path}/{first:010d}.json"


class Range:
    """One range of numbers, as files, as a pack, or as both after a crash; reads a pack once."""

    def __init__(
        self, folder: PackedFolder, first: int, names: Mapping[int, str], *, packed: bool
    ) -> None:
        self._folder = folder
        self.first = first
        self._names = names
        self._packed = packed
        self._pack: Pack | None = None

    @property
    def is_pack(self) -> bool:
        """Whether a pack holds all of it, which then stays as it is."""
        return self._packed and not self._names

    def numbers(self) -> list[int]:
        """The numbers that are there, the newest first."""
        packed = self._read_pack().records if self._packed else {}
        return sorted({*self._names, *packed}, reverse=True)

    def read(self, number: int) -> Json | None:
        """A record; nothing if it was deleted meanwhile."""
        name = self._names.get(number)
        if name is not None:
            found = read_json(self._folder.files, f"{self._folder.loose_path}/{name}")
            if found is not None:
                return found
        # packed before, or since it was listed
        return self._read_pack().records.get(number)

    def _read_pack(self) -> Pack:
        if self._pack is None:
            self._pack = self._folder.pack(self.first) or Pack(self.first, {})
        return self._pack
