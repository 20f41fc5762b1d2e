"""Spark's offset and commit logs as files: which batches are in, which is pending, positions."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.base.errors import HeadgateError
from headgate.home.layout import RunHome

_TIMES = ("batchTimestampMs", "batchWatermarkMs")


@dataclass(frozen=True)
class OffsetEntry:
    """One batch in Spark's offset log: its metadata and one line a source, in plan order."""

    metadata: Mapping[str, Any]
    lines: Sequence[str] = field(default_factory=tuple)

    @property
    def batch_time_ms(self) -> int | None:
        """The batch's processing time."""
        value = self.metadata.get("batchTimestampMs")
        return int(value) if value is not None else None

    @property
    def watermark_ms(self) -> int | None:
        """The watermark with which the batch ran; Spark writes 0 for none."""
        return int(self.metadata.get("batchWatermarkMs") or 0) or None

    @property
    def fingerprint(self) -> str:
        """What tells the batch from another with its number: sinks mark it so (Marker.scala).

        Made of what decides the batch's rows: its time, its watermark and the sources' offsets.

        >>> OffsetEntry({"batchTimestampMs": 7, "batchWatermarkMs": 0}, ('{"0":1}',)).fingerprint
        'fb2e0d7a19ada9df'
        """
        times = [str(int(self.metadata.get(n) or 0)) for n in _TIMES]
        text = "\n".join([*times, *self.lines])
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def by_name(self, sources: Sequence[str]) -> dict[str, str]:
        """Each source's line; a source read twice has the same line twice."""
        if len(sources) != len(self.lines):
            raise HeadgateError(
                f"Spark's offset log has {len(self.lines)} sources, the run's graph "
                f"{len(sources)} ({', '.join(sources)})",
                code="DAMAGED",
                remedy="the run's folder was changed outside Headgate; start from nothing with "
                "--fresh",
            )
        return dict(zip(sources, self.lines, strict=True))

    def reordered(self, old: Sequence[str], new: Sequence[str]) -> OffsetEntry:
        """The entry for the same sources in another order; a source that is new starts afresh."""
        lines = self.by_name(old)
        return OffsetEntry(self.metadata, tuple(lines.get(name, "-") for name in new))

    def with_lines(self, sources: Sequence[str], lines: Mapping[str, str]) -> OffsetEntry:
        """The entry with other lines for some sources."""
        pairs = zip(sources, self.lines, strict=True)
        return OffsetEntry(self.metadata, tuple(lines.get(name, line) for name, line in pairs))

    def to_text(self) -> str:
        """The entry as Spark's offset log version 1 has it."""
        metadata = json.dumps(self.metadata, separators=(",", ":"))
        return "\n".join(["v1", metadata, *self.lines])


def parse_entry(text: str, where: str) -> OffsetEntry:
    """Read an entry of Spark's offset log version 1."""
    lines = text.rstrip("\n").split("\n")
    if lines[0] != "v1" or len(lines) < 2:
        raise HeadgateError(
            f"{where} is not an offset log entry of version 1 (it starts with {lines[0][:20]!r})",
            code="DAMAGED",
            remedy="the run was not written by Headgate, or its folder is damaged",
        )
    return OffsetEntry(json.loads(lines[1]), tuple(lines[2:]))


def read_entry(run: RunHome, batch: int) -> OffsetEntry | None:
    """The offset log's entry of a batch, if it is still there."""
    path = f"{run.spark_path}/offsets/{batch}"
    text = run.files.read_text(path)
    return parse_entry(text, run.files.location(path)) if text is not None else None


def planned_batches(run: RunHome) -> list[int]:
    """Batches whose offsets are written: they will be run, or were."""
    return _numbers(run.files.list(f"{run.spark_path}/offsets"))


def committed_batches(run: RunHome) -> list[int]:
    """Batches that Spark has committed and not purged yet."""
    return _numbers(run.files.list(f"{run.spark_path}/commits"))


def latest_committed(run: RunHome) -> int | None:
    """The newest batch that is in for good, and so where a start goes on."""
    batches = set(committed_batches(run)) & set(planned_batches(run))
    return max(batches, default=None)


def pending_batch(run: RunHome) -> int | None:
    """The batch that was planned but not committed: the next start runs it again."""
    planned = planned_batches(run)
    committed = committed_batches(run)
    if not planned or (committed and committed[-1] >= planned[-1]):
        return None
    return planned[-1]


def _numbers(names: Sequence[str]) -> list[int]:
    return sorted(int(name) for name in names if name.isdigit())
