"""A broker on this machine, whatever its kind: its life from the first start to its end."""

from __future__ import annotations

import contextlib
import subprocess
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Self

from headgate.base.errors import HeadgateError, RefusedError
from headgate.brokers.process import (
    HOST,
    BrokerRecord,
    BrokerState,
    BrokerStatus,
    NotInTimeError,
    Process,
    free_port,
    is_free,
    read_record,
    write_record,
)
from headgate.home.files import LocalFiles
from headgate.home.times import now
from headgate.jvm.jars import fetch
from headgate.jvm.java import find_java

LOCKS = Path(__file__).resolve().parent / "locks"
RESOURCES = Path(__file__).resolve().parent.parent / "resources"

_START_SECONDS = 120.0
_STOP_SECONDS = 30.0
_POLL_SECONDS = 0.1


class Started(StrEnum):
    """What a start found, and did."""

    NEW = "started"
    AGAIN = "restarted"
    """It had crashed; it goes on with its data."""
    ALREADY = "running"


@dataclass(frozen=True)
class Start:
    """A broker that serves, and how that came about."""

    record: BrokerRecord
    how: Started


class LocalBroker(ABC):
    """A broker in a folder; its process outlives the one that started it.

    A kind of broker says which ports it needs, how its storage and settings are made, which
    command runs it, and how one sees that it serves.
    """

    kind: ClassVar[str]
    release: ClassVar[str]
    lock: ClassVar[Path]
    harmless: ClassVar[tuple[str, ...]] = ()
    """Words in errors of its log that are no reason why it ended."""

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self._files = LocalFiles(folder)
        self._settings = settings
        self._log_began = 0
        self.folder = self._files.root

    @property
    def servers(self) -> str:
        """The address for clients."""
        return self._record().servers

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *ended: object) -> None:
        self.stop()

    def status(self) -> BrokerStatus:
        """How the broker is at this moment."""
        record = read_record(self._files)
        if record is None:
            return BrokerStatus(BrokerState.ABSENT, self.folder)
        return BrokerStatus(self._state(record), self.folder, record)

    def start(
        self, *, port: int | None = None, timeout: float = _START_SECONDS, quiet: bool = False
    ) -> Start:
        """Start the broker, unless it runs, and wait until it serves.

        1. The jars are fetched, if they are not in the cache.
        2. A new folder gets its storage; one that had a broker keeps its data and its port.
        3. The process starts in a session of its own and is written down in `broker.json`.
        4. It waits until the broker says who it is.
        """
        self._need()
        record = read_record(self._files)
        jars = [] if record and record.alive else fetch(self.lock, quiet=quiet)
        with self._files.locked("broker.lock", timeout=timeout + 2 * _STOP_SECONDS):
            record = read_record(self._files)
            if record is not None and record.alive:
                if port not in (None, record.port):
                    raise RefusedError(
                        f"the broker in {self.folder} already runs on port {record.port}",
                        remedy="stop it first, or choose another folder with --dir",
                    )
                self._wait(record, timeout)
                return Start(record, Started.ALREADY)
            crashed = record is not None and record.process is not None
            record = self._launch(record, port, jars or fetch(self.lock, quiet=quiet))
            try:
                self._wait(record, timeout)
            except NotInTimeError:
                raise
            except BaseException:  # it failed, or somebody pressed Ctrl-C: nothing stays behind
                self._end(record, patience=0.0)
                raise
            return Start(record, Started.AGAIN if crashed else Started.NEW)

    def stop(self, *, timeout: float = _STOP_SECONDS) -> bool:
        """End the broker in order; kill it if it does not end. False if none was running."""
        if read_record(self._files) is None:
            return False
        with self._files.locked("broker.lock", timeout=_START_SECONDS + timeout):
            record = read_record(self._files)
            if record is None:
                return False
            was = record.alive
            self._end(record, patience=timeout)
            return was

    @abstractmethod
    def _prepare(
        self, jars: list[Path], ports: Mapping[str, int], settings: Mapping[str, str]
    ) -> tuple[str, list[str]]:
        """Write what the broker needs; gives the cluster's id and the arguments of `java`."""

    @abstractmethod
    def _serves(self, record: BrokerRecord) -> bool:
        """Whether this very broker takes requests: another one may have its port meanwhile."""

    def _need(self) -> None:  # noqa: B027 - most kinds need no package
        """Raise if a package is missing without which nobody sees that the broker serves."""

    def _ports(self, port: int) -> dict[str, int]:
        """The ports that follow from the first one, by name."""
        return {}

    def _others(self) -> dict[str, int | None]:
        """Further ports by name; None if any free one will do."""
        return {}

    def _record(self) -> BrokerRecord:
        record = read_record(self._files)
        if record is None:
            raise HeadgateError(
                f"there is no broker in {self.folder}", code="LOCAL_BROKER", remedy="start it first"
            )
        return record

    def _end(self, record: BrokerRecord, *, patience: float) -> None:
        if record.process is not None:
            record.process.end(patience=patience)
        write_record(self._files, replace(record, process=None))

    def _choose(self, old: BrokerRecord | None, port: int | None) -> dict[str, int]:
        """All ports by name; the first one, which has none, is as it was or as it is wanted."""
        first = port or (old.port if old else None) or free_port(together=self._ports)
        others = self._others()
        chosen = {"": first, **self._ports(first)}
        chosen |= {name: fixed for name, fixed in others.items() if fixed is not None}
        for name, needed in chosen.items():
            if needed >= 65536 or not is_free(needed):
                why = f", and this broker needs it (its {name} port)" if name else ""
                remedy = "end what listens there, or choose another --port"
                if name in others:
                    remedy = "end what listens there: the data belongs to that port"
                elif port:
                    remedy = "choose another --port"
                raise HeadgateError(
                    f"port {needed} of {HOST} is taken{why}", code="LOCAL_BROKER", remedy=remedy
                )
        for name in others:
            if name not in chosen:
                chosen[name] = free_port(*chosen.values())
        return chosen

    def _launch(self, old: BrokerRecord | None, port: int | None, jars: list[Path]) -> BrokerRecord:
        ports = self._choose(old, port)
        settings = dict(old.settings if old and self._settings is None else self._settings or {})
        cluster_id, arguments = self._prepare(jars, ports, settings)
        log = self.folder / f"{self.kind}.log"
        self._log_began = log.stat().st_size if log.exists() else 0
        # What the JVM says beside the log: that it cannot start, or how it died.
        with open(self.folder / f"{self.kind}.out", "wb") as out:
            child = subprocess.Popen(
                [str(find_java().executable), *arguments],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip
        process = Process.of(child.pid)
        # Takes its exit code whenever that comes: else it would stay as a zombie of ours.
        threading.Thread(target=child.wait, daemon=True).start()
        chosen = ports.pop("")
        record = BrokerRecord(
            self.kind, self.release, cluster_id, chosen, str(log), now(), process, settings, ports
        )
        try:
            write_record(self._files, record)
        except BaseException:
            process.end(patience=0.0)  # nobody could find it any more
            raise
        return record

    def _wait(self, record: BrokerRecord, timeout: float) -> None:
        until = time.monotonic() + timeout
        while not self._serves(record):
            if not record.alive:
                raise HeadgateError(
                    f"the broker ended while it was starting ({self._last_words(record)})",
                    code="LOCAL_BROKER",
                    remedy=f"see {record.log}",
                )
            if time.monotonic() > until:
                raise NotInTimeError(
                    f"the broker does not answer at {record.servers} after {timeout:.0f} s",
                    remedy="run the command again to wait longer, or stop the broker; its log "
                    f"is {record.log}",
                )
            time.sleep(_POLL_SECONDS)

    def _state(self, record: BrokerRecord) -> BrokerState:
        if record.process is None:
            return BrokerState.STOPPED
        if not record.alive:
            return BrokerState.CRASHED
        if self._serves(record):
            return BrokerState.RUNNING
        young = (now() - record.started_at).total_seconds() < _START_SECONDS
        return BrokerState.STARTING if young else BrokerState.UNRESPONSIVE

    def _last_words(self, record: BrokerRecord) -> str:
        """The first error in the log of this start, else what the JVM printed."""
        said = ""
        with contextlib.suppress(OSError), open(record.log, errors="replace") as log:
            log.seek(self._log_began)
            said = log.read()
        lines = said.splitlines()
        for number, line in enumerate(lines):
            words = line.split(maxsplit=2)
            is_error = len(words) == 3 and words[1] in ("ERROR", "FATAL")
            if is_error and not any(known in line for known in self.harmless):
                # the exception is on the line after the message
                cause = lines[number + 1] if number + 1 < len(lines) else ""
                return f"{words[2]} {cause}".strip() if "Exception" in cause else words[2]
        with contextlib.suppress(OSError):
            said = (self.folder / f"{self.kind}.out").read_text(errors="replace")
        return next((line.strip() for line in said.splitlines() if line.strip()), "it said nothing")
