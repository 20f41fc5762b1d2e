"""A live driver's note beside the home: what it waits for, and what it could not write there.

A home whose disk is full or read-only cannot say so itself. The note is a small file in memory
(`/dev/shm`, else the user's runtime or temporary folder) of the driver's machine, and so for those
who look from the same machine. It is named after the job's folder and the lease's token, and holds:

* why the driver waits, since when, and a heartbeat: ``show`` knows that it lives,
* events that could not be written: ``show`` reads them from here, and a start that finds the note
  of a driver that has died writes them into the home.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.base.identity import pid_space, process_started
from headgate.home.times import from_iso, now, to_iso

if TYPE_CHECKING:
    from headgate.home.layout import JobHome

_FOLDERS = "HEADGATE_NOTES"
_KEPT = 100
"""Unwritten files that a note holds at most: the newest."""


@dataclass(frozen=True)
class Note:
    """What a driver says beside its home."""

    text: str
    """Why it waits, in a sentence; empty if it does not."""
    since: datetime
    beat: datetime
    token: str
    pid: int
    started: str
    space: str
    unwritten: tuple[tuple[str, str], ...] = ()
    """Files that could not be written: path in the home and text, in order."""

    @property
    def alive(self) -> bool:
        """Whether the driver that wrote it still runs; known on its own machine only."""
        return self.space == pid_space() and process_started(self.pid) == self.started


def write_note(
    job: JobHome,
    text: str,
    since: datetime,
    *,
    token: str = "",
    unwritten: Sequence[tuple[str, str]] = (),
) -> bool:
    """Leave a note of this process, or renew it; False if no place for it is to be had."""
    pid = os.getpid()
    data = {
        "text": text, "since": to_iso(since), "beat": to_iso(now()), "token": token, "pid": pid,
        "started": process_started(pid) or "", "space": pid_space(),
        "unwritten": [list(pair) for pair in unwritten[-_KEPT:]],
    }  # fmt: skip
    name = f"{_key(job)}-{token}.json"
    for folder in _folders(os.geteuid()):
        with contextlib.suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            if not _is_ours(folder, os.geteuid()):
                continue
            aside = folder / f".{name}.{pid}"
            aside.write_text(json.dumps(data))
            os.replace(aside, folder / name)
            return True
    return False


def read_note(job: JobHome) -> Note | None:
    """The newest note of a driver of the job, alive or dead."""
    return max(_notes(f"{_key(job)}-*.json", _owners(job)), key=lambda n: n.beat, default=None)


def clear_note(job: JobHome, *, token: str | None = None) -> None:
    """Take the notes away that drivers of the job have left, or those of one driver."""
    for path in list(_paths(f"{_key(job)}-{'*' if token is None else token}.json", _owners(job))):
        with contextlib.suppress(OSError):
            path.unlink()


def unwritten(job: JobHome, folder: str) -> dict[str, str]:
    """Texts by name of files that belong into a folder of the home, and are not there yet."""
    found = read_note(job)
    return {
        path.rpartition("/")[2]: text
        for path, text in (found.unwritten if found else ())
        if path.rpartition("/")[0] == folder
    }


def beat_of(token: str) -> datetime | None:
    """When the driver of a lease last renewed its note."""
    return max((n.beat for n in _notes(f"*-{token}.json", [os.geteuid()])), default=None)


def _notes(pattern: str, owners: Sequence[int]) -> Iterator[Note]:
    for path in _paths(pattern, owners):
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            yield _note(json.loads(path.read_text()))


def _note(data: dict[str, Any]) -> Note:
    since, beat = from_iso(data["since"]), from_iso(data["beat"])
    if since is None or beat is None:
        raise ValueError("a note without a time")
    files = tuple((str(path), str(text)) for path, text in data["unwritten"])
    return Note(
        str(data["text"]), since, beat, str(data["token"]), int(data["pid"]),
        str(data["started"]), str(data["space"]), files,
    )  # fmt: skip


def _paths(pattern: str, owners: Sequence[int]) -> Iterator[Path]:
    for uid in owners:
        for folder in _folders(uid):
            with contextlib.suppress(OSError):
                if _is_ours(folder, uid):
                    yield from folder.glob(pattern)


def _key(job: JobHome) -> str:
    return hashlib.sha256(job.files.location(job.path).encode()).hexdigest()[:24]


def _owners(job: JobHome) -> list[int]:
    """Whose notes may be trusted: our own, and those of whom the job's folder belongs to."""
    local, users = job.files.local(job.path), [os.geteuid()]
    if local is not None:
        with contextlib.suppress(OSError):
            users.append(local.stat().st_uid)
    return list(dict.fromkeys(users))


def _folders(uid: int) -> list[Path]:
    """Where notes may be, the best first: in memory before a disk, which may be the full one."""
    if named := os.environ.get(_FOLDERS):
        return [Path(named)]
    places = ["/dev/shm", f"/run/user/{uid}", tempfile.gettempdir(), "/tmp"]
    return [Path(place) / f"headgate-{uid}" for place in dict.fromkeys(places)]


def _is_ours(folder: Path, uid: int) -> bool:
    """Whether nobody else could have put a note there: such places are open to all."""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == uid and not found.st_mode & 0o022
