"""Checkpoints of a run: overview, history, summary and configuration, and one in detail."""

from __future__ import annotations

from datetime import timedelta

from headgate.ui.model.checkpoints import CheckpointsView
from headgate.ui.model.configuration import ConfigurationView
from headgate.ui.pages.chart import Point, chart
from headgate.ui.pages.request import PageRequest
from headgate.ui.pages.site import PageResponse
from headgate.ui.pages.timeline import timeline
from headgate.ui.pages.words import duration, size

_CHARTED = 1000
_MS = timedelta(milliseconds=1)


def overview(request: PageRequest) -> PageResponse:
    """Counts, and the latest of each kind."""
    return _page(
        request, "overview", request.model.checkpoints(request.name("job"), run=request.text("run"))
    )


def history(request: PageRequest) -> PageResponse:
    """A line a checkpoint, the newest first, a page at a time."""
    view = request.model.checkpoints(
        request.name("job"), run=request.text("run"), before=request.number("before")
    )
    oldest = min((line.id for line in view.history), default=0)
    return _page(request, "history", view, before=request.number("before"), oldest=oldest)


def summary(request: PageRequest) -> PageResponse:
    """Least, average, greatest and percentiles, and charts of the last checkpoints."""
    view = request.model.checkpoints(request.name("job"), run=request.text("run"), limit=_CHARTED)
    lines = [line for line in reversed(view.history) if line.status == "COMPLETED"]
    took = [
        Point(f"ck:{line.id}", line.end_to_end_duration / _MS)
        for line in lines
        if line.end_to_end_duration is not None
    ]
    full = [
        Point(f"ck:{line.id}", line.state_size) for line in lines if line.state_size is not None
    ]
    wrote = [
        Point(f"ck:{line.id}", line.checkpointed_size)
        for line in lines
        if line.checkpointed_size is not None
    ]
    late = [
        Point(f"ck:{line.id}", line.latency_ms) for line in lines if line.latency_ms is not None
    ]
    charts = {
        "End to end duration": chart(took, "End to end duration", duration),
        "Latency of 99 % of its records": chart(late, "Latency of 99 % of its records", duration),
        "Full checkpoint data size": chart(full, "Full checkpoint data size", size, base=1024),
        "Checkpointed data size": chart(wrote, "Checkpointed data size", size, base=1024),
    }
    return _page(
        request, "summary", view, charts={name: svg for name, svg in charts.items() if svg}
    )


def configuration(request: PageRequest) -> PageResponse:
    """How checkpoints are made."""
    return _page(request, "configuration", request.model.configuration(request.name("job")))


def checkpoint(request: PageRequest) -> PageResponse:
    """One checkpoint by step and partition, with the offsets of sources."""
    name = request.name("job")
    view = request.model.checkpoint(name, request.id("checkpoint"), run=request.name("run"))
    job = request.model.job(name).summary
    line = view.checkpoint
    drawn = timeline(line.end_to_end_duration, line.phases, view.stages)
    values = {"view": view, "job": job, "tab": "checkpoints", "timeline": drawn}
    return PageResponse("checkpoint.html", values)


def _page(
    request: PageRequest, part: str, view: CheckpointsView | ConfigurationView, **values: object
) -> PageResponse:
    job = request.model.job(request.name("job")).summary
    run = request.text("run")
    return PageResponse(
        f"checkpoints_{part}.html",
        {"view": view, "job": job, "tab": "checkpoints", "part": part, "run": run, **values},
    )
