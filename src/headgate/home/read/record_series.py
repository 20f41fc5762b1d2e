"""The series of a job without metrics, which an older Headgate drives: from its newest records."""

from __future__ import annotations

from itertools import pairwise

from headgate.home.layout import JobHome, RunHome
from headgate.home.points import Point
from headgate.home.read.batch_points import BatchPoints
from headgate.home.read.series import MARKS, Series, TimeRange, step_for
from headgate.home.times import to_ms

_RECORDS = 350
"""As many as are files."""
_EVENTS = 100


def series_of_records(job: JobHome, within: TimeRange, *, most: int, now: float | None) -> Series:
    """As `read_series`, of the newest records of the job's run; reads 450 files at most."""
    run = job.current() or next(reversed(job.runs()), None)
    batches = _batches(run) if run else []
    if run is None or not batches:
        return Series(0, 0, 1, {}, None, False)
    known = batches[-1][0] + 1
    begin, end = within.bounds(known if now is None else now, lambda: batches[0][0])
    step = step_for(begin, end, most)
    first = int(begin // step * step)
    found: dict[int, Point] = {}

    def add(second: float, point: Point) -> None:
        if first <= second < end:
            at = int(second // step * step)
            found[at] = found[at].plus(point) if at in found else point

    marks = [mark for mark in _marks(run) if mark[0] >= batches[0][0]]
    for second, point in sorted([*batches, *marks], key=lambda pair: pair[0]):
        add(second, point)
    breaks = [second for second, _ in marks]
    for (one, _), (other, _) in pairwise(batches):
        # it ran from one batch to the next, unless something has happened between them
        if not any(one < at <= other for at in breaks):
            low, high = max(one // step * step, first), min(other, end)
            for at in range(int(low), int(high) + 1, step):
                add(at, Point(up_ms=int(1000 * (min(at + step, other) - max(at, one)))))
    return Series(first, end, step, dict(sorted(found.items())), known, False)


def _batches(run: RunHome) -> list[tuple[float, Point]]:
    """Each with the second of its end, oldest first."""
    points = BatchPoints(run.graph()["steps"])
    found = []
    for record in run.checkpoint_log.last(_RECORDS):
        ms = to_ms(record.completed_at)
        if ms is not None and record.type != "forked":
            found.append((ms / 1000, points.of(record)))
    return sorted(found, key=lambda pair: pair[0])


def _marks(run: RunHome) -> list[tuple[float, Point]]:
    found = []
    for event in run.events(limit=_EVENTS):
        ms = to_ms(event.at)
        if event.kind in MARKS and ms is not None:
            found.append((ms / 1000, Point(marks={event.kind: 1})))
    return found
