"""Running aggregates in plain Python, given the rows and the watermark of each batch.

All rows of a key are kept, and each table is computed anew from them: what changes is what differs
between the tables before and after a batch.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

NEVER = float("-inf")
Result = dict[str, Any]
Table = dict[str | None, Result]
Changes = dict[str | None, Result | None]


@dataclass(frozen=True)
class Row:
    """A row of a stream; times are in seconds."""

    key: str | None
    value: int | None
    tag: str | None
    time: int | None


def result(rows: Sequence[Row]) -> Result:
    """The aggregates of a key's rows, by the names that the job gives them."""
    values = [row.value for row in rows if row.value is not None]
    return {
        "total": sum(values) if values else None,
        "n": len(rows),
        "low": min(values, default=None),
        "high": max(values, default=None),
        "tags": len({row.tag for row in rows if row.tag is not None}),
        "once": sum(set(values)) if values else None,
        "set": sorted({row.tag for row in rows if row.tag is not None}),
    }


@dataclass
class AggregateTruth:
    """One aggregate: its rows by key, and until when each key is kept, if that is known."""

    having: Callable[[Result], bool]
    ttl: int | None = None
    rows: dict[str | None, list[Row]] = field(default_factory=dict)
    until: dict[str | None, float | None] = field(default_factory=dict)
    forgotten: int = 0

    def table(self) -> Table:
        """The results that are there."""
        found = {key: result(rows) for key, rows in self.rows.items()}
        return {key: made for key, made in found.items() if self.having(made)}

    def batch(self, came: Sequence[Row], mark: float) -> Changes:
        """What a batch changes: a new result, or None for one that is not there any more."""
        before = self.table()
        if self.ttl is not None and mark != NEVER:
            self._forget(self.ttl, mark)
        groups: dict[str | None, list[Row]] = defaultdict(list)
        for row in came:
            groups[row.key].append(row)
        for key, group in groups.items():
            known = [u for u in (self.until.get(key), self._until(group, mark)) if u is not None]
            if not known or max(known) > mark:
                self.rows.setdefault(key, []).extend(group)
                self.until[key] = max(known, default=None)
        after = self.table()
        changed: Changes = {k: row for k, row in after.items() if before.get(k) != row}
        return changed | dict.fromkeys(before.keys() - after.keys())

    def _forget(self, ttl: int, mark: float) -> None:
        for key, until in list(self.until.items()):
            if until is None:
                self.until[key] = mark + ttl
            elif until <= mark:
                del self.rows[key], self.until[key]
                self.forgotten += 1

    def _until(self, group: Sequence[Row], mark: float) -> float | None:
        if self.ttl is None:
            return None
        times = [row.time for row in group if row.time is not None]
        if not times and mark == NEVER:
            return None
        # a row without a time is taken for one of the watermark's
        return max(times, default=mark) + self.ttl
