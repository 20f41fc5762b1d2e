"""Crashes: drivers that died without writing down how they ended, and what is known of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headgate.home.layout import JobHome, RunHome
from headgate.home.model import CheckpointRecord, EventRecord, LeaseRecord
from headgate.home.times import to_iso
from headgate.snapshots.spark_log import pending_batch

REASON = "PROCESS_GONE"
UNDER_WAY = ("started", "restarted", "restarting")
"""Events that a driver which is still there writes: after the last of them it may have died."""


@dataclass(frozen=True)
class Crash:
    """One driver that is gone without a word."""

    run: str
    host: str | None
    pid: int | None
    last_seen: datetime | None
    """Its last heartbeat, checkpoint or event, whichever is newest."""
    checkpoint: int | None
    """The newest checkpoint of its run."""
    pending: int | None
    """The batch that it had begun and not committed; the next start runs it again."""

    def sentence(self) -> str:
        """What happened, without the time, which each reader writes in a way of their own."""
        who = f"process {self.pid} on {self.host}" if self.pid else "the process that drove it"
        at = f"its last checkpoint is ck:{self.checkpoint}"
        if self.checkpoint is None:
            at = "it had made no checkpoint"
        open_ = f"; batch {self.pending} was begun and not committed"
        return (
            f"{who} is gone without a word (killed, or its machine went down); {at}"
            f"{open_ if self.pending is not None else ''}"
        )

    def to_json(self) -> dict[str, Any]:
        """For scripts."""
        return {
            "run": self.run,
            "host": self.host,
            "pid": self.pid,
            "last_seen": to_iso(self.last_seen),
            "checkpoint": self.checkpoint,
            "pending_batch": self.pending,
            "message": self.sentence(),
        }


def crash_of(
    run: RunHome,
    events: Sequence[EventRecord],
    checkpoint: CheckpointRecord | None,
    lease: LeaseRecord | None,
) -> Crash:
    """What is known of the driver of a run whose last event is one of UNDER_WAY."""
    last = events[-1].at if events else None
    # a lease that was taken after the last event belongs to a start that came no further
    own = lease if lease and (last is None or lease.acquired_at <= last) else None
    made = checkpoint.completed_at if checkpoint else None
    seen = (last, made, own.heartbeat if own else None)
    return Crash(
        run=run.id,
        host=own.owner.host if own else None,
        pid=own.owner.pid if own else _pid(events),
        last_seen=max((at for at in seen if at is not None), default=None),
        checkpoint=checkpoint.id if checkpoint else None,
        pending=pending_batch(run),
    )


def _pid(events: Sequence[EventRecord]) -> int | None:
    started = next((event for event in reversed(events) if event.kind == "started"), None)
    pid = started.details.get("pid") if started else None
    return pid if isinstance(pid, int) else None


def resume_text(job: JobHome) -> str:
    """Where a plain start of a job goes on, in a sentence."""
    run = job.current()
    if run is None:
        return "it starts from nothing, as it has no run"
    checkpoint, pending = run.latest_checkpoint(), pending_batch(run)
    if checkpoint is None and pending is None:
        return f"run {run.id} starts from nothing, as it has no checkpoint"
    after = f" after ck:{checkpoint.id}" if checkpoint else ""
    if pending is None:
        return f"run {run.id} goes on{after}"
    return (
        f"run {run.id} goes on{after} and first does batch {pending} again, which was begun and "
        "not committed: nothing is lost, and exactly-once sinks write no row twice"
    )
