"""What became of a job: savepoints, exceptions, watermarks, runs, configuration, outputs."""

from __future__ import annotations

from headgate.ui.pages.asked import Asked
from headgate.ui.pages.site import Shown

_EXCEPTIONS = 20
_MOST_EXCEPTIONS = 5000
_ROWS = 50


def savepoints(asked: Asked) -> Shown:
    """Savepoints, the newest first."""
    return _of(asked, "savepoints", asked.model.savepoints(asked.name("job")))


def exceptions(asked: Asked) -> Shown:
    """Failures, the newest first."""
    limit = min(asked.number("limit") or _EXCEPTIONS, _MOST_EXCEPTIONS)
    view = asked.model.exceptions(asked.name("job"), limit=limit)
    return _of(asked, "exceptions", view, limit=limit)


def watermarks(asked: Asked) -> Shown:
    """How far event time is."""
    return _of(asked, "watermarks", asked.model.watermarks(asked.name("job")))


def runs(asked: Asked) -> Shown:
    """Runs as a tree."""
    return _of(asked, "runs", asked.model.runs(asked.name("job")))


def configuration(asked: Asked) -> Shown:
    """What the job was started with."""
    return _of(asked, "configuration", asked.model.configuration(asked.name("job")))


def outputs(asked: Asked) -> Shown:
    """The last rows of one sink, by default the first."""
    job = asked.name("job")
    sinks = asked.model.outputs(job).sinks
    chosen = asked.text("sink") or next(iter(sinks), None)
    view = asked.model.output(job, chosen, limit=_ROWS) if chosen is not None else None
    return _of(asked, "outputs", view, sinks=sinks)


def _of(asked: Asked, tab: str, view: object, **values: object) -> Shown:
    job = asked.model.job(asked.name("job")).summary
    return Shown(f"{tab}.html", {"view": view, "job": job, "tab": tab, **values})
