"""Replays of a job: which dead letters were given to their steps again, one small file each."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from headgate.base.secrets import redact
from headgate.home.files import read_json, write_json
from headgate.home.times import from_iso, now, to_iso
from headgate.home.versions import VERSION, check_version

if TYPE_CHECKING:
    from headgate.home.layout import JobHome


@dataclass(frozen=True)
class ReplayRecord:
    """``replays/<id>.json``: written before the first letter goes out, and again after the last."""

    id: str
    address: str
    """Where the letters are."""
    where: str | None
    limit: int | None
    again: bool
    ends: Mapping[int, int]
    """By partition, the offset up to which letters were looked at."""
    started_at: datetime
    ended_at: datetime | None = None
    """None if it is not at its end: the same command goes on with it."""
    letters: Mapping[str, int] = field(default_factory=dict)
    """How many letters, by step and output."""

    @staticmethod
    def begin(
        address: str, where: str | None, limit: int | None, again: bool, ends: Mapping[int, int]
    ) -> ReplayRecord:
        """A new replay."""
        at = now()
        id = f"{at:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:6]}"
        return ReplayRecord(id, redact(address), where, limit, again, dict(ends), at)

    def is_for(self, address: str, where: str | None, limit: int | None, again: bool) -> bool:
        """Whether the same was asked for."""
        asked = (redact(address), where, limit, again)
        return asked == (self.address, self.where, self.limit, self.again)

    def ended(self, letters: Mapping[str, int]) -> ReplayRecord:
        """The same, when all of its letters are out."""
        return replace(self, ended_at=now(), letters=dict(letters))

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        return {
            "version": VERSION,
            "id": self.id,
            "address": self.address,
            "where": self.where,
            "limit": self.limit,
            "again": self.again,
            "ends": {str(part): end for part, end in self.ends.items()},
            "started_at": to_iso(self.started_at),
            "ended_at": to_iso(self.ended_at),
            "letters": dict(self.letters),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> ReplayRecord:
        """From what its file holds."""
        check_version(data, "a replay's record")
        started = from_iso(data["started_at"])
        assert started is not None
        return ReplayRecord(
            str(data["id"]),
            str(data["address"]),
            data["where"],
            data["limit"],
            bool(data["again"]),
            {int(part): int(end) for part, end in data["ends"].items()},
            started,
            from_iso(data["ended_at"]),
            dict(data["letters"]),
        )


def write_replay(job: JobHome, record: ReplayRecord) -> None:
    """Keep the record of a replay.

    >>> from headgate.home.layout import Home
    >>> job = Home("memory://replays_doc").job("store")
    >>> write_replay(job, ReplayRecord.begin("log:dlq", None, 10, False, {0: 12}))
    >>> [(r.address, r.limit, r.ends) for r in replays(job)]
    [('log:dlq', 10, {0: 12})]
    """
    write_json(job.files, f"{job.path}/replays/{record.id}.json", record.to_json())


def replays(job: JobHome) -> list[ReplayRecord]:
    """The replays of a job, oldest first."""
    found = []
    for name in sorted(job.files.list(f"{job.path}/replays")):
        data = read_json(job.files, f"{job.path}/replays/{name}")
        if name.endswith(".json") and data is not None:
            found.append(ReplayRecord.from_json(data))
    return found
