"""A job over time: charts, which the page's script draws, and a table that says the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlencode

from headgate.base.errors import UsageError
from headgate.home.read.series import LASTS
from headgate.home.times import to_ms
from headgate.ui.model.over_time import LATEST_MS, Numbers, OverTimeView, SinkOverTime, time_range
from headgate.ui.pages.request import PageRequest
from headgate.ui.pages.site import PageResponse
from headgate.ui.pages.words import plural

_ROWS = 24
_MOST_SINKS = 6
"""Lines of more cannot be told apart."""
_RANGE = "1h"
RANGES = {
    "15m": "15 min", "1h": "1 h", "6h": "6 h", "24h": "24 h", "7d": "7 d", "all": "All",
}  # fmt: skip
CHARTS = (
    ("throughput", "Records a second", "Taken from the sources and written to the sinks."),
    ("latency", "Latency", "From a record's timestamp to the commit of its sink."),
    ("pending", "Records behind", "That were there when a batch was cut, and are not in it."),
    ("batch", "Batch time", "From the trigger to the commit."),
    ("watermark", "Watermark lag", "How far the job's watermark is behind the clock."),
    ("bytes", "State size", "On disk, of all stateful steps."),
    ("rows", "State rows", "Of all stateful steps."),
    ("busy", "Busy", "The share of the time in which batches run."),
)


@dataclass(frozen=True)
class MetricsRow:
    """One step of time in the table; the step of a row is longer than that of the charts."""

    at: datetime
    running: bool
    taken: float | None
    given: float | None
    behind: float | None
    behind_most: float | None
    batch: float | None
    batch_most: float | None
    watermark_lag: float | None
    size: float | None
    rows: float | None
    busy: float | None
    latency: Sequence[tuple[float | None, float | None]]
    """Of each sink, for 50 and 99 % of its records."""
    events: Sequence[str]


def metrics(request: PageRequest) -> PageResponse:
    """A job over time, in a range that the query names."""
    job = request.name("job")
    start, end = request.time("start"), request.time("end")
    name = request.text("range") or _RANGE
    if name not in LASTS:
        raise UsageError(
            f"'range' must be one of {', '.join(LASTS)}", remedy="correct or remove it"
        )
    within = time_range(name, start, end)
    view = request.model.over_time(job, within, most=_ROWS)
    query = {"range": name} if start is None else {"start": str(start)}
    query |= {} if end is None else {"end": str(end)}
    values = {
        "view": view,
        "job": request.model.job(job).summary,
        "tab": "metrics",
        "ranges": RANGES,
        "chosen": name if start is None and end is None else None,
        "charts": CHARTS,
        "rows": _rows(view),
        "sinks": [names for names, _ in _sinks(view)[:_MOST_SINKS]],
        "url": f"/jobs/{quote(job, safe='')}/metrics?{urlencode(query)}",
        "wider": _wider(view),
    }
    return PageResponse("metrics.html", values)


def _rows(view: OverTimeView) -> list[MetricsRow]:
    """The newest first."""
    events = {mark.timestamp: mark.events for mark in view.marks}
    latencies = [(one.p50_ms, one.p99_ms) for _, one in _sinks(view)[:_MOST_SINKS]]
    rows = [
        MetricsRow(
            at=at,
            running=view.running[n],
            taken=view.records_in_per_second[n],
            given=view.records_out_per_second[n],
            behind=view.pending[n],
            behind_most=view.pending_max[n],
            batch=view.batch_ms[n],
            batch_most=view.batch_ms_max[n],
            watermark_lag=view.watermark_lag_ms[n],
            size=view.state_bytes[n],
            rows=view.state_rows[n],
            busy=view.busy[n],
            latency=[(p50[n], p99[n]) for p50, p99 in latencies],
            events=[_event(kind, count) for kind, count in events.get(at, {}).items()],
        )
        for n, at in enumerate(view.timestamps)
    ]
    return rows[::-1]


def _sinks(view: OverTimeView) -> list[tuple[str, SinkOverTime]]:
    """Sinks behind the same sources have the same latencies, and one column."""
    groups: dict[tuple[Numbers, Numbers], list[SinkOverTime]] = {}
    for one in view.latency:
        groups.setdefault((one.p50_ms, one.p99_ms), []).append(one)
    return [(", ".join(one.sink for one in same), same[0]) for same in groups.values()]


def _event(kind: str, count: int) -> str:
    return kind if count == 1 else f"{kind} {plural(count, 'time')}"


def _wider(view: OverTimeView) -> dict[str, int] | None:
    """A range twice as long around the shown one."""
    start, end = to_ms(view.start), to_ms(view.end)
    if start is None or end is None:
        return None
    half = (end - start) // 2
    return {"start": max(0, start - half), "end": min(end + half, LATEST_MS)}
