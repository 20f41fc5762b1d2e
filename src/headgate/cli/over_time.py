"""``headgate metrics --over``: a job's numbers in a range of time, a line for each step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any

from headgate.base.durations import format_duration
from headgate.cli.tables import DASH, local_time, number, size, table
from headgate.home.layout import JobHome
from headgate.home.read.moments import Moment, moments, sinks_of
from headgate.home.read.over_time import read_series
from headgate.home.read.series import TimeRange
from headgate.home.times import from_ms, to_iso

_LINES = 30


class Over(StrEnum):
    """How long a time is shown."""

    m15 = "15m"
    h1 = "1h"
    h6 = "6h"
    h24 = "24h"
    d7 = "7d"
    all = "all"


def over_time(job: JobHome, over: Over) -> tuple[dict[str, Any], Callable[[], str]]:
    """The numbers up to the newest that is known, as data and as text."""
    series = read_series(job, TimeRange.of(over.value), most=_LINES)
    found = moments(series)
    data = {
        "job": job.name,
        "step_seconds": series.step,
        "steps": [_json(moment) for moment in found],
    }
    return data, lambda: _text(found)


def _json(moment: Moment) -> dict[str, Any]:
    return {
        "at": to_iso(from_ms(moment.at * 1000)),
        "running": moment.running,
        "records_in_per_second": moment.records_in_per_second,
        "records_out_per_second": moment.records_out_per_second,
        "busy_ratio": moment.busy,
        "behind": moment.mean("behind"),
        "behind_max": moment.most("behind"),
        "batch_ms": moment.mean("duration_ms"),
        "batch_ms_max": moment.most("duration_ms"),
        "watermark_lag_ms": moment.mean("watermark_lag_ms"),
        "state_rows": moment.last("state_rows"),
        "state_bytes": moment.last("state_bytes"),
        "latency": [
            {"sink": sink, "p50_ms": latency.p50_ms, "p99_ms": latency.p99_ms}
            for sink, latency in moment.latency.items()
        ],
        "events": dict(moment.marks),
    }


def _text(found: Sequence[Moment]) -> str:
    if not found:
        return "nothing is known of the job over time: it has not made a checkpoint yet"
    sinks = sinks_of(found)
    head = ["FROM", "IN/S", "OUT/S", "BEHIND", "BATCH", *(f"99 % {s}" for s in sinks), "STATE"]
    rows = [[*_cells(moment, sinks), _events(moment)] for moment in found]
    return table([*head, "EVENTS"], rows, right=head[1:])


def _cells(moment: Moment, sinks: Sequence[str]) -> list[str]:
    latencies = [moment.latency.get(sink) for sink in sinks]
    return [
        local_time(from_ms(moment.at * 1000)),
        number(moment.records_in_per_second),
        number(moment.records_out_per_second),
        number(moment.mean("behind")),
        _millis(moment.mean("duration_ms")),
        *(_millis(one.p99_ms if one else None) for one in latencies),
        size(moment.last("state_bytes")),
    ]


def _events(moment: Moment) -> str:
    words = [] if moment.running else ["did not run"]
    words += [kind if n == 1 else f"{kind} {n} times" for kind, n in moment.marks.items()]
    return ", ".join(words)


def _millis(value: float | None) -> str:
    return DASH if value is None else format_duration(timedelta(milliseconds=round(value)))
