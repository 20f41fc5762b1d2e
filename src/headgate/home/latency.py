"""How long records take from a source to the sinks: what the kernel counts of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_SINGLE, _PARTS = 16, 8


@dataclass(frozen=True)
class LatencyRecord:
    """Of one batch: how old the records of each source were when it began, and how long it took.

    A record's latency is its age then, by its own timestamp, and `after_ms`: the time from the
    batch's begin until all sinks had committed it.
    """

    after_ms: int
    ages: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    """By source and bucket of the kernel's histogram (`Ages.scala`): how many records."""

    def of(self, source: str) -> list[tuple[int, int]]:
        """Latencies of a source's records in milliseconds, and how many had each.

        >>> LatencyRecord(40, {"orders": {3: 2}}).of("orders")
        [(43, 2)]
        """
        return [(longest(at) + self.after_ms, n) for at, n in self.ages.get(source, {}).items()]

    def all(self) -> list[tuple[int, int]]:
        """Those of all sources and tables."""
        return [pair for source in self.ages for pair in self.of(source)]

    def to_json(self) -> dict[str, Any]:
        """As it stands in a checkpoint's record, and in the kernel's journal."""
        ages = {name: {str(at): n for at, n in of.items()} for name, of in self.ages.items()}
        return {"after_ms": self.after_ms, "ages": ages}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> LatencyRecord:
        """From what stands there."""
        ages = {
            str(name): {int(at): int(n) for at, n in of.items()}
            for name, of in data["ages"].items()
        }
        return LatencyRecord(int(data["after_ms"]), ages)


def longest(bucket: int) -> int:
    """The greatest age, in milliseconds, that is in a bucket.

    >>> longest(3), longest(16), longest(23), longest(24)
    (3, 17, 31, 35)
    """
    if bucket < _SINGLE:
        return bucket
    power, part = divmod(bucket - _SINGLE, _PARTS)
    width = 2 << power
    return (_PARTS + part) * width + width - 1


def bucket_of(ms: int) -> int:
    """The bucket of an age or a latency, as the kernel counts it.

    >>> bucket_of(3), bucket_of(17), bucket_of(24), bucket_of(longest(200))
    (3, 16, 20, 200)
    """
    if ms < _SINGLE:
        return max(ms, 0)
    shift = ms.bit_length() - _PARTS.bit_length()
    return _SINGLE + (shift - 1) * _PARTS + (ms >> shift) - _PARTS


def quantile(latencies: Iterable[tuple[int, int]], share: float) -> int | None:
    """The latency that so much of the records does not exceed, of (milliseconds, records).

    >>> quantile([(10, 98), (500, 2)], 0.5), quantile([(10, 98), (500, 2)], 0.99)
    (10, 500)
    """
    ordered = sorted(latencies)
    wanted = share * sum(count for _, count in ordered)
    seen = 0
    for latency, count in ordered:
        seen += count
        if seen >= wanted:
            return latency
    return None
