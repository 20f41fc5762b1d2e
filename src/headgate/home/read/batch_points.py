"""What one batch adds to the metrics over time, from its record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from headgate.home.latency import LatencyRecord, bucket_of
from headgate.home.model import CheckpointRecord
from headgate.home.points import Gauge, Histogram, Point, Sinks
from headgate.home.read.counts import behind, left, sinks_of, source_rows
from headgate.home.read.latency import streams_of_sinks

_MS = timedelta(milliseconds=1)
_BEGIN = datetime(1970, 1, 1, tzinfo=UTC)
"""The watermark before there is one."""


class BatchPoints:
    """Makes points of the batches of one graph."""

    def __init__(self, steps: Sequence[Mapping[str, Any]]) -> None:
        self._sinks = sinks_of(steps)
        groups: dict[tuple[str, ...], list[str]] = {}
        for sink, streams in streams_of_sinks(steps).items():
            groups.setdefault(tuple(sorted(streams)), []).append(sink)
        self._groups: dict[Sinks, tuple[str, ...]] = {
            tuple(sinks): streams for streams, sinks in groups.items()
        }

    def of(self, record: CheckpointRecord) -> Point:
        """The point of a batch that has ended."""
        return Point(
            batches=1,
            records_in=source_rows(record),
            records_out=left(record.rows, self._sinks),
            gauges={name: Gauge.of(value) for name, value in _gauges(record).items()},
            latency=self._latency(record.latency) if record.latency else {},
        )

    def _latency(self, record: LatencyRecord) -> dict[Sinks, Histogram]:
        found: dict[Sinks, Histogram] = {}
        for sinks, streams in self._groups.items():
            counts: dict[int, int] = {}
            for source in streams:
                for ms, records in record.of(source):
                    at = bucket_of(ms)
                    counts[at] = counts.get(at, 0) + records
            if counts:
                found[sinks] = counts
        return found


def _gauges(record: CheckpointRecord) -> dict[str, int]:
    found = {"behind": behind(record)}
    if record.duration_ms is not None:
        found["duration_ms"] = record.duration_ms
    mark, done = record.watermark_after, record.completed_at
    if mark is not None and done is not None and mark > _BEGIN:
        found["watermark_lag_ms"] = (done - mark) // _MS
    if record.state:
        found["state_rows"] = sum(sizes.get("rows", 0) for sizes in record.state.values())
        found["state_bytes"] = sum(sizes.get("bytes", 0) for sizes in record.state.values())
    return found
