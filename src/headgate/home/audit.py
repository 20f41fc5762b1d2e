"""The audit of a job: who requested what through the web interface, one small file each."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from headgate.base.secrets import redacted
from headgate.home.files import read_json, write_json
from headgate.home.layout import JobHome
from headgate.home.times import from_iso, now, to_iso
from headgate.home.versions import VERSION, check_version


@dataclass(frozen=True)
class AuditRecord:
    """``audit/<time>-<id>.json``: written once, when the action was accepted or refused."""

    at: datetime
    action: str
    args: Mapping[str, Any] = field(default_factory=dict)
    role: str = ""
    address: str = ""
    operation: str | None = None
    refused: str | None = None
    """Why nothing was done."""

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        return {
            "version": VERSION,
            "at": to_iso(self.at),
            "action": self.action,
            "args": dict(self.args),
            "role": self.role,
            "address": self.address,
            "operation": self.operation,
            "refused": self.refused,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> AuditRecord:
        """From what its file holds."""
        check_version(data, "an audit record")
        at = from_iso(data["at"])
        assert at is not None
        return AuditRecord(
            at,
            str(data["action"]),
            dict(data.get("args") or {}),
            str(data.get("role") or ""),
            str(data.get("address") or ""),
            data.get("operation"),
            data.get("refused"),
        )


def write_audit(job: JobHome, action: str, **details: Any) -> AuditRecord:
    """Record a request.

    >>> from headgate.home.layout import Home
    >>> job = Home("memory://audit_doc").job("store")
    >>> _ = write_audit(job, "stop", role="operator")
    >>> [record.action for record in audit(job)]
    ['stop']
    """
    record = AuditRecord(now(), action, **redacted(details))
    name = f"{record.at:%Y%m%dT%H%M%S.%f}-{uuid.uuid4().hex[:6]}"
    write_json(job.files, f"{job.path}/audit/{name}.json", record.to_json())
    return record


def audit(job: JobHome, *, limit: int | None = None) -> list[AuditRecord]:
    """The requests, oldest first; the last `limit` of them."""
    names = [name for name in job.files.list(f"{job.path}/audit") if name.endswith(".json")]
    found = []
    for name in names if limit is None else names[-limit:]:
        data = read_json(job.files, f"{job.path}/audit/{name}")
        if data is not None:
            found.append(AuditRecord.from_json(data))
    return found
