"""The part of the REST interface that only reads the home."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Depends

from headgate.base.errors import NotFoundError
from headgate.ui.model import Model
from headgate.ui.model.checkpoint_detail import CheckpointDetail, StepDetail
from headgate.ui.model.checkpoints import CheckpointsView
from headgate.ui.model.configuration import ConfigurationView
from headgate.ui.model.exceptions import ExceptionsView
from headgate.ui.model.graph import GraphView, NodeView
from headgate.ui.model.jobs import JobsView, JobView
from headgate.ui.model.load import busy_share, level
from headgate.ui.model.model import DEFAULT_LIMIT
from headgate.ui.model.outputs import OutputsView, OutputView
from headgate.ui.model.over_time import OverTimeView, time_range
from headgate.ui.model.runs import RunsView
from headgate.ui.model.savepoints import SavepointsView
from headgate.ui.model.view import FlinkTime, IsoTime, View
from headgate.ui.model.watermarks import WatermarksView
from headgate.ui.rest.openapi import READING
from headgate.ui.rest.params import (
    Before,
    Checkpoint,
    End,
    Job,
    Limit,
    Points,
    Range,
    Run,
    Start,
    Step,
)
from headgate.ui.rest.services import ReadModel, known_query

router = APIRouter(responses=READING, dependencies=[Depends(known_query)])


@dataclass(frozen=True)
class StepWatermark(View):
    """The watermark of a step."""

    id: str
    value: FlinkTime | None
    watermark: IsoTime | None


@dataclass(frozen=True)
class BackPressure(View):
    """How busy a job is: the share of the time in which a batch runs, over the last ones."""

    status: str
    level: str
    """OK up to 10 %, LOW up to 50 %, HIGH above, as in Flink; batches are of all steps."""
    busy_ratio: float | None
    step_busy_ratio: float | None
    """The part of it in which the step's busiest partition works."""
    behind: int | None
    """Of a source: records that were there and are not in the newest checkpoint."""
    at: IsoTime | None


@router.get("/jobs/overview", tags=["jobs"])
def jobs(model: ReadModel) -> JobsView:
    """All jobs of the home."""
    return model.jobs()


@router.get("/jobs/{job}", tags=["jobs"])
def job(job: Job, model: ReadModel) -> JobView:
    """One job with its graph."""
    return model.job(job)


@router.get("/jobs/{job}/plan", tags=["jobs"])
def graph(job: Job, model: ReadModel) -> GraphView:
    """The graph of a job, with counts."""
    return model.job(job).graph


@router.get("/jobs/{job}/vertices/{step}/watermarks", tags=["jobs"])
def step_watermark(job: Job, step: Step, model: ReadModel) -> StepWatermark:
    """The watermark of a step."""
    node = _node(model.job(job), step)
    return StepWatermark(step, node.watermark, node.watermark)


@router.get("/jobs/{job}/vertices/{step}/backpressure", tags=["jobs"])
def back_pressure(job: Job, step: Step, model: ReadModel) -> BackPressure:
    """How busy the job is, and how far a source is behind."""
    view = model.job(job)
    node = _node(view, step)
    share = _busy_share(model, job) if view.summary.state == "RUNNING" else None
    status = "ok" if share is not None else "not measured"
    word = level(share) if share is not None else "OK"
    return BackPressure(status, word, share, node.busy_share, node.behind, view.graph.counted_at)


@router.get("/jobs/{job}/exceptions", tags=["jobs"])
def exceptions(job: Job, model: ReadModel, limit: Limit = DEFAULT_LIMIT) -> ExceptionsView:
    """Failures, the user's lines first, and what happened next."""
    return model.exceptions(job, limit=limit)


@router.get("/jobs/{job}/config", tags=["jobs"])
def configuration(job: Job, model: ReadModel) -> ConfigurationView:
    """What a job was started with, and where each value came from."""
    return model.configuration(job)


@router.get("/jobs/{job}/metrics", tags=["jobs"])
def metrics(
    job: Job,
    model: ReadModel,
    range: Range = "1h",
    start: Start = None,
    end: End = None,
    points: Points = 720,
) -> OverTimeView:
    """Metrics over time, as lists with a number for each timestamp."""
    return model.over_time(job, time_range(range, start, end), most=points)


@router.get("/jobs/{job}/checkpoints", tags=["checkpoints"])
def checkpoints(
    job: Job,
    model: ReadModel,
    run: Run = None,
    limit: Limit = DEFAULT_LIMIT,
    before: Before = None,
) -> CheckpointsView:
    """Checkpoints: counts, latest, summary and history."""
    return model.checkpoints(job, run=run, limit=limit, before=before)


@router.get("/jobs/{job}/checkpoints/config", tags=["checkpoints"])
def checkpoint_configuration(job: Job, model: ReadModel) -> ConfigurationView:
    """The configuration of checkpoints."""
    return model.configuration(job)


@router.get("/jobs/{job}/checkpoints/details/{checkpoint}", tags=["checkpoints"])
def checkpoint(
    job: Job, checkpoint: Checkpoint, model: ReadModel, run: Run = None
) -> CheckpointDetail:
    """One checkpoint by step and partition, with source offsets."""
    return model.checkpoint(job, checkpoint, run=run)


@router.get(
    "/jobs/{job}/checkpoints/details/{checkpoint}/subtasks/{step}", tags=["checkpoints"]
)  # fmt: skip
def checkpoint_step(
    job: Job, checkpoint: Checkpoint, step: Step, model: ReadModel, run: Run = None
) -> StepDetail:
    """One step of a checkpoint, partition by partition."""
    for one in model.checkpoint(job, checkpoint, run=run).steps:
        if one.id == step:
            return one
    raise NotFoundError("the checkpoint has no such step", remedy="see /jobs/{job}/checkpoints")


@router.get("/jobs/{job}/savepoints", tags=["savepoints"])
def savepoints(job: Job, model: ReadModel) -> SavepointsView:
    """Every savepoint of a job."""
    return model.savepoints(job)


@router.get("/jobs/{job}/watermarks", tags=["jobs"])
def watermarks(job: Job, model: ReadModel) -> WatermarksView:
    """The watermarks of the job and its sources, and why one stands still."""
    return model.watermarks(job)


@router.get("/jobs/{job}/runs", tags=["jobs"])
def runs(job: Job, model: ReadModel) -> RunsView:
    """Runs as a tree."""
    return model.runs(job)


@router.get("/jobs/{job}/outputs", tags=["jobs"])
def outputs(job: Job, model: ReadModel) -> OutputsView:
    """The sinks of a job."""
    return model.outputs(job)


@router.get("/jobs/{job}/outputs/{step}", tags=["jobs"])
def output(job: Job, step: Step, model: ReadModel, limit: Limit = DEFAULT_LIMIT) -> OutputView:
    """The newest records of a sink."""
    return model.output(job, step, limit=limit)


def _node(view: JobView, step: str) -> NodeView:
    for node in view.graph.nodes:
        if node.id == step:
            return node
    raise NotFoundError("the job has no such step", remedy="see /jobs/{job}")


def _busy_share(model: Model, job: str) -> float | None:
    run = model.run_home(model.job_home(job), None)
    return busy_share(model.history(run)) if run else None
