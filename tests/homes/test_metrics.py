"""Metrics over time: thinned out, cut short and read, against a plain computation."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from headgate.home.latency import bucket_of
from headgate.home.layout import Home, JobHome
from headgate.home.metric_files import WIDTHS, MetricFiles, Segment, Width
from headgate.home.metric_log import MetricLog
from headgate.home.points import Gauge, Point
from headgate.home.read.moments import moments
from headgate.home.read.over_time import read_series
from headgate.home.read.series import TimeRange

HOUR, DAY, WEEK = 3600, 86_400, 604_800
NOON = 1_767_268_800
SINKS = ("even", "odd")


def job_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> JobHome:
    monkeypatch.setattr("os.fsync", lambda handle: None)
    return Home(folder).job("store")


def log_of(job: JobHome) -> MetricLog:
    return MetricLog(MetricFiles(job.files, job.path))


def batch(draw: random.Random) -> Point:
    """Some batch."""
    latency = Counter(bucket_of(draw.randrange(40, 4000)) for _ in range(draw.randrange(9)))
    return Point(
        batches=1,
        records_in=draw.randrange(1000),
        records_out=draw.randrange(1000),
        gauges={
            "duration_ms": Gauge.of(draw.randrange(20, 900)),
            "behind": Gauge.of(draw.randrange(50)),
        },
        latency={SINKS: dict(latency)} if latency else {},
    )


def plain(
    batches: list[tuple[float, Point]], begin: float, end: float, step: int
) -> dict[int, Point]:
    """The points of a range, from the batches themselves."""
    parts: dict[int, list[Point]] = {}
    for second, point in batches:
        if begin <= second < end:
            parts.setdefault(int(second // step * step), []).append(point)
    return {at: together(part) for at, part in parts.items()}


def together(part: list[Point]) -> Point:
    numbers = {name: [p.gauges[name].last for p in part] for name in ("duration_ms", "behind")}
    latency = sum((Counter(p.latency.get(SINKS, {})) for p in part), Counter[int]())
    return Point(
        batches=len(part),
        records_in=sum(p.records_in for p in part),
        records_out=sum(p.records_out for p in part),
        gauges={
            name: Gauge(len(of), sum(of), min(of), max(of), of[-1]) for name, of in numbers.items()
        },
        latency={SINKS: dict(latency)} if latency else {},
    )


@pytest.mark.parametrize("seed", range(3))
def test_any_range_is_what_a_plain_computation_says_after_any_crash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """A job runs for hours and stops for days; its logs are cut short without a word."""
    draw = random.Random(seed)
    job = job_in(tmp_path, monkeypatch)
    log, now = log_of(job), float(NOON)
    kept: list[tuple[float, Point]] = []
    lost: list[tuple[float, Point]] = []
    for _ in range(500):
        now += draw.choice([0.05, 1, 7, 40, 300] * 40 + [HOUR, 9 * HOUR, 2 * DAY])
        lost.append((now, batch(draw)))
        log.add(*lost[-1])
        if draw.random() < 0.3:
            log.flush()
            kept, lost = kept + lost, []
        elif draw.random() < 0.05:
            log, lost = log_of(job), []  # what was not flushed is gone, and nothing else
    log.flush()
    kept += lost
    for _ in range(40):
        long = draw.choice([300, HOUR, 6 * HOUR, DAY, WEEK, 40 * DAY])
        until = draw.uniform(NOON, now + 2)
        series = read_series(job, TimeRange(since=until - long, until=until), most=200)
        # a point of a file is never cut: the range ends where the last one does
        width = max(width.seconds for width in WIDTHS if width.seconds <= series.step)
        end = -(-until // width) * width
        assert series.points == plain(kept, series.begin, end, series.step), (long, until)
        assert len(series.points) <= 202 or series.step == WIDTHS[-1].seconds
    everything = read_series(job, TimeRange(), most=10**6)
    assert sum(point.batches for point in everything.points.values()) == len(kept)


class Reads:
    """Counts the files that are read."""

    def __init__(self, job: JobHome) -> None:
        self._files = MetricFiles(job.files, job.path)
        self.count = 0

    def __call__(self, width: Width, start: int) -> Segment | None:
        self.count += 1
        return self._files.read(width, start)


def test_a_week_of_batches_every_50_ms_is_a_few_files_and_read_from_fewer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """13 million batches; those of long ago come a minute at a time, so that the test is quick."""
    draw, job = random.Random(1), job_in(tmp_path, monkeypatch)
    log, end = log_of(job), NOON + 10 * WEEK
    points = {span: [_many(draw, 20 * span) for _ in range(20)] for span in (1, 10, 60)}
    second, sent = end - 8 * DAY, 0
    while second < end:
        span = 1 if second >= end - 2 * HOUR else 10 if second >= end - 27 * HOUR else 60
        log.add(second, draw.choice(points[span]))
        sent += 20 * span
        second += span
        if second % HOUR == 0:
            log.flush()
    log.flush()
    files = [path for path in tmp_path.rglob("*.json") if path.parent.name == "metrics"]
    assert len(files) <= 20 + 28 + 18 + 15
    assert sum(path.stat().st_size for path in files) < 10_000_000
    assert max(path.stat().st_size for path in files) < 500_000
    for long in (900, HOUR, 6 * HOUR, DAY, WEEK, None):
        reads = Reads(job)
        series = read_series(job, TimeRange(last=long), most=720, now=end, read=reads)
        assert reads.count <= 24, long
        assert 300 <= len(series.points) <= 900, long
        batches = sum(point.batches for point in series.points.values())
        assert batches == (20 * (end - series.begin) if long else sent), long
    # what is shown is what was sent
    shown = moments(read_series(job, TimeRange(last=HOUR), most=720, now=end))
    assert {moment.records_in_per_second for moment in shown[:-1]} == {2000.0}


def _many(draw: random.Random, batches: int) -> Point:
    """Batches of 100 records each that ended in as many times 50 ms."""
    counts = {bucket: draw.randrange(1, 9 * batches) for bucket in range(20, 60)}
    gauge = Gauge(batches, batches * 40, 20, 90, 41)
    return Point(
        up_ms=batches * 50,
        batches=batches,
        records_in=batches * 100,
        records_out=batches * 100,
        gauges=dict.fromkeys(("duration_ms", "behind", "state_rows", "state_bytes"), gauge),
        latency={SINKS: counts},
    )
