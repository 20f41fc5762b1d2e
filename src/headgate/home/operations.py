"""Operations: requests to a job's driver through the home, and their results."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from headgate.base.errors import NotFoundError, RefusedError, UsageError
from headgate.base.secrets import redacted
from headgate.home.changes import change_text
from headgate.home.files import json_text, parse_json, write_json
from headgate.home.layout import Home, JobHome
from headgate.home.times import from_iso, now, to_iso
from headgate.home.versions import VERSION, check_version

KINDS = ("savepoint", "checkpoint", "stop", "cancel", "restart")
OPEN = ("requested", "running")
"""States that are not the last one; done, failed and cancelled are."""

_NAME = re.compile(r"(op-[0-9a-f]{6,})\.json")


@dataclass(frozen=True)
class OperationRecord:
    """``operations/<id>.json``: made by whoever asks, then changed by the driver alone."""

    id: str
    job: str
    kind: str
    state: str
    """requested, running, done, failed or cancelled."""
    requested_at: datetime
    args: Mapping[str, Any] = field(default_factory=dict)
    driver: str | None = None
    """The token of the lease that was live when it was requested."""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    result: Mapping[str, Any] | None = None
    message: str | None = None
    """A sentence for people; always there when it failed."""

    @property
    def ended(self) -> bool:
        """Whether nothing more will happen to it."""
        return self.state not in OPEN

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        return {
            "version": VERSION,
            "id": self.id,
            "job": self.job,
            "kind": self.kind,
            "state": self.state,
            "args": dict(self.args),
            "driver": self.driver,
            "requested_at": to_iso(self.requested_at),
            "started_at": to_iso(self.started_at),
            "ended_at": to_iso(self.ended_at),
            "result": dict(self.result) if self.result is not None else None,
            "message": self.message,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> OperationRecord:
        """From what its file holds."""
        check_version(data, "an operation")
        requested_at = from_iso(data["requested_at"])
        assert requested_at is not None
        return OperationRecord(
            id=str(data["id"]),
            job=str(data["job"]),
            kind=str(data["kind"]),
            state=str(data["state"]),
            requested_at=requested_at,
            args=dict(data.get("args") or {}),
            driver=data.get("driver"),
            started_at=from_iso(data.get("started_at")),
            ended_at=from_iso(data.get("ended_at")),
            result=data.get("result"),
            message=data.get("message"),
        )


class Operations:
    """``jobs/<job>/operations``.

    >>> operations = Operations(Home("memory://operations_doc").job("store"))
    >>> request = operations.request("savepoint", {"label": "before_v2"})
    >>> operations.take(request.id).state
    'running'
    >>> operations.end(request.id, "done", result={"label": "before_v2"}).state
    'done'
    """

    def __init__(self, job: JobHome) -> None:
        self.job = job
        self._files = job.files
        self._path = f"{job.path}/operations"

    def ids(self) -> list[str]:
        """Every operation, in no particular order."""
        names = self._files.list(self._path)
        return [match[1] for name in names if (match := _NAME.fullmatch(name))]

    def read(self, id: str) -> OperationRecord:
        """One operation's record."""
        return self._parse(self._files.read_text(f"{self._path}/{id}.json"), id)

    def _parse(self, text: str | None, id: str) -> OperationRecord:
        if text is None:
            raise NotFoundError(
                f"job '{self.job.name}' has no operation {id}", remedy="check the id"
            )
        where = self._files.location(f"{self._path}/{id}.json")
        return OperationRecord.from_json(parse_json(text, where))

    def request(
        self, kind: str, args: Mapping[str, Any] | None = None, *, driver: str | None = None
    ) -> OperationRecord:
        """Ask the job's driver for something."""
        if kind not in KINDS:
            raise UsageError(
                f"there is no operation '{kind}'",
                remedy="ask for one of these",
                expected=", ".join(KINDS),
            )
        taken = set(self.ids())
        id = next(id for id in iter(_new_id, "") if id not in taken)
        record = OperationRecord(
            id, self.job.name, kind, "requested", now(), dict(args or {}), driver
        )
        self._write(record)
        return record

    def take(self, id: str) -> OperationRecord | None:
        """Begin to carry it out, unless that was done or it was cancelled."""
        return self._change(
            id,
            lambda record: (
                replace(record, state="running", started_at=now())
                if record.state == "requested"
                else None
            ),
        )[1]

    def end(
        self,
        id: str,
        state: str,
        *,
        result: Mapping[str, Any] | None = None,
        message: str | None = None,
    ) -> OperationRecord:
        """Write down what became of it."""
        ended = self._change(
            id,
            lambda record: replace(
                record, state=state, ended_at=now(), result=result, message=redacted(message)
            ),
        )[1]
        assert ended is not None
        return ended

    def cancel(self, id: str) -> OperationRecord:
        """Take a request back; refused once the driver has taken it."""

        def taken_back(record: OperationRecord) -> OperationRecord | None:
            if record.state == "running":
                raise RefusedError(
                    f"operation {id} ({record.kind} of job '{record.job}') is being carried out",
                    remedy=f"wait for it with headgate op wait {id}",
                )
            if record.ended:
                return None
            return replace(record, state="cancelled", ended_at=now(), message="it was taken back")

        old, new = self._change(id, taken_back)
        return new or old

    def forget(self, id: str) -> None:
        """Delete an operation's record."""
        self._files.delete(f"{self._path}/{id}.json")

    def _change(
        self, id: str, decide: Callable[[OperationRecord], OperationRecord | None]
    ) -> tuple[OperationRecord, OperationRecord | None]:
        """Read, decide and write with no other process between; the record before and after."""
        path = f"{self._path}/{id}.json"
        seen: list[tuple[OperationRecord, OperationRecord | None]] = []

        def changed(text: str | None) -> str | None:
            old = self._parse(text, id)
            new = decide(old)
            seen.append((old, new))
            return None if new is None else json_text(new.to_json())

        change_text(self._files, path, f"{self.job.path}/job.lock", changed)
        return seen[-1]

    def _write(self, record: OperationRecord) -> OperationRecord:
        write_json(self._files, f"{self._path}/{record.id}.json", record.to_json())
        return record


def find_operation(home: Home, id: str) -> tuple[Operations, OperationRecord]:
    """The operation of this id, or the only one whose id starts so, of any job."""
    wanted = id.replace("op:", "op-", 1)
    wanted = wanted if wanted.startswith("op-") else f"op-{wanted}"
    found = [
        (operations, name)
        for operations in (Operations(job) for job in home.jobs())
        for name in operations.ids()
        if name.startswith(wanted)
    ]
    exact = [pair for pair in found if pair[1] == wanted]
    if len(exact or found) == 1:
        operations, name = (exact or found)[0]
        return operations, operations.read(name)
    if found:
        names = ", ".join(sorted(name for _, name in found))
        raise UsageError(
            f"'{id}' is the start of several operations: {names}", remedy="write more of the id"
        )
    raise NotFoundError(
        f"there is no operation '{id}' in {home.url}", remedy="check the id and the --home"
    )


def _new_id() -> str:
    return f"op-{uuid.uuid4().hex[:6]}"
