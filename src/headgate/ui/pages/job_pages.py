"""The list of jobs, and the overview of one."""

from __future__ import annotations

from headgate.ui.pages.picture import picture
from headgate.ui.pages.request import PageRequest
from headgate.ui.pages.site import PageResponse


def jobs(request: PageRequest) -> PageResponse:
    """All jobs of the home."""
    return PageResponse("jobs.html", {"view": request.model.jobs()})


def overview(request: PageRequest) -> PageResponse:
    """One job with its graph."""
    view = request.model.job(request.name("job"))
    every_step = request.text("graph") == "all"
    graph, together = picture(view.graph, view.slow, view.summary.name, every_step=every_step)
    values = {"view": view, "job": view.summary, "graph": graph, "together": together, "tab": ""}
    return PageResponse("overview.html", values)
