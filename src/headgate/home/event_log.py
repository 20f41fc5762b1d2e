"""The events of a run: the newest are files, older ones are packed, few are read.

A job that fails and restarts for ever writes three events each time. An event's kind is in its
file's name, so most questions are answered by a listing and a read or two.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from headgate.base.errors import HeadgateError
from headgate.base.secrets import redacted
from headgate.home.event_tally import EventTally
from headgate.home.files import Files, read_json, write_json
from headgate.home.model import EventRecord
from headgate.home.packs import Json, Pack, PackedFolder
from headgate.home.status_note import unwritten
from headgate.home.times import now

if TYPE_CHECKING:
    from headgate.home.layout import JobHome

SPAN = 50
KEEP = 50
HISTORY = 10_000
"""Events of a run that are kept; what they add up to is kept for good."""
_NAME = re.compile(r"(\d{10})-[a-z_]+\.json")


class EventLog:
    """What happened to a run; it lists the events once, and is made anew to look again."""

    def __init__(self, job: JobHome, run_path: str) -> None:
        self._job = job
        self._files: Files = job.files
        self._folder = PackedFolder(
            self._files,
            f"{run_path}/events",
            f"{run_path}/packed/events",
            _NAME,
            span=SPAN,
            keep=KEEP,
            head=_head,
        )

    def add(self, kind: str, details: Mapping[str, Any]) -> EventRecord:
        """Write down that something happened; packs the oldest when there are many."""
        loose = self._folder.loose()
        number = max(loose, default=0) + 1
        record = EventRecord(kind, now(), redacted(details))
        write_json(
            self._files, f"{self._folder.loose_path}/{number:010d}-{kind}.json", record.to_json()
        )
        if len(loose) >= SPAN + KEEP:
            self._tidy(number)
        return record

    def events(self, limit: int | None = None) -> list[EventRecord]:
        """Events, oldest first; the last `limit` of them."""
        return list(islice(self.newest_first(), limit))[::-1]

    def newest_first(self) -> Iterator[EventRecord]:
        """Events from the newest on, read as they are taken."""
        for number in sorted(self._later, reverse=True):
            if number not in self._loose:
                yield EventRecord.from_json(json.loads(self._later[number][1]))
        for _, data in self._folder.newest_first():
            yield EventRecord.from_json(data)

    @cached_property
    def newest(self) -> EventRecord | None:
        """The last event."""
        for number, name in self._by_name():
            if (found := self._read(number, name)) is not None:
                return found
        return self._packed[1].newest

    def last(self, kind: str) -> EventRecord | None:
        """The last `started`, `restarted` or `failed`; a listing and one read."""
        for number, name in self._by_name():
            if _kind(name) == kind and (found := self._read(number, name)) is not None:
                return found
        return self._packed[1].last.get(kind)

    @property
    def restarts(self) -> int:
        """Restarts since the last start, from the names alone."""
        count = 0
        for _, name in self._by_name():
            if _kind(name) == "started":
                return count
            count += _kind(name) == "restarting"
        return count + self._packed[1].restarts

    @cached_property
    def tally(self) -> EventTally:
        """All events in short; reads one pack and the files."""
        found = self._packed[1]
        for number, name in reversed(list(self._by_name())):
            event = self._read(number, name)
            if event is not None:
                found = found.plus(event)
        return found

    @cached_property
    def _loose(self) -> dict[int, str]:
        return self._folder.loose()

    @cached_property
    def _later(self) -> dict[int, tuple[str, str]]:
        """Names and texts of what a full disk keeps in its driver's memory, by number."""
        found = unwritten(self._job, self._folder.loose_path).items()
        return {int(m[1]): (name, text) for name, text in found if (m := _NAME.fullmatch(name))}

    @cached_property
    def _packed(self) -> tuple[int, EventTally]:
        """The newest number that is packed, and what all events up to it add up to."""
        firsts = self._folder.packs()
        pack = self._folder.pack(firsts[-1]) if firsts else None
        if pack is None:
            return -1, EventTally()
        return max(pack.records, default=-1), EventTally.from_json(pack.head)

    def _by_name(self) -> Iterator[tuple[int, str]]:
        """Numbers and names of events that are not packed, the newest first."""
        names = {**{n: name for n, (name, _) in self._later.items()}, **self._loose}
        packed = self._packed[0]
        for number in sorted(names, reverse=True):
            if number > packed:  # else a packing was cut short before it had deleted the file
                yield number, names[number]

    def _read(self, number: int, name: str) -> EventRecord | None:
        data = read_json(self._files, f"{self._folder.loose_path}/{name}")
        if data is None and number in self._later:
            data = json.loads(self._later[number][1])
        return EventRecord.from_json(data) if data is not None else None

    def _tidy(self, newest: int) -> None:
        try:
            if self._folder.pack_oldest():
                self._folder.drop_older(newest + 1 - HISTORY)
        except HeadgateError:
            # A full disk or a damaged pack must not end the job: the files stay, and are found.
            return


def _kind(name: str) -> str:
    return name[11:].removesuffix(".json")


def _head(before: Pack | None, records: Mapping[int, Json]) -> Json:
    tally = EventTally.from_json(before.head) if before else EventTally()
    for number in sorted(records):
        tally = tally.plus(EventRecord.from_json(records[number]))
    return tally.to_json()
