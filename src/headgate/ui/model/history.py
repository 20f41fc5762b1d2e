"""What checkpoints of a run were like, one short row each, read once and remembered."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from headgate.home.layout import RunHome
from headgate.home.model import CheckpointRecord
from headgate.runtime.live import behind, source_rows

_MOST_RUNS = 64
_MOST_ROWS = 20_000


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
        )


class History:
    """Rows of checkpoints of runs; a record never changes, so each is read once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[tuple[str, str], dict[int, CheckpointRow]] = OrderedDict()

    def rows(self, run: RunHome, *, limit: int | None = None) -> list[CheckpointRow]:
        """A run's checkpoints, oldest first; the last `limit` of them."""
        ids = run.checkpoint_ids()
        wanted = ids if limit is None else ids[-limit:]
        known = self._known(run)
        found = []
        for id in wanted:
            row = known.get(id)
            if row is None:
                record = run.record_at(id)
                if record is None:
                    continue  # deleted since it was listed
                row = CheckpointRow.of(record)
                with self._lock:
                    known[id] = row
            found.append(row)
        return found

    def _known(self, run: RunHome) -> dict[int, CheckpointRow]:
        # by the run's own id, too: another home may have been put where this one was
        key = (run.path, run.read().uid)
        with self._lock:
            known = self._runs.setdefault(key, {})
            self._runs.move_to_end(key)
            total = sum(map(len, self._runs.values()))
            while len(self._runs) > 1 and (len(self._runs) > _MOST_RUNS or total > _MOST_ROWS):
                total -= len(self._runs.popitem(last=False)[1])
            return known
