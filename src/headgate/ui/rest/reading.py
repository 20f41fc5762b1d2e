"""The part of the REST interface that only reads the home."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from headgate.base.errors import NotFoundError
from headgate.ui.model import Model, View
from headgate.ui.model.checkpoint_detail import CheckpointDetail, StepDetail
from headgate.ui.model.checkpoints import CheckpointsView
from headgate.ui.model.configuration import ConfigurationView
from headgate.ui.model.exceptions import ExceptionsView
from headgate.ui.model.graph import GraphView
from headgate.ui.model.jobs import JobsView, JobView
from headgate.ui.model.model import DEFAULT_LIMIT
from headgate.ui.model.outputs import OutputsView, OutputView
from headgate.ui.model.runs import RunsView
from headgate.ui.model.savepoints import SavepointsView
from headgate.ui.model.slow import busy_share, level
from headgate.ui.model.view import flink
from headgate.ui.model.watermarks import WatermarksView
from headgate.ui.rest.endpoint import JOB, Endpoint, Param

RUN = Param(
    "run", "A run of the job, such as r1; the current one by default.", pattern="r[0-9]{1,9}"
)
LIMIT = Param(
    "limit", "At most so many lines.", "integer", least=1, most=5000, default=DEFAULT_LIMIT
)
BEFORE = Param("before", "Only checkpoints with a smaller id.", "integer")
CHECKPOINT = Param("checkpoint", "The number of a checkpoint.", "integer", required=True)
STEP = Param("step", "The name of a step.", required=True)


@dataclass(frozen=True)
class StepWatermark(View):
    """The watermark of a step."""

    id: str
    value: datetime | None = field(metadata=flink("value"))
    watermark: datetime | None


@dataclass(frozen=True)
class BackPressure(View):
    """How busy a job is: the share of the time in which a batch is at work, over the last ones."""

    status: str
    level: str
    """OK up to 10 %, LOW up to 50 %, HIGH above, as in Flink; batches are of all steps."""
    busy_ratio: float | None
    behind: int | None
    """Of a source: records that were there and are not in the newest checkpoint."""
    at: datetime | None


def endpoints(model: Model) -> list[Endpoint]:
    """What can be read."""
    return [*_jobs(model), *_checkpoints(model), *_more(model)]


def _jobs(model: Model) -> list[Endpoint]:
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
            "/jobs/{job}/vertices/{step}/watermarks",
            "The watermark of a step.",
            lambda job, step: _watermark(model, job, step),
            StepWatermark,
            parts=[JOB, STEP],
        ),
        Endpoint(
            "/jobs/{job}/vertices/{step}/backpressure",
            "How busy the job is, and how far a source is behind.",
            lambda job, step: _back_pressure(model, job, step),
            BackPressure,
            parts=[JOB, STEP],
        ),
        Endpoint(
            "/jobs/{job}/exceptions",
            "Failures, the user's lines first, and what happened next.",
            model.exceptions,
            ExceptionsView,
            parts=[JOB],
            query=[LIMIT],
        ),
        Endpoint(
            "/jobs/{job}/config",
            "What a job was started with, and where each value came from.",
            model.configuration,
            ConfigurationView,
            parts=[JOB],
        ),
    ]


def _checkpoints(model: Model) -> list[Endpoint]:
    return [
        Endpoint(
            "/jobs/{job}/checkpoints",
            "Checkpoints: counts, latest, summary and history.",
            model.checkpoints,
            CheckpointsView,
            parts=[JOB],
            query=[RUN, LIMIT, BEFORE],
            tag="checkpoints",
        ),
        Endpoint(
            "/jobs/{job}/checkpoints/config",
            "The configuration of checkpoints.",
            model.configuration,
            ConfigurationView,
            parts=[JOB],
            tag="checkpoints",
        ),
        Endpoint(
            "/jobs/{job}/checkpoints/details/{checkpoint}",
            "One checkpoint by step and partition, with source offsets.",
            lambda job, checkpoint, run: model.checkpoint(job, checkpoint, run=run),
            CheckpointDetail,
            parts=[JOB, CHECKPOINT],
            query=[RUN],
            tag="checkpoints",
        ),
        Endpoint(
            "/jobs/{job}/checkpoints/details/{checkpoint}/subtasks/{step}",
            "One step of a checkpoint, partition by partition.",
            lambda job, checkpoint, step, run: _step(model, job, checkpoint, step, run),
            StepDetail,
            parts=[JOB, CHECKPOINT, STEP],
            query=[RUN],
            tag="checkpoints",
        ),
        Endpoint(
            "/jobs/{job}/savepoints",
            "Every savepoint of a job.",
            model.savepoints,
            SavepointsView,
            parts=[JOB],
            tag="savepoints",
        ),
    ]


def _more(model: Model) -> list[Endpoint]:
    return [
        Endpoint(
            "/jobs/{job}/watermarks",
            "The job's watermark and its sources', and why it stands where it stands.",
            model.watermarks,
            WatermarksView,
            parts=[JOB],
        ),
        Endpoint("/jobs/{job}/runs", "Runs as a tree.", model.runs, RunsView, parts=[JOB]),
        Endpoint(
            "/jobs/{job}/outputs", "The sinks of a job.", model.outputs, OutputsView, parts=[JOB]
        ),
        Endpoint(
            "/jobs/{job}/outputs/{step}",
            "The newest records of a sink.",
            lambda job, step, limit: model.output(job, step, limit=limit),
            OutputView,
            parts=[JOB, STEP],
            query=[LIMIT],
        ),
    ]


def _watermark(model: Model, job: str, step: str) -> StepWatermark:
    for node in model.job(job).graph.nodes:
        if node.id == step:
            return StepWatermark(step, node.watermark, node.watermark)
    raise NotFoundError("the job has no such step")


def _back_pressure(model: Model, job: str, step: str) -> BackPressure:
    view = model.job(job)
    node = next((node for node in view.graph.nodes if node.id == step), None)
    if node is None:
        raise NotFoundError("the job has no such step")
    run = model.run_home(model.job_home(job), None)
    share = busy_share(model.history(run)) if run and view.summary.state == "RUNNING" else None
    status = "ok" if share is not None else "not measured"
    word = level(share) if share is not None else "OK"
    return BackPressure(status, word, share, node.behind, view.graph.counted_at)


def _step(model: Model, job: str, checkpoint: int, step: str, run: str | None) -> StepDetail:
    for one in model.checkpoint(job, checkpoint, run=run).steps:
        if one.id == step:
            return one
    raise NotFoundError("the checkpoint has no such step")
