"""Metrics of all jobs for Prometheus: a collector that reads the home at every scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from math import inf

from prometheus_client.core import Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry
from starlette.requests import Request
from starlette.responses import Response

from headgate.base.errors import HeadgateError
from headgate.graph.model import Graph
from headgate.home.layout import JobHome, RunHome
from headgate.home.model import CheckpointRecord, EventRecord
from headgate.home.times import now
from headgate.runtime.status import STATES, job_status
from headgate.snapshots.savepoints import savepoints
from headgate.ui.metric_families import Families, Labels
from headgate.ui.model import Model
from headgate.ui.model.graph import NodeView, graph_view
from headgate.ui.model.history import CheckpointRow
from headgate.ui.model.slow import busy_share

_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, inf)
_STATE_AFTER = {"started": "RUNNING", "restarted": "RUNNING", "failed": "RESTARTING",
                "restarting": "RESTARTING"}  # fmt: skip


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
    run = job.run(status.run.run) if status.run else None
    if run is None:
        return
    record, rows, events = status.checkpoint, model.history(run), run.events()
    live = status.state in ("RUNNING", "RESTARTING")
    if record is not None:
        _steps(families, of, run, record, live=live)
        _sources(families, of, record, live=live)
    _checkpoints(families, of, model, run, [row for row in rows if row.type != "forked"])
    _events(families, of, job, events, live=live, last=record.completed_at if record else None)
    if status.state == "RUNNING":
        families.gauge("headgate_job_batch_busy_ratio", of, busy_share(rows))
    saved = savepoints(job)
    families.gauge("headgate_savepoints", of, len(saved))
    if saved:
        families.gauge("headgate_savepoint_age_seconds", of, _age(saved[-1].created_at))


def _steps(
    families: Families, of: Labels, run: RunHome, record: CheckpointRecord, *, live: bool
) -> None:
    graph = graph_view(Graph.from_json(run.graph()), record, parallelism=1)
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


def _checkpoints(
    families: Families, of: Labels, model: Model, run: RunHome, rows: Sequence[CheckpointRow]
) -> None:
    took = [row.duration / timedelta(seconds=1) for row in rows if row.duration is not None]
    families.histogram("headgate_checkpoint_duration_seconds", of, _cumulative(took), sum(took))
    for phase in ("sources", "planning", "execution", "commit"):
        spent = [row.phases[phase] / 1000 for row in rows if phase in row.phases]
        families.histogram(
            "headgate_batch_duration_seconds",
            {**of, "phase": phase},
            _cumulative(spent),
            sum(spent),
        )
    view = model.checkpoints(run.job.name, run=run.id, limit=1)
    counts, latest = view.counts, view.latest
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
    if latest.restored is not None:
        at = latest.restored.restore_timestamp
        families.gauge("headgate_checkpoint_last_restored_timestamp_seconds", of, _seconds(at))


def _cumulative(seconds: Sequence[float]) -> list[tuple[float, float]]:
    return [(bound, float(sum(one <= bound for one in seconds))) for bound in _BUCKETS]


def _events(
    families: Families,
    of: Labels,
    job: JobHome,
    events: Sequence[EventRecord],
    *,
    live: bool,
    last: datetime | None,
) -> None:
    reasons: dict[str, int] = {}
    steps: dict[str, int] = {}
    for run in job.runs():
        for event in run.events():
            if event.kind == "restarting":
                reason = str(event.details.get("reason"))
                reasons[reason] = reasons.get(reason, 0) + 1
            if event.kind == "failed":
                step = str(event.details.get("step") or "")
                steps[step] = steps.get(step, 0) + 1
    for reason, count in reasons.items():
        families.count("headgate_job_restarts", {**of, "reason": reason}, count)
    for step, count in steps.items():
        families.count("headgate_step_errors", {**of, "step": step}, count)
    for state, spent in _spent(events, live=live, last=last).items():
        families.count("headgate_job_state_seconds", {**of, "state": state}, spent)


def _spent(events: Sequence[EventRecord], *, live: bool, last: datetime | None) -> dict[str, float]:
    """Time in each state of the current run; one that was killed counts to its last checkpoint."""
    found = {"RUNNING": 0.0, "RESTARTING": 0.0}
    for at, event in enumerate(events):
        state = _STATE_AFTER.get(event.kind)
        if state is None or (event.kind == "failed" and event.details.get("gives_up")):
            continue
        if at + 1 < len(events):
            until = events[at + 1].at
        else:
            until = now() if live else max(filter(None, [last, event.at]))
        found[state] += max((until - event.at).total_seconds(), 0.0)
    return found


def _age(when: datetime) -> float:
    return max((now() - when).total_seconds(), 0.0)


def _seconds(when: datetime | None) -> float | None:
    return when.timestamp() if when else None
