"""Metrics of all jobs for Prometheus: a collector that reads the home at every scrape."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime

from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry
from starlette.requests import Request
from starlette.responses import Response

from headgate.base.errors import HeadgateError
from headgate.graph.model import Graph
from headgate.home.layout import JobHome
from headgate.home.model import CheckpointRecord
from headgate.home.read.run import RunFigures
from headgate.home.tally import Durations, Tally
from headgate.home.times import now
from headgate.runtime.status import STATES, job_status
from headgate.snapshots.savepoints import savepoints
from headgate.ui.metric_families import Families, Labels
from headgate.ui.model import Model
from headgate.ui.model.checkpoints import RunLatest
from headgate.ui.model.graph import NodeView, graph_view
from headgate.ui.model.load import busy_share

_RECENT = 20


def metrics_page(model: Model) -> Callable[[Request], Response]:
    """GET /metrics, in the format that the Accept header prefers."""
    registry = CollectorRegistry()
    registry.register(JobsCollector(model))

    def page(request: Request) -> Response:
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"Content-Type": content_type})

    return page


class JobsCollector(Collector):
    """Metrics of every job of a home; a job that cannot be read does not hide the others."""

    def __init__(self, model: Model) -> None:
        self._model = model

    def collect(self) -> Iterable[Metric]:
        """Read the home."""
        families, unreadable = Families(), 0
        for job in self._model.home.jobs():
            try:
                _job(families, self._model, job)
            except HeadgateError:
                unreadable += 1
        families.gauge("headgate_ui_unreadable_jobs", {}, unreadable)
        return families.all()


def _job(families: Families, model: Model, job: JobHome) -> None:
    status, of = job_status(job), {"job": job.name}
    for state in STATES:
        families.gauge("headgate_job_state", {**of, "state": state}, int(state == status.state))
    figures = status.figures
    if figures is None:
        return
    record, live = figures.newest, status.state in ("RUNNING", "RESTARTING")
    if record is not None:
        _steps(families, of, figures, record, live=live)
        _sources(families, of, record, live=live)
    _checkpoints(families, of, figures.tally, model.latest(job, figures))
    _events(families, of, job)
    _states(families, of, figures, live=live)
    if status.state == "RUNNING":
        for sink in figures.latencies():
            for share, ms in (("0.5", sink.p50_ms), ("0.99", sink.p99_ms)):
                labels = {**of, "step": sink.sink, "quantile": share}
                families.gauge("headgate_sink_latency_seconds", labels, ms / 1000)
        rows = model.history(figures.run, limit=_RECENT)
        families.gauge("headgate_job_batch_busy_ratio", of, busy_share(rows))
    saved = savepoints(job)
    families.gauge("headgate_savepoints", of, len(saved))
    if saved:
        families.gauge("headgate_savepoint_age_seconds", of, _age(saved[-1].created_at))


def _steps(
    families: Families, of: Labels, figures: RunFigures, record: CheckpointRecord, *, live: bool
) -> None:
    graph = graph_view(Graph.from_json(figures.graph), record, parallelism=1)
    for node in graph.nodes:
        step = {**of, "step": node.id}
        families.count("headgate_step_records_in", step, node.records_in)
        for output, count in _outputs(node):
            families.count("headgate_step_records_out", {**step, "output": output}, count)
        families.count("headgate_step_late_records", step, node.late)
        for name, count in node.counted.items():
            families.count("headgate_step_counted", {**step, "name": name}, count)
        if node.stateful:
            families.gauge("headgate_state_rows", step, node.state_rows)
            families.gauge("headgate_state_bytes", step, node.state_bytes)
        if node.watermark is not None:
            families.gauge(
                "headgate_step_watermark_timestamp_seconds", step, node.watermark.timestamp()
            )
            if live:
                families.gauge("headgate_step_watermark_lag_seconds", step, _age(node.watermark))


def _outputs(node: NodeView) -> Iterable[tuple[str, int | None]]:
    yield "out", node.records_out
    for side in node.side:
        yield side.output, side.records


def _sources(families: Families, of: Labels, record: CheckpointRecord, *, live: bool) -> None:
    for name, offsets in record.sources.items():
        source = {**of, "source": name}
        families.gauge("headgate_source_pending_records", source, offsets.behind())
    if record.event_time is None or not live:
        return
    for name, time in record.event_time.sources.items():
        source = {**of, "source": name}
        if time.watermark is not None:
            families.gauge("headgate_source_event_time_lag_seconds", source, _age(time.watermark))
        if time.rows_at is not None:
            families.gauge("headgate_source_idle_seconds", source, _age(time.rows_at))


def _checkpoints(families: Families, of: Labels, tally: Tally, latest: RunLatest) -> None:
    families.histogram("headgate_checkpoint_duration_seconds", of, tally.durations)
    for phase in ("sources", "planning", "execution", "commit"):
        spent = tally.phases.get(phase, Durations())
        families.histogram("headgate_batch_duration_seconds", {**of, "phase": phase}, spent)
    counts = latest.counts
    for status, count in (("completed", counts.completed), ("failed", counts.failed)):
        families.count("headgate_checkpoints", {**of, "status": status}, count)
    families.gauge("headgate_checkpoints_in_progress", of, counts.in_progress)
    if latest.completed is not None:
        last = latest.completed
        families.gauge("headgate_checkpoint_last_id", of, last.id)
        families.gauge("headgate_checkpoint_last_size_bytes", of, last.checkpointed_size)
        families.gauge("headgate_checkpoint_last_full_size_bytes", of, last.full_size)
        done = last.latest_ack_timestamp
        families.gauge("headgate_checkpoint_last_completed_timestamp_seconds", of, _seconds(done))
    restored = _seconds(latest.restored_at)
    families.gauge("headgate_checkpoint_last_restored_timestamp_seconds", of, restored)


def _events(families: Families, of: Labels, job: JobHome) -> None:
    """Restarts and failures of all runs of a job."""
    reasons: Counter[str] = Counter()
    steps: Counter[str] = Counter()
    for run in job.runs():
        tally = run.event_log().tally
        reasons.update(tally.restarting)
        steps.update(tally.failed)
    for reason, count in reasons.items():
        families.count("headgate_job_restarts", {**of, "reason": reason}, count)
    for step, count in steps.items():
        families.count("headgate_step_errors", {**of, "step": step}, count)


def _states(families: Families, of: Labels, figures: RunFigures, *, live: bool) -> None:
    """Time in each state of the current run; one that was killed counts to its last checkpoint."""
    last = figures.newest.completed_at if figures.newest else None
    for state, spent in figures.events.tally.spent(now() if live else last).items():
        families.count("headgate_job_state_seconds", {**of, "state": state}, spent)


def _age(when: datetime) -> float:
    return max((now() - when).total_seconds(), 0.0)


def _seconds(when: datetime | None) -> float | None:
    return when.timestamp() if when else None
