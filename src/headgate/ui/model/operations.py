"""Operations of a job: what was requested, its state, and who requested it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.home.audit import AuditRecord
from headgate.home.operations import OperationRecord
from headgate.ui.model.view import IsoTime, Seconds, View


@dataclass(frozen=True)
class OperationView(View):
    """One operation; it has ended when its state is done, failed or cancelled."""

    id: str
    job: str
    kind: str
    state: str
    ended: bool
    args: Mapping[str, Any]
    requested_at: IsoTime
    started_at: IsoTime | None
    ended_at: IsoTime | None
    took: Seconds | None
    result: Mapping[str, Any] | None
    message: str | None
    text: str
    """The state in a sentence."""


@dataclass(frozen=True)
class AuditView(View):
    """A request through the web interface."""

    at: IsoTime
    action: str
    args: Mapping[str, Any]
    role: str
    address: str
    operation: str | None
    refused: str | None


@dataclass(frozen=True)
class OperationsView(View):
    """Operations of a job, the newest first."""

    job: str
    operations: tuple[OperationView, ...]
    audit: tuple[AuditView, ...]


def operation_view(record: OperationRecord) -> OperationView:
    """The view of an operation."""
    took = None
    if record.started_at and record.ended_at:
        took = record.ended_at - record.started_at
    return OperationView(
        record.id,
        record.job,
        record.kind,
        record.state,
        record.ended,
        record.args,
        record.requested_at,
        record.started_at,
        record.ended_at,
        took,
        record.result,
        record.message,
        _text(record),
    )


def audit_view(record: AuditRecord) -> AuditView:
    """The view of an audit record."""
    return AuditView(
        record.at,
        record.action,
        record.args,
        record.role,
        record.address,
        record.operation,
        record.refused,
    )


def _text(record: OperationRecord) -> str:
    if record.state == "requested":
        own = record.id.startswith("ui-")
        return "it is queued" if own else "the job has not picked it up yet"
    if record.state == "running":
        return "it is running"
    if record.state != "done":
        return record.message or record.state
    result = record.result or {}
    saved = result.get("savepoint")
    label = saved.get("label") if isinstance(saved, Mapping) else result.get("label")
    if label:
        return f"done: savepoint sp:{label}"
    if result.get("checkpoint") is not None:
        return f"done: ck:{result['checkpoint']} of run {result.get('run')}"
    return record.message or "done"
