"""A checkpoint in short: what lists, charts and rates are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from headgate.home.latency import quantile
from headgate.home.model import CheckpointRecord
from headgate.home.read.counts import behind, source_rows


@dataclass(frozen=True)
class CheckpointRow:
    """The short form of a checkpoint's record: a job of 200 steps has long ones."""

    id: int
    run: str
    status: str
    type: str
    triggered_at: datetime | None
    completed_at: datetime | None
    duration: timedelta | None
    phases: Mapping[str, int]
    """Milliseconds."""
    records: int
    """Taken from the sources."""
    behind: int
    state_rows: int
    state_bytes: int
    latency_ms: int | None
    """That 99 % of its records did not exceed; nothing if it had none."""

    @staticmethod
    def of(record: CheckpointRecord) -> CheckpointRow:
        """The row of a record."""
        took = record.duration_ms
        return CheckpointRow(
            record.id,
            record.run,
            record.status,
            record.type,
            record.triggered_at,
            record.completed_at,
            timedelta(milliseconds=took) if took is not None else None,
            record.phases,
            source_rows(record),
            behind(record),
            sum(sizes.get("rows", 0) for sizes in record.state.values()),
            sum(sizes.get("bytes", 0) for sizes in record.state.values()),
            quantile(record.latency.all(), 0.99) if record.latency else None,
        )
