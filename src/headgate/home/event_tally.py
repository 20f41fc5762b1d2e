"""What is known of all events of a run in short: failures, restarts, and time in each state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from headgate.home.model import EventRecord

_UNDER_WAY = {
    "started": "RUNNING",
    "restarted": "RUNNING",
    "failed": "RESTARTING",
    "restarting": "RESTARTING",
}
_REMEMBERED = ("started", "restarted", "failed")


@dataclass(frozen=True)
class EventTally:
    """The events of a run so far."""

    count: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    """Failures by step; of no step under the empty name."""
    failed_batches: int = 0
    """Failures in a batch: checkpoints that were not made."""
    restarting: Mapping[str, int] = field(default_factory=dict)
    """Restarts by reason."""
    starts: int = 0
    restored: int = 0
    """Starts and restarts that went on from a checkpoint."""
    restarts: int = 0
    """Restarts since the last start."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    """Time spent RUNNING and RESTARTING up to the last event."""
    newest: EventRecord | None = None
    last: Mapping[str, EventRecord] = field(default_factory=dict)
    """The last start, restart and failure."""

    def plus(self, event: EventRecord) -> EventTally:
        """With one more."""
        kind, details = event.kind, event.details
        found = replace(self, count=self.count + 1, newest=event, seconds=self.spent(event.at))
        if kind in _REMEMBERED:
            found = replace(found, last={**self.last, kind: event})
        if kind == "started":
            found = replace(found, starts=self.starts + 1, restarts=0)
        if kind == "failed":
            by_step = _one_more(self.failed, str(details.get("step") or ""))
            in_batch = details.get("batch") is not None
            found = replace(found, failed=by_step, failed_batches=self.failed_batches + in_batch)
        if kind == "restarting":
            by_reason = _one_more(self.restarting, str(details.get("reason")))
            found = replace(found, restarting=by_reason, restarts=self.restarts + 1)
        return replace(found, restored=self.restored + is_restore(event))

    def spent(self, until: datetime | None) -> dict[str, float]:
        """Time in each state; the state after the last event lasts until then."""
        found = {"RUNNING": 0.0, "RESTARTING": 0.0, **self.seconds}
        last = self.newest
        state = _UNDER_WAY.get(last.kind) if last else None
        if last is None or state is None or until is None:
            return found
        if last.kind == "failed" and last.details.get("gives_up"):
            return found
        found[state] += max((until - last.at).total_seconds(), 0.0)
        return found

    def to_json(self) -> dict[str, Any]:
        """As it stands at the head of a pack."""
        return {
            "count": self.count,
            "failed": dict(self.failed),
            "failed_batches": self.failed_batches,
            "restarting": dict(self.restarting),
            "starts": self.starts,
            "restored": self.restored,
            "restarts": self.restarts,
            "seconds": dict(self.seconds),
            "newest": self.newest.to_json() if self.newest else None,
            "last": {kind: event.to_json() for kind, event in self.last.items()},
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> EventTally:
        """From the head of a pack."""
        newest = data.get("newest")
        return EventTally(
            int(data["count"]),
            dict(data["failed"]),
            int(data["failed_batches"]),
            dict(data["restarting"]),
            int(data["starts"]),
            int(data["restored"]),
            int(data["restarts"]),
            dict(data["seconds"]),
            EventRecord.from_json(newest) if newest else None,
            {kind: EventRecord.from_json(event) for kind, event in data["last"].items()},
        )


def is_restore(event: EventRecord) -> bool:
    """Whether the job went on from a checkpoint with this event."""
    if event.kind == "started":
        return event.details.get("how") != "new"
    return event.kind == "restarted"


def _one_more(counts: Mapping[str, int], name: str) -> dict[str, int]:
    return {**counts, name: counts.get(name, 0) + 1}
