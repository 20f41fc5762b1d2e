"""The part of the REST interface that only reads."""

from __future__ import annotations

from headgate.ui.model import Model
from headgate.ui.model.checkpoints import CheckpointsView
from headgate.ui.model.graph import GraphView
from headgate.ui.model.jobs import JobsView, JobView
from headgate.ui.model.model import DEFAULT_LIMIT
from headgate.ui.rest.endpoint import JOB, Endpoint, Param

RUN = Param("run", "A run of the job, such as r1; the current one by default.", pattern="r[0-9]+")
LIMIT = Param(
    "limit", "At most so many lines.", "integer", least=1, most=5000, default=DEFAULT_LIMIT
)
BEFORE = Param("before", "Only checkpoints with a smaller id.", "integer")


def endpoints(model: Model) -> list[Endpoint]:
    """What can be read."""
    return [
        Endpoint("/jobs/overview", "All jobs of the home.", model.jobs, JobsView),
        Endpoint("/jobs/{job}", "One job with its graph.", model.job, JobView, parts=[JOB]),
        Endpoint(
            "/jobs/{job}/plan",
            "The graph of a job, with counts.",
            lambda job: model.job(job).graph,
            GraphView,
            parts=[JOB],
        ),
        Endpoint(
            "/jobs/{job}/checkpoints",
            "Checkpoints: counts, latest, summary and history.",
            model.checkpoints,
            CheckpointsView,
            parts=[JOB],
            query=[RUN, LIMIT, BEFORE],
            tag="checkpoints",
        ),
    ]
