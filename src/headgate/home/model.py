"""The records of the home as frozen dataclasses, and their JSON (docs/format.md)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from headgate.base.params import from_record, references
from headgate.base.secrets import redacted
from headgate.home.event_time import EventTimeRecord
from headgate.home.latency import LatencyRecord
from headgate.home.offsets import SourceOffsets
from headgate.home.stages import StageRecord
from headgate.home.tally import Tally
from headgate.home.times import from_iso, to_iso
from headgate.home.versions import VERSION, check_version

Counts: TypeAlias = Mapping[str, Mapping[str, int]]
"""A number by step and metric: ``{"orders": {"records_out": 12}}``."""


@dataclass(frozen=True)
class Owner:
    """A process that drives a job."""

    host: str
    pid: int
    started: str
    """When the process started, as its system says it: tells a reused pid from the old process."""
    space: str
    """The boot and process namespace in which the pid means something."""
    token: str

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        return {
            "host": self.host,
            "pid": self.pid,
            "started": self.started,
            "space": self.space,
            "token": self.token,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Owner:
        """From what its file holds."""
        return Owner(
            str(data["host"]),
            int(data["pid"]),
            str(data.get("started", "")),
            str(data.get("space", "")),
            str(data["token"]),
        )


@dataclass(frozen=True)
class LeaseRecord:
    """Who drives the job, and when it last said so."""

    owner: Owner
    acquired_at: datetime
    heartbeat: datetime
    ttl_seconds: float

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        return {
            "owner": self.owner.to_json(),
            "acquired_at": to_iso(self.acquired_at),
            "heartbeat": to_iso(self.heartbeat),
            "ttl_seconds": self.ttl_seconds,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> LeaseRecord:
        """From what its file holds."""
        return LeaseRecord(
            Owner.from_json(data["owner"]),
            _time(data["acquired_at"]),
            _time(data["heartbeat"]),
            float(data["ttl_seconds"]),
        )


@dataclass(frozen=True)
class JobRecord:
    """``job.json``: the job's name, its current run and its lease."""

    name: str
    current_run: str | None = None
    lease: LeaseRecord | None = None

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        return {
            "version": VERSION,
            "name": self.name,
            "current_run": self.current_run,
            "lease": self.lease.to_json() if self.lease else None,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> JobRecord:
        """From what its file holds."""
        check_version(data, "job.json")
        lease = data.get("lease")
        return JobRecord(
            str(data["name"]),
            data.get("current_run"),
            LeaseRecord.from_json(lease) if lease else None,
        )


@dataclass(frozen=True)
class Parent:
    """The checkpoint from which a run started."""

    run: str
    checkpoint: int
    job: str | None = None
    """Another job's, if the run is a fork."""
    savepoint: str | None = None
    """The savepoint's label, if it was one."""

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        return {
            "run": self.run,
            "checkpoint": self.checkpoint,
            "job": self.job,
            "savepoint": self.savepoint,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Parent:
        """From what its file holds."""
        return Parent(
            str(data["run"]), int(data["checkpoint"]), data.get("job"), data.get("savepoint")
        )


@dataclass(frozen=True)
class RunRecord:
    """``run.json``: what a run is made of; never changed after it is written."""

    job: str
    run: str
    created_at: datetime
    parallelism: int
    graph_fingerprint: str
    params: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    parent: Parent | None = None
    uid: str = ""
    """Tells it from a run of the same number in another home: sinks mark their batches by it."""
    out_until: int | None = None
    """Batches up to it count as out in all sinks: the run accepted its sinks' position."""

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        return {
            "version": VERSION,
            "job": self.job,
            "run": self.run,
            "uid": self.uid,
            "created_at": to_iso(self.created_at),
            "parallelism": self.parallelism,
            "graph_fingerprint": self.graph_fingerprint,
            "params": dict(self.params),
            "references": references(self.params),
            "versions": dict(self.versions),
            "code": dict(self.code),
            "parent": self.parent.to_json() if self.parent else None,
            "out_until": self.out_until,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> RunRecord:
        """From what its file holds."""
        check_version(data, "run.json")
        parent = data.get("parent")
        return RunRecord(
            job=str(data["job"]),
            run=str(data["run"]),
            created_at=_time(data["created_at"]),
            parallelism=int(data["parallelism"]),
            graph_fingerprint=str(data["graph_fingerprint"]),
            params=from_record(data),
            versions=dict(data.get("versions") or {}),
            code=dict(data.get("code") or {}),
            parent=Parent.from_json(parent) if parent else None,
            uid=str(data.get("uid") or ""),
            out_until=data.get("out_until"),
        )


@dataclass(frozen=True)
class CheckpointRecord:
    """One checkpoint: times, counts, state and source positions of one micro-batch."""

    id: int
    run: str
    status: str
    type: str
    """periodic; recovered (written after a crash); forked (where this run began)."""
    triggered_at: datetime | None
    completed_at: datetime | None
    duration_ms: int | None
    phases: Mapping[str, int] = field(default_factory=dict)
    rows: Counts = field(default_factory=dict)
    totals: Counts = field(default_factory=dict)
    state: Counts = field(default_factory=dict)
    sources: Mapping[str, SourceOffsets] = field(default_factory=dict)
    watermark: datetime | None = None
    """The watermark with which the batch ran."""
    event_time: EventTimeRecord | None = None
    """Each source's watermark after it; nothing if no source has event time."""
    tally: Tally | None = None
    """Of the run up to this checkpoint; nothing in a record of an older Headgate."""
    latency: LatencyRecord | None = None
    """How long its records took; nothing in a record of an older Headgate."""
    stages: tuple[StageRecord, ...] = ()
    """Where its time went, as far as Spark had told; nothing in a record of an older Headgate."""

    @property
    def watermark_after(self) -> datetime | None:
        """The job's watermark when the batch had ended."""
        return self.event_time.next if self.event_time else self.watermark

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        return {
            "version": VERSION,
            "id": self.id,
            "run": self.run,
            "status": self.status,
            "type": self.type,
            "triggered_at": to_iso(self.triggered_at),
            "completed_at": to_iso(self.completed_at),
            "duration_ms": self.duration_ms,
            "phases": dict(self.phases),
            "rows": _plain(self.rows),
            "totals": _plain(self.totals),
            "state": _plain(self.state),
            "sources": {name: s.to_json() for name, s in self.sources.items()},
            "watermark": to_iso(self.watermark),
            "event_time": self.event_time.to_json() if self.event_time else None,
            "tally": self.tally.to_json() if self.tally else None,
            **({"latency": self.latency.to_json()} if self.latency else {}),
            **({"stages": [stage.to_json() for stage in self.stages]} if self.stages else {}),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> CheckpointRecord:
        """From what its file holds."""
        check_version(data, "a checkpoint's record")
        sources, time = data.get("sources") or {}, data.get("event_time")
        tally = data.get("tally")
        return CheckpointRecord(
            id=int(data["id"]),
            run=str(data["run"]),
            status=str(data["status"]),
            type=str(data["type"]),
            triggered_at=from_iso(data.get("triggered_at")),
            completed_at=from_iso(data.get("completed_at")),
            duration_ms=data.get("duration_ms"),
            phases=dict(data.get("phases") or {}),
            rows=_plain(data.get("rows") or {}),
            totals=_plain(data.get("totals") or {}),
            state=_plain(data.get("state") or {}),
            sources={name: SourceOffsets.from_json(s) for name, s in sources.items()},
            watermark=from_iso(data.get("watermark")),
            event_time=EventTimeRecord.from_json(time) if time else None,
            tally=Tally.from_json(tally) if tally else None,
            latency=LatencyRecord.from_json(data["latency"]) if data.get("latency") else None,
            stages=tuple(map(StageRecord.from_json, data.get("stages") or ())),
        )


@dataclass(frozen=True)
class EventRecord:
    """Something that happened to a run: started, failed, restarting, finished, stopped."""

    kind: str
    at: datetime
    details: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        return {
            "version": VERSION,
            "kind": self.kind,
            "at": to_iso(self.at),
            "details": dict(self.details),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> EventRecord:
        """From what its file holds."""
        check_version(data, "an event")
        # older versions recorded values as they were given: redact them on reading
        details = redacted(data.get("details") or {})
        if "params" in details:
            details["params"] = from_record(details)
        return EventRecord(str(data["kind"]), _time(data["at"]), details)


def _time(text: str) -> datetime:
    when = from_iso(text)
    assert when is not None
    return when


def _plain(counts: Counts) -> dict[str, dict[str, int]]:
    return {step: {name: int(n) for name, n in metrics.items()} for step, metrics in counts.items()}
