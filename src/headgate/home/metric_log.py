"""MetricLog: adds up what a job does over time, and thins it out with age.

1. What comes is added to the points of a second of the newest file, in memory.
2. When time has left that file's range, its points are added to those of the next width, which then
   say up to which time they are whole. A file of the next width is closed in the same way.
3. `flush` writes the files that have changed, and deletes those whose points are too old: their
   seconds are still in a coarser file.

Each file is written whole and says how far it is whole, so a new log goes on wherever the last one
was cut short, and counts nothing twice. What was not flushed is lost, and no more.
"""

from __future__ import annotations

from headgate.home.metric_files import WIDTHS, MetricFiles, Segment
from headgate.home.points import Point

_TOP = len(WIDTHS) - 1
_MOST_UNWRITTEN = 40
"""Files that wait in memory for a disk that is full; of more, the oldest are given up."""


class MetricLog:
    """The one writer of a job's metrics; its caller holds the job's lease.

    >>> from headgate.home.files import open_files
    >>> log = MetricLog(MetricFiles(open_files("memory://metric_log_doc"), "jobs/store"))
    >>> log.add(1_700_000_000.5, Point(batches=1))
    >>> log.flush()
    """

    def __init__(self, files: MetricFiles) -> None:
        self._files = files
        self._levels: list[Segment | None] = [None] * len(WIDTHS)
        self._unwritten: dict[tuple[int, int], Segment] = {}
        self._too_old: int | None = None
        self._resume()

    @property
    def newest(self) -> Segment | None:
        """The file to which points of a second are added."""
        return self._levels[0]

    def add(self, second: float, point: Point) -> None:
        """Add what was at a time; a clock that was set back adds to the oldest second it may."""
        segment = self._segment(second)
        segment.add(max(second, segment.start), point)
        segment.until = max(segment.until, second)
        self._change(segment)

    def note(self, *, open: bool, run: str | None = None, checkpoint: int | None = None) -> None:
        """Remember whether a driver is at work, and the newest checkpoint that is in the points."""
        segment = self.newest
        if segment is not None:
            segment.open = open
            if run is not None:
                segment.run, segment.checkpoint = run, checkpoint
            self._change(segment)

    def flush(self) -> None:
        """Write what is new; what cannot be written is tried again by the next flush."""
        for key, segment in list(self._unwritten.items()):
            self._files.write(segment)
            del self._unwritten[key]
        if self._too_old is not None:
            self._files.drop_older(self._too_old)
            self._too_old = None

    def _segment(self, second: float) -> Segment:
        now = self._levels[0]
        if now is not None and second < now.end:
            return now
        second = max(second, self._whole_until(1))
        fresh = Segment(WIDTHS[0], WIDTHS[0].start_of(second), second)
        if now is not None:
            fresh.run, fresh.checkpoint, fresh.open = now.run, now.checkpoint, now.open
            for level in range(_TOP):
                over = self._levels[level]
                if over is not None and over.end <= fresh.start:
                    self._close(level, over)
            self._too_old = fresh.end
        self._levels[0] = fresh
        return fresh

    def _close(self, level: int, segment: Segment) -> None:
        """Add a file's points to the next width, unless that has been done."""
        if self._whole_until(level + 1) >= segment.end:
            return
        above = self._above(level + 1, segment.start)
        for at in sorted(segment.points):
            above.add(at, segment.points[at])
        above.until = segment.end
        self._change(above)

    def _above(self, level: int, second: int) -> Segment:
        """The file of a width into which a time goes; the one before it is closed."""
        start = WIDTHS[level].start_of(second)
        known = self._levels[level]
        if known is not None and known.start == start:
            return known
        if known is not None and level < _TOP:
            self._close(level, known)
        made = Segment(WIDTHS[level], start, start)
        self._levels[level] = made
        return made

    def _whole_until(self, level: int) -> float:
        segment = self._levels[level]
        return segment.until if segment is not None else 0.0

    def _change(self, segment: Segment) -> None:
        self._unwritten[segment.width.seconds, segment.start] = segment
        if len(self._unwritten) > _MOST_UNWRITTEN:
            del self._unwritten[next(iter(self._unwritten))]

    def _resume(self) -> None:
        """Read the newest file of each width, and close those that a crash has left open."""
        starts = self._files.starts()
        for level, width in enumerate(WIDTHS):
            if starts[width]:
                self._levels[level] = self._files.read(width, starts[width][-1])
        # the coarse first: what is closed below them then meets a file that is up to date
        for level in reversed(range(_TOP)):
            width = WIDTHS[level]
            for start in starts[width][:-1]:
                if start + width.span > self._whole_until(level + 1):
                    segment = self._files.read(width, start)
                    if segment is not None:
                        self._close(level, segment)
