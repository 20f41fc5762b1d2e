"""Watermarks of a job and its sources, and the reason where one is missing or stands still."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.home.layout import RunHome
from headgate.home.times import now
from headgate.ui.model.roles import has_event_time, is_stream_source
from headgate.ui.model.view import FlinkTime, IsoTime, Seconds, View


@dataclass(frozen=True)
class SourceWatermark(View):
    """How far the event time of a source is."""

    source: str
    value: FlinkTime | None
    watermark: IsoTime | None
    lag: Seconds | None
    state: str
    """active, idle, no_rows_yet, no_event_time_yet, or not_declared."""
    rows_at: IsoTime | None
    idle_since: IsoTime | None
    idle_after: Seconds | None
    text: str
    holds_back: bool
    """Whether it keeps the job's watermark where it is."""


@dataclass(frozen=True)
class WatermarksView(View):
    """The job's watermark, its sources', and why it stands still."""

    job: str
    run: str | None
    value: FlinkTime | None
    watermark: IsoTime | None
    lag: Seconds | None
    reason: str | None
    advice: str | None
    ended: bool
    at: IsoTime | None
    """The time of the newest checkpoint, from which all of this is."""
    sources: tuple[SourceWatermark, ...]


def watermarks_view(job: str, run: RunHome | None) -> WatermarksView:
    """Read the newest checkpoint's watermarks."""
    if run is None:
        none = "the job has no run yet"
        return WatermarksView(job, None, None, None, None, none, None, False, None, ())
    record = run.latest_checkpoint()
    time = record.event_time if record else None
    mark = record.watermark_after if record else None
    steps = run.graph()["steps"]
    declared = any(has_event_time(step) for step in steps)
    undeclared = [
        str(step["id"]) for step in steps if is_stream_source(step) and not has_event_time(step)
    ]
    held = time.holder() if time else None
    sources = []
    for name, source in (time.sources if time else {}).items():
        text = source.text(lambda when: when.isoformat(timespec="seconds"))
        sources.append(
            SourceWatermark(
                name,
                source.watermark,
                source.watermark,
                now() - source.watermark if source.watermark else None,
                source.state,
                source.rows_at,
                source.idle_since,
                source.idle_after,
                text or "follows its rows",
                held is not None and held[0] == name,
            )
        )
    for name in undeclared:
        text = "no event time is declared for it: job.source(..., event_time=hg.event_time(...))"
        sources.append(
            SourceWatermark(name, None, None, None, "not_declared", None, None, None, text, False)
        )
    reason = time.reason() if time else None
    if mark is None and reason is None:
        reason = "no checkpoint has been made yet" if declared else (
            "no source of the job has event time, so there is no watermark"
        )  # fmt: skip
    return WatermarksView(
        job,
        run.id,
        mark,
        mark,
        now() - mark if mark else None,
        reason,
        time.advice() if time else None,
        bool(time and time.ended),
        record.completed_at if record else None,
        tuple(sources),
    )
