"""A job over time: the points of a range in steps that suit it, read from few files."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping

from headgate.home.layout import JobHome
from headgate.home.metric_files import WIDTHS, MetricFiles, Segment, Width
from headgate.home.points import Point
from headgate.home.read.record_series import series_of_records
from headgate.home.read.series import Series, TimeRange, step_for

Read = Callable[[Width, int], Segment | None]


def read_series(
    job: JobHome,
    within: TimeRange,
    *,
    most: int,
    now: float | None = None,
    read: Read | None = None,
) -> Series:
    """The points of a range, `most` of them or a few more; reads some 20 files at most.

    A range that has no end ends `now`, or with the newest that is known. `read` reads one file.
    """
    files = MetricFiles(job.files, job.path)
    starts = files.starts()
    get = read or files.read
    if not starts[WIDTHS[0]]:
        return series_of_records(job, within, most=most, now=now)
    newest = get(WIDTHS[0], starts[WIDTHS[0]][-1])
    known = newest.until if newest else float(starts[WIDTHS[0]][-1])
    begin, end = within.bounds(known + 1 if now is None else now, lambda: _first(starts, get))
    step, level = _resolution(begin, end, known, most)
    first = int(begin // step * step)
    low: float = first
    found: dict[int, Point] = {}
    for width in reversed(WIDTHS[: level + 1]):
        if starts[width] and low < end:
            for start in starts[width]:
                if start + width.span > low and start < end:
                    _take(found, get(width, start), low, end, step)
            low = max(low, _until(width, starts[width][-1], end, get))
    points = dict(sorted(found.items()))
    return Series(first, end, step, points, known, newest.open if newest else False)


def _until(width: Width, newest: int, end: float, get: Read) -> float:
    """Up to where the files of a width are whole: what is later is in the next finer ones."""
    if newest >= end:
        return end
    segment = get(width, newest)
    return segment.until if segment is not None else newest


def _take(
    found: dict[int, Point], segment: Segment | None, low: float, end: float, step: int
) -> None:
    for second in sorted(segment.points) if segment else ():
        if low <= second < end:
            assert segment is not None
            at = second // step * step
            point = segment.points[second]
            found[at] = found[at].plus(point) if at in found else point


def _resolution(begin: float, end: float, known: float, most: int) -> tuple[int, int]:
    """The seconds of a point, and the coarsest width that is fine enough and old enough."""
    step = step_for(begin, end, most)
    level = max(n for n, width in enumerate(WIDTHS) if width.seconds <= step)
    # files are dropped when a later one begins, which is before its first second is known
    oldest = begin - step - WIDTHS[0].span
    while level + 1 < len(WIDTHS) and oldest < known - WIDTHS[level].kept.total_seconds():
        level += 1
    return max(step, WIDTHS[level].seconds), level


def _first(starts: dict[Width, list[int]], get: Read) -> float:
    """When the oldest point begins: it is in the coarsest file that is there."""
    for width in reversed(WIDTHS):
        segment = get(width, starts[width][0]) if starts[width] else None
        if segment is not None and segment.points:
            return float(min(segment.points))
    return 0.0


def caching(job: JobHome, cache: MutableMapping[str, Segment]) -> Read:
    """Reads files of a job; one that is whole is read once."""
    files = MetricFiles(job.files, job.path)

    def read(width: Width, start: int) -> Segment | None:
        path = files.path(width, start)
        found = cache.get(path) or files.read(width, start)
        if found is not None and found.whole:
            cache[path] = found
        return found

    return read
