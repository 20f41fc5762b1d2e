"""What a job waits for now: said on its terminal, and in ``waiting.json`` of its home.

The file is there while the job waits. It counts while the lease of the driver that wrote it is
live, so a driver that is killed leaves nothing behind that anybody believes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal

from headgate.base.durations import format_duration
from headgate.base.errors import HeadgateError
from headgate.home.files import read_json, write_json
from headgate.home.layout import JobHome
from headgate.home.model import LeaseRecord
from headgate.home.times import from_iso, now, to_iso
from headgate.home.versions import VERSION

Kind = Literal["broker", "executors", "disk"]
_REMIND_SECONDS = 30.0


@dataclass(frozen=True)
class Wait:
    """One thing that a job waits for."""

    kind: str
    """broker, executors or disk."""
    subject: str
    """Which one: kafka broker 127.0.0.1:9092 of orders."""
    why: str
    since: datetime

    def sentence(self) -> str:
        """For people."""
        return (
            f"waiting for {self.subject}: {self.why} since "
            f"{self.since.astimezone().strftime('%H:%M:%S')}"
        )

    def to_json(self) -> dict[str, Any]:
        """As it stands in the file."""
        return {
            "for": self.kind,
            "subject": self.subject,
            "why": self.why,
            "since": to_iso(self.since),
        }

    @staticmethod
    def from_json(data: dict[str, Any]) -> Wait:
        """Read it back."""
        since = from_iso(str(data["since"]))
        assert since is not None
        return Wait(str(data["for"]), str(data["subject"]), str(data["why"]), since)


def waits_of(job: JobHome, lease: LeaseRecord | None) -> tuple[Wait, ...]:
    """What the driver with this live lease waits for."""
    if lease is None:
        return ()
    try:
        stored = read_json(job.files, _path(job))
        if stored is None or stored.get("driver") != lease.owner.token:
            return ()
        return tuple(Wait.from_json(one) for one in stored["waits"])
    except (HeadgateError, KeyError, TypeError, ValueError):
        return ()  # a notice that cannot be read must not hide the job


def _path(job: JobHome) -> str:
    return f"{job.path}/waiting.json"


class Waits:
    """The driver's side; any thread may call it.

    >>> from headgate.home.layout import Home
    >>> waits = Waits(Home("memory://waits_doc").job("store"), "token", say=lambda line: None)
    >>> waits.begin("broker", "kafka broker h:1 of orders", "it has not answered")
    >>> [wait.subject for wait in waits.now]
    ['kafka broker h:1 of orders']
    >>> waits.end("broker", "kafka broker h:1 of orders")
    >>> waits.now
    ()
    """

    def __init__(
        self,
        job: JobHome,
        token: str,
        *,
        say: Callable[[str], None],
        held: Callable[[], bool] = lambda: True,
    ) -> None:
        """``held`` tells whether the job is still ours: the file is not written otherwise."""
        self._job = job
        self._token = token
        self._say = say
        self._held = held
        self._lock = threading.RLock()
        self._waits: dict[tuple[str, str], Wait] = {}
        self._said: dict[tuple[str, str], float] = {}

    @property
    def now(self) -> tuple[Wait, ...]:
        """What is waited for at this moment."""
        with self._lock:
            return tuple(self._waits.values())

    def begin(self, kind: Kind, subject: str, why: str, *, since: datetime | None = None) -> None:
        """Say that the job waits; nothing happens if that was said already."""
        key = (kind, subject)
        with self._lock:
            if key in self._waits:
                return
            wait = self._waits[key] = Wait(kind, subject, why, since or now())
            self._said[key] = time.monotonic()
            self._say(wait.sentence())  # first: the disk may be what it waits for
            self._write()

    def end(self, kind: Kind, subject: str) -> None:
        """Say that it waits no longer."""
        with self._lock:
            wait = self._waits.pop((kind, subject), None)
            if wait is not None:
                self._say(f"no longer waiting for {wait.subject}, after {_age(wait)}")
                self._write()

    def remind(self) -> None:
        """Say it again once in a while."""
        with self._lock:
            for key, wait in self._waits.items():
                if time.monotonic() - self._said[key] >= _REMIND_SECONDS:
                    self._said[key] = time.monotonic()
                    self._say(f"{wait.sentence()}, for {_age(wait)} now")

    def close(self) -> None:
        """The job has ended, so it waits for nothing."""
        with self._lock:
            self._waits.clear()
            self._write()

    def _write(self) -> None:
        if not self._held():
            return
        files, path = self._job.files, _path(self._job)
        with suppress(HeadgateError, OSError):  # the terminal has it, and the job must go on
            if self._waits:
                waits = [wait.to_json() for wait in self._waits.values()]
                write_json(files, path, {"version": VERSION, "driver": self._token, "waits": waits})
            elif files.exists(path):
                files.delete(path)


def _age(wait: Wait) -> str:
    return format_duration(max(now() - wait.since, timedelta(0)))
