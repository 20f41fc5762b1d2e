"""The list of jobs, and the overview of one."""

from __future__ import annotations

from headgate.ui.pages.asked import Asked
from headgate.ui.pages.picture import picture
from headgate.ui.pages.site import Shown


def jobs(asked: Asked) -> Shown:
    """All jobs of the home."""
    return Shown("jobs.html", {"view": asked.model.jobs()})


def overview(asked: Asked) -> Shown:
    """One job with its graph."""
    view = asked.model.job(asked.name("job"))
    every_step = asked.text("graph") == "all"
    graph, together = picture(view.graph, view.slow, view.summary.name, every_step=every_step)
    values = {"view": view, "job": view.summary, "graph": graph, "together": together, "tab": ""}
    return Shown("overview.html", values)
