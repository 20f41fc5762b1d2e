"""A broker's process and its `broker.json`: who it is, whether it lives, and how it is ended."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from headgate.base.errors import ExitCode, HeadgateError
from headgate.base.identity import pid_space, process_started
from headgate.home.files import LocalFiles, read_json, write_json
from headgate.home.times import from_iso, to_iso
from headgate.home.versions import check_version

HOST = "127.0.0.1"

_FILE = "broker.json"
_SCHEMES = {"pulsar": "pulsar://"}
_POLL_SECONDS = 0.05
_KILL_SECONDS = 20.0
# Below the range from which systems take ports for outgoing connections (32768 and up on Linux):
# one of those may be taken while a broker is down, and a connection to it may meet itself.
_PORTS = range(20_000, 32_000)
_given: set[int] = set()
_TRIES = 200


class BrokerState(StrEnum):
    """How a broker is."""

    RUNNING = "running"
    """It answers."""
    STARTING = "starting"
    """Its process is young and does not answer yet."""
    UNRESPONSIVE = "unresponsive"
    """Its process lives and does not answer."""
    STOPPED = "stopped"
    CRASHED = "crashed"
    """Its process is gone without having been stopped."""
    ABSENT = "absent"
    """There has never been one in this folder."""


class NotInTimeError(HeadgateError):
    """A broker does not answer yet. What was started continues.

    >>> int(NotInTimeError("the broker does not answer").exit_code)
    4
    """

    code = "NOT_IN_TIME"
    exit_code = ExitCode.NOT_IN_TIME


@dataclass(frozen=True)
class Process:
    """A process that cannot be mistaken for a later one with the same pid."""

    pid: int
    started: str
    """When it started, in its system's own words."""
    space: str
    """The boot and process namespace in which the pid means something."""

    @staticmethod
    def of(pid: int) -> Process:
        """The process that has this pid now."""
        return Process(pid, process_started(pid) or "", pid_space())

    @property
    def alive(self) -> bool:
        """Whether it is still there."""
        return self.space == pid_space() and process_started(self.pid) == self.started

    def end(self, *, patience: float) -> None:
        """Ask it to end and wait until it has; kill it when patience is over."""
        for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, _KILL_SECONDS)):
            if not self.alive:
                return
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
            until = time.monotonic() + seconds
            while self.alive and time.monotonic() < until:
                time.sleep(_POLL_SECONDS)
        if self.alive:
            raise HeadgateError(
                f"process {self.pid} did not end after it was killed",
                code="LOCAL_BROKER",
                remedy="it may hang on a disk; look at it with ps",
            )


@dataclass(frozen=True)
class BrokerRecord:
    """What `broker.json` holds. It stays when the broker is stopped, and with it the port."""

    kind: str
    release: str
    cluster_id: str
    port: int
    log: str
    started_at: datetime
    process: Process | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    ports: Mapping[str, int] = field(default_factory=dict)
    """Its other ports by name."""

    @property
    def servers(self) -> str:
        """The address for clients."""
        return f"{_SCHEMES.get(self.kind, '')}{HOST}:{self.port}"

    @property
    def web(self) -> str | None:
        """Where its REST interface is, if it has one."""
        return f"http://{HOST}:{self.ports['web']}" if "web" in self.ports else None

    @property
    def alive(self) -> bool:
        """Whether its process is there."""
        return self.process is not None and self.process.alive

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        process = self.process
        return {
            "version": 1,
            "kind": self.kind,
            "release": self.release,
            "cluster_id": self.cluster_id,
            "servers": self.servers,
            "port": self.port,
            "log": self.log,
            "started_at": to_iso(self.started_at),
            "process": process and {
                "pid": process.pid, "started": process.started, "space": process.space,
            },
            "settings": dict(self.settings),
            "ports": dict(self.ports),
        }  # fmt: skip

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> BrokerRecord:
        """From what its file holds."""
        check_version(data, _FILE)
        process = data.get("process")
        started_at = from_iso(data["started_at"])
        assert started_at is not None
        return BrokerRecord(
            kind=str(data["kind"]),
            release=str(data["release"]),
            cluster_id=str(data["cluster_id"]),
            port=int(data["port"]),
            log=str(data["log"]),
            started_at=started_at,
            process=process and Process(
                int(process["pid"]), str(process["started"]), str(process["space"])
            ),
            settings=dict(data.get("settings") or {}),
            ports={str(name): int(port) for name, port in (data.get("ports") or {}).items()},
        )  # fmt: skip


@dataclass(frozen=True)
class BrokerStatus:
    """A broker as it is at this moment."""

    state: BrokerState
    folder: Path
    record: BrokerRecord | None = None

    def to_json(self) -> dict[str, Any]:
        """For people who read with programs."""
        record = self.record
        process = record.process if record else None
        live = self.state in (BrokerState.RUNNING, BrokerState.STARTING, BrokerState.UNRESPONSIVE)
        return {
            "state": str(self.state),
            "folder": str(self.folder),
            "servers": record.servers if record else None,
            "pid": process.pid if process and live else None,
            "started_at": to_iso(record.started_at) if record and live else None,
            "release": record.release if record else None,
            "log": record.log if record else None,
            **({"web": record.web} if record and record.web else {}),
        }


def read_record(files: LocalFiles) -> BrokerRecord | None:
    """The broker of a folder, or nothing if there has been none."""
    data = read_json(files, _FILE)
    if data is None:
        return None
    try:
        return BrokerRecord.from_json(data)
    except (KeyError, TypeError, ValueError, AssertionError) as error:
        raise HeadgateError(
            f"{files.location(_FILE)} is damaged ({type(error).__name__}: {error})",
            code="LOCAL_BROKER",
            remedy="end the broker's process if there is one, then delete the file",
        ) from error


def write_record(files: LocalFiles, record: BrokerRecord) -> None:
    """Keep what is known of a folder's broker."""
    write_json(files, _FILE, record.to_json())


def is_free(port: int) -> bool:
    """Whether a server could listen there; connections that are being forgotten do not count."""
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind((HOST, port))
            tried.listen(1)
        except OSError:
            return False
    return True


def free_port(*but: int, together: Callable[[int], Mapping[str, int]] | None = None) -> int:
    """A port on which nobody listens, nor on those that go `together` with it.

    Whoever was given a port may listen on it later only, so no port is given twice.
    """
    chosen = random.SystemRandom()
    for _ in range(_TRIES):
        port = chosen.choice(_PORTS)
        needed = {port, *(together(port).values() if together else ())}
        usable = max(needed) < _PORTS.stop and needed.isdisjoint({*but, *_given})
        if usable and all(is_free(each) for each in needed):
            _given.update(needed)
            return port
    raise HeadgateError(
        f"no free port from {_PORTS.start} to {_PORTS.stop - 1} was found",
        code="LOCAL_BROKER",
        remedy="choose a port with --port",
    )
