"""Metrics of a job over time as files: points in a few widths, each file with a fixed range.

A file is named by the width of its points and the time at which its range begins, so which files a
range of time is in follows from a listing. Points of a second are written as they come; those of
the next width are made of them, and so on. A file says up to which time it is whole (`until`), so
no second is counted twice, whatever was cut short.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from headgate.home.files import Files, read_json
from headgate.home.points import GAUGES, Gauge, Point, Sinks
from headgate.home.times import from_iso, from_ms, to_iso, to_ms
from headgate.home.versions import VERSION, check_version

_NAME = re.compile(r"(\d+)s-(\d{10})\.json")
_COUNTS = ("up_ms", "batches", "records_in", "records_out")


@dataclass(frozen=True)
class Width:
    """Points of one width."""

    seconds: int
    """What a point covers."""
    in_file: int
    """How many points a file has room for."""
    kept: timedelta
    """How old points become."""

    @property
    def span(self) -> int:
        """What a file covers, in seconds."""
        return self.seconds * self.in_file

    def start_of(self, second: float) -> int:
        """Where the file begins that a time is in.

        >>> WIDTHS[0].start_of(1000)
        900
        """
        return int(second // self.span) * self.span


WIDTHS = (
    Width(1, 300, timedelta(minutes=90)),
    Width(10, 360, timedelta(hours=26)),
    Width(60, 720, timedelta(days=8)),
    Width(600, 1008, timedelta(days=91)),
)
"""From fine to coarse. A file of one width fits into one of the next, and its points too."""


@dataclass
class Segment:
    """One file: the points of a fixed range of time."""

    width: Width
    start: int
    """In seconds since 1970, as all times here."""
    until: float
    """The points hold all that was before it, as far as the file reaches."""
    points: dict[int, Point] = field(default_factory=dict)
    """By the time at which they begin."""
    run: str | None = None
    checkpoint: int | None = None
    """The newest that is in its points, of files with the least width."""
    open: bool = False
    """Whether a driver was still at work."""

    @property
    def end(self) -> int:
        """Where its range ends."""
        return self.start + self.width.span

    @property
    def whole(self) -> bool:
        """Whether nothing more will come."""
        return self.until >= self.end

    def add(self, second: float, point: Point) -> None:
        """Add what was at a time within its range."""
        at = int(second // self.width.seconds) * self.width.seconds
        known = self.points.get(at)
        self.points[at] = point if known is None else known.plus(point)

    def to_text(self) -> str:
        """As it stands in its file: a list for each number, without blanks."""
        groups: dict[Sinks, int] = {}
        order = sorted(self.points)
        points = [self.points[at] for at in order]
        latency = [_packed(point, groups) for point in points]
        data: dict[str, Any] = {
            "version": VERSION,
            "seconds": self.width.seconds,
            "start": to_iso(from_ms(self.start * 1000)),
            "until": to_iso(from_ms(round(self.until * 1000))),
            "run": self.run,
            "checkpoint": self.checkpoint,
            "open": self.open,
            "sinks": [list(sinks) for sinks in groups],
            "at": [(at - self.start) // self.width.seconds for at in order],
            **{name: [getattr(point, name) for point in points] for name in _COUNTS},
            **{name: [_numbers(point.gauges.get(name)) for point in points] for name in GAUGES},
            "latency": latency,
            "marks": {str(n): dict(p.marks) for n, p in enumerate(points) if p.marks},
        }
        return json.dumps(data, ensure_ascii=False, separators=(",", ":")) + "\n"

    @staticmethod
    def from_json(data: Mapping[str, Any], width: Width) -> Segment:
        """From what its file holds."""
        check_version(data, "a file of metrics")
        start = _second(data["start"])
        groups = [tuple(map(str, sinks)) for sinks in data["sinks"]]
        marks = data["marks"]
        gauges = {name: data[name] for name in GAUGES if name in data}
        points = {}
        for n, at in enumerate(data["at"]):
            points[int(start) + at * width.seconds] = Point(
                **{name: data[name][n] for name in _COUNTS},
                gauges={name: _gauge(of[n]) for name, of in gauges.items() if of[n]},
                latency={groups[int(key)]: _unpacked(of) for key, of in data["latency"][n].items()},
                marks=marks.get(str(n)) or {},
            )
        return Segment(
            width, int(start), _second(data["until"]), points,
            data.get("run"), data.get("checkpoint"), bool(data.get("open")),
        )  # fmt: skip


class MetricFiles:
    """The files of one job; each method says what it reads."""

    def __init__(self, files: Files, job_path: str) -> None:
        self._files = files
        self._folder = f"{job_path}/metrics"

    def starts(self) -> dict[Width, list[int]]:
        """Where the files of each width begin, in order; one listing."""
        found: dict[Width, list[int]] = {width: [] for width in WIDTHS}
        by_seconds = {width.seconds: width for width in WIDTHS}
        for name in self._files.list(self._folder):
            match = _NAME.fullmatch(name)
            width = by_seconds.get(int(match[1])) if match else None
            if match and width:
                found[width].append(int(match[2]))
        return {width: sorted(of) for width, of in found.items()}

    def read(self, width: Width, start: int) -> Segment | None:
        """One file."""
        data = read_json(self._files, self.path(width, start))
        return Segment.from_json(data, width) if data is not None else None

    def write(self, segment: Segment) -> None:
        """Write one file, whole."""
        self._files.write_text(self.path(segment.width, segment.start), segment.to_text())

    def drop_older(self, newest: int) -> None:
        """Delete files of points that are older than they become."""
        for width, starts in self.starts().items():
            for start in starts:
                if start + width.span < newest - width.kept.total_seconds():
                    self._files.delete(self.path(width, start))

    def path(self, width: Width, start: int) -> str:
        """Where a file is.

        >>> from headgate.home.files import open_files
        >>> MetricFiles(open_files("memory://metric_files_doc"), "jobs/store").path(WIDTHS[1], 3600)
        'jobs/store/metrics/10s-0000003600.json'
        """
        return f"{self._folder}/{width.seconds}s-{start:010d}.json"


def _numbers(gauge: Gauge | None) -> list[int]:
    """A gauge in short: nothing, one number, or all."""
    if gauge is None:
        return []
    if gauge.count == 1:
        return [gauge.last]
    return [gauge.count, gauge.total, gauge.least, gauge.most, gauge.last]


def _gauge(numbers: list[int]) -> Gauge:
    return Gauge.of(numbers[0]) if len(numbers) == 1 else Gauge(*numbers)


def _packed(point: Point, groups: dict[Sinks, int]) -> dict[str, list[int]]:
    """Histograms by the number of their sinks: the first bucket, then counts with no gap."""
    found = {}
    for sinks, counts in point.latency.items():
        if counts:
            first, last = min(counts), max(counts)
            dense = [counts.get(at, 0) for at in range(first, last + 1)]
            found[str(groups.setdefault(sinks, len(groups)))] = [first, *dense]
    return found


def _unpacked(numbers: list[int]) -> dict[int, int]:
    first, *counts = numbers
    return {first + at: count for at, count in enumerate(counts) if count}


def _second(text: str) -> float:
    ms = to_ms(from_iso(text))
    assert ms is not None
    return ms / 1000
