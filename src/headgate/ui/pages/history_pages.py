"""The history of a job: savepoints, exceptions, watermarks, runs, configuration, outputs."""

from __future__ import annotations

from headgate.ui.pages.request import PageRequest
from headgate.ui.pages.site import PageResponse

_EXCEPTIONS = 20
_MOST_EXCEPTIONS = 5000
_ROWS = 50


def savepoints(request: PageRequest) -> PageResponse:
    """Savepoints, the newest first."""
    return _of(request, "savepoints", request.model.savepoints(request.name("job")))


def exceptions(request: PageRequest) -> PageResponse:
    """Failures, the newest first."""
    limit = min(request.number("limit") or _EXCEPTIONS, _MOST_EXCEPTIONS)
    view = request.model.exceptions(request.name("job"), limit=limit)
    return _of(request, "exceptions", view, limit=limit)


def watermarks(request: PageRequest) -> PageResponse:
    """How far event time is."""
    return _of(request, "watermarks", request.model.watermarks(request.name("job")))


def runs(request: PageRequest) -> PageResponse:
    """Runs as a tree."""
    return _of(request, "runs", request.model.runs(request.name("job")))


def configuration(request: PageRequest) -> PageResponse:
    """What the job was started with."""
    return _of(request, "configuration", request.model.configuration(request.name("job")))


def outputs(request: PageRequest) -> PageResponse:
    """The last rows of one sink, by default the first."""
    job = request.name("job")
    sinks = request.model.outputs(job).sinks
    chosen = request.text("sink") or next(iter(sinks), None)
    view = request.model.output(job, chosen, limit=_ROWS) if chosen is not None else None
    return _of(request, "outputs", view, sinks=sinks)


def _of(request: PageRequest, tab: str, view: object, **values: object) -> PageResponse:
    job = request.model.job(request.name("job")).summary
    return PageResponse(f"{tab}.html", {"view": view, "job": job, "tab": tab, **values})
