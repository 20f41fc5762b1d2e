"""Checkpoints of a run: overview, history, summary and configuration, and one in detail."""

from __future__ import annotations

from datetime import timedelta

from headgate.ui.model.checkpoints import CheckpointsView
from headgate.ui.model.configuration import ConfigurationView
from headgate.ui.pages.asked import Asked
from headgate.ui.pages.chart import Point, chart
from headgate.ui.pages.site import Shown
from headgate.ui.pages.words import duration, size

_CHARTED = 1000
_MS = timedelta(milliseconds=1)


def overview(asked: Asked) -> Shown:
    """Counts, and the latest of each kind."""
    return _shown(
        asked, "overview", asked.model.checkpoints(asked.name("job"), run=asked.text("run"))
    )


def history(asked: Asked) -> Shown:
    """A line a checkpoint, the newest first, a page at a time."""
    view = asked.model.checkpoints(
        asked.name("job"), run=asked.text("run"), before=asked.number("before")
    )
    oldest = min((line.id for line in view.history), default=0)
    return _shown(asked, "history", view, before=asked.number("before"), oldest=oldest)


def summary(asked: Asked) -> Shown:
    """Least, average, greatest and percentiles, and charts of the last checkpoints."""
    view = asked.model.checkpoints(asked.name("job"), run=asked.text("run"), limit=_CHARTED)
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
    charts = {
        "End to end duration": chart(took, "End to end duration", duration),
        "Full checkpoint data size": chart(full, "Full checkpoint data size", size, base=1024),
        "Checkpointed data size": chart(wrote, "Checkpointed data size", size, base=1024),
    }
    return _shown(asked, "summary", view, charts={name: svg for name, svg in charts.items() if svg})


def configuration(asked: Asked) -> Shown:
    """How checkpoints are made."""
    return _shown(asked, "configuration", asked.model.configuration(asked.name("job")))


def checkpoint(asked: Asked) -> Shown:
    """One checkpoint by step and partition, with the offsets of sources."""
    name = asked.name("job")
    view = asked.model.checkpoint(name, asked.id("checkpoint"), run=asked.name("run"))
    job = asked.model.job(name).summary
    return Shown("checkpoint.html", {"view": view, "job": job, "tab": "checkpoints"})


def _shown(
    asked: Asked, part: str, view: CheckpointsView | ConfigurationView, **values: object
) -> Shown:
    job = asked.model.job(asked.name("job")).summary
    run = asked.text("run")
    return Shown(
        f"checkpoints_{part}.html",
        {"view": view, "job": job, "tab": "checkpoints", "part": part, "run": run, **values},
    )
