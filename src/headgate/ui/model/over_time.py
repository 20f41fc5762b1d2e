"""Metrics of a job over time: rates, lags, latencies, batch times and sizes in steps of a range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from headgate.home.layout import JobHome
from headgate.home.points import counted
from headgate.home.read.moments import Moment, moments, sinks_of
from headgate.home.read.over_time import Read, read_series
from headgate.home.read.series import LASTS, TimeRange
from headgate.home.times import from_ms, now, to_ms
from headgate.runtime.status import job_status
from headgate.ui.model.jobs import LIVE
from headgate.ui.model.view import FlinkTime, Seconds, View, json_name

Numbers = tuple[float | None, ...]
LATEST_MS = 4_102_444_800_000
"""The year 2100: times in a range are before it."""


@dataclass(frozen=True)
class SinkOverTime(View):
    """Latencies of a sink's records: a number for each timestamp."""

    sink: str
    p50_ms: Numbers
    p99_ms: Numbers


@dataclass(frozen=True)
class MarkView(View):
    """Events of a step of time, by kind."""

    timestamp: FlinkTime
    events: Mapping[str, int]
    """started, restarted, failed, crashed, finished, stopped, cancelled or reset; how many."""


@dataclass(frozen=True)
class OverTimeView(View):
    """Lists with a number for each timestamp; null where no batch ended in the step."""

    job: str
    start: FlinkTime | None
    end: FlinkTime | None
    step: Seconds
    """What each number covers."""
    live: bool
    """Whether there will be more."""
    timestamps: tuple[FlinkTime, ...]
    """When each step begins."""
    running: tuple[bool, ...]
    """Whether the job's query ran in the step; if not, nothing is known of it."""
    records_in_per_second: Numbers = field(metadata=json_name("numRecordsInPerSecond"))
    records_out_per_second: Numbers = field(metadata=json_name("numRecordsOutPerSecond"))
    busy: Numbers = field(metadata=json_name("busyTimeMsPerSecond"))
    pending: Numbers = field(metadata=json_name("pendingRecords"))
    """Records that were there and not in the batch, on average."""
    pending_max: Numbers
    watermark_lag_ms: Numbers = field(metadata=json_name("watermarkLag"))
    """How far the job's watermark was behind the end of the batch, on average."""
    watermark_lag_max: Numbers
    batch_ms: Numbers
    """How long batches took, on average."""
    batch_ms_max: Numbers
    state_bytes: Numbers
    """After the last batch of the step, as is the next."""
    state_rows: Numbers
    latency: tuple[SinkOverTime, ...]
    marks: tuple[MarkView, ...]


def time_range(name: str, start: int | None, end: int | None) -> TimeRange:
    """A range by its name, or between two times in milliseconds, one of which may be missing.

    >>> time_range("1h", 5000, 9000)
    TimeRange(last=None, since=5.0, until=9.0)
    """
    since, until = (None if ms is None else ms / 1000 for ms in (start, end))
    return TimeRange(LASTS[name] if since is None else None, since, until)


def over_time_view(
    job: JobHome, within: TimeRange, *, most: int, read: Read | None = None
) -> OverTimeView:
    """Read a range of a job's metrics."""
    status = job_status(job)
    live = status.state in LIVE
    series = read_series(job, within, most=most, now=_second_now() if live else None, read=read)
    found = moments(series)
    if status.state == "CRASHED" and series.open and series.known is not None:
        found = _crashed(found, series.known)
    return OverTimeView(
        job=job.name,
        start=from_ms(series.begin * 1000) if series.known is not None else None,
        end=from_ms(round(series.end * 1000)) if series.known is not None else None,
        step=timedelta(seconds=series.step),
        live=live and within.follows,
        timestamps=tuple(_time(moment) for moment in found),
        running=tuple(moment.running for moment in found),
        records_in_per_second=tuple(_short(m.records_in_per_second) for m in found),
        records_out_per_second=tuple(_short(m.records_out_per_second) for m in found),
        busy=tuple(_short(None if m.busy is None else 1000 * m.busy) for m in found),
        pending=tuple(_short(m.mean("behind")) for m in found),
        pending_max=tuple(m.most("behind") for m in found),
        watermark_lag_ms=tuple(_short(m.mean("watermark_lag_ms")) for m in found),
        watermark_lag_max=tuple(m.most("watermark_lag_ms") for m in found),
        batch_ms=tuple(_short(m.mean("duration_ms")) for m in found),
        batch_ms_max=tuple(m.most("duration_ms") for m in found),
        state_bytes=tuple(m.last("state_bytes") for m in found),
        state_rows=tuple(m.last("state_rows") for m in found),
        latency=tuple(_sink(sink, found) for sink in sinks_of(found)),
        marks=tuple(MarkView(_time(m), m.marks) for m in found if m.marks),
    )


def _sink(sink: str, found: Sequence[Moment]) -> SinkOverTime:
    latencies = [moment.latency.get(sink) for moment in found]
    return SinkOverTime(
        sink,
        tuple(one.p50_ms if one else None for one in latencies),
        tuple(one.p99_ms if one else None for one in latencies),
    )


def _crashed(found: list[Moment], at: float) -> list[Moment]:
    """With a mark where the driver was last seen; the next driver writes it down."""
    newest = max((n for n, moment in enumerate(found) if moment.at <= at), default=None)
    if newest is not None:
        marks = counted(found[newest].marks, {"crashed": 1})
        found[newest] = replace(found[newest], marks=marks)
    return found


def _time(moment: Moment) -> datetime:
    at = from_ms(moment.at * 1000)
    assert at is not None
    return at


def _short(number: float | None) -> float | None:
    """Four digits are enough for a picture, and half as many bytes."""
    return None if number is None else float(f"{number:.4g}") if number < 1000 else round(number)


def _second_now() -> float:
    ms = to_ms(now())
    assert ms is not None
    return ms / 1000
