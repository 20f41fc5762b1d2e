"""Metrics of all jobs in the text format of Prometheus, from the home alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from headgate.base.errors import HeadgateError
from headgate.graph.model import Graph
from headgate.home.layout import JobHome
from headgate.home.model import CheckpointRecord
from headgate.home.read.run import RunFigures
from headgate.home.tally import Durations, Tally
from headgate.home.times import now
from headgate.runtime.status import STATES, job_status
from headgate.snapshots.savepoints import savepoints
from headgate.ui.model import Model
from headgate.ui.model.checkpoints import RunLatest
from headgate.ui.model.graph import NodeView, graph_view
from headgate.ui.model.slow import busy_share

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_FAMILIES = {
    "headgate_job_state": ("gauge", "1 for the state that a job is in, 0 for the others."),
    "headgate_job_state_seconds_total": ("counter", "Time that a job has spent in a state."),
    "headgate_job_restarts_total": ("counter", "Restarts after failures, by reason."),
    "headgate_job_batch_busy_ratio": ("gauge", "Share of the time in which a batch is at work."),
    "headgate_step_records_in_total": ("counter", "Records that came into a step."),
    "headgate_step_records_out_total": ("counter", "Records that left a step, by output."),
    "headgate_step_errors_total": ("counter", "Failures of the job that came from a step."),
    "headgate_step_late_records_total": ("counter", "Records that came too late for a step."),
    "headgate_step_counted_total": ("counter", "What a function has counted, by name."),
    "headgate_step_watermark_timestamp_seconds": ("gauge", "The watermark of a step."),
    "headgate_step_watermark_lag_seconds": ("gauge", "How far the watermark is behind the clock."),
    "headgate_source_pending_records": ("gauge", "Records that are there and not read."),
    "headgate_source_event_time_lag_seconds": ("gauge", "A source's event time behind the clock."),
    "headgate_source_idle_seconds": ("gauge", "Time since the last rows of a source."),
    "headgate_state_rows": ("gauge", "Rows of a step's state."),
    "headgate_state_bytes": ("gauge", "Bytes of a step's state."),
    "headgate_batch_duration_seconds": ("histogram", "Time of batches, by phase."),
    "headgate_checkpoint_duration_seconds": ("histogram", "End to end time of checkpoints."),
    "headgate_checkpoint_last_id": ("gauge", "The newest checkpoint."),
    "headgate_checkpoint_last_size_bytes": ("gauge", "Bytes that the newest checkpoint wrote."),
    "headgate_checkpoint_last_full_size_bytes": ("gauge", "Bytes that it needs."),
    "headgate_checkpoint_last_completed_timestamp_seconds": ("gauge", "When it was completed."),
    "headgate_checkpoint_last_restored_timestamp_seconds": ("gauge", "When the job last went on."),
    "headgate_checkpoints_total": ("counter", "Checkpoints of the run, by status."),
    "headgate_checkpoints_in_progress": ("gauge", "Checkpoints that are being made."),
    "headgate_savepoints": ("gauge", "Savepoints that a job has."),
    "headgate_savepoint_age_seconds": ("gauge", "Time since the newest savepoint."),
    "headgate_ui_unreadable_jobs": ("gauge", "Jobs whose files could not be read."),
}
_RECENT = 20

Labels = Mapping[str, str]


@dataclass
class Page:
    """The samples of one scrape, in families."""

    samples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, labels: Labels, value: float | None) -> None:
        """One sample; nothing if there is no value."""
        if value is not None:
            self._line(name, name, labels, value)

    def histogram(self, name: str, labels: Labels, spent: Durations) -> None:
        """A histogram of durations."""
        for bound, below in spent.cumulative():
            le = "+Inf" if bound == float("inf") else f"{bound:g}"
            self._line(name, f"{name}_bucket", {**labels, "le": le}, below)
        self._line(name, f"{name}_sum", labels, spent.seconds)
        self._line(name, f"{name}_count", labels, spent.count)

    def text(self) -> str:
        """The page."""
        lines: list[str] = []
        for name, (kind, about) in _FAMILIES.items():
            if name in self.samples:
                lines += [f"# HELP {name} {about}", f"# TYPE {name} {kind}", *self.samples[name]]
        return "\n".join(lines) + "\n"

    def _line(self, family: str, name: str, labels: Labels, value: float) -> None:
        assert family in _FAMILIES, family
        told = ",".join(f'{key}="{escaped(text)}"' for key, text in labels.items())
        self.samples.setdefault(family, []).append(f"{name}{{{told}}} {value!r}")


def escaped(text: str) -> str:
    r"""A label's value as the format wants it.

    >>> print(escaped('a "b"\\'))
    a \"b\"\\
    """
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def metrics(model: Model) -> str:
    """Metrics of every job of the home; a job that cannot be read does not hide the others."""
    page, unreadable = Page(), 0
    for job in model.home.jobs():
        try:
            _job(page, model, job)
        except HeadgateError:
            unreadable += 1
    page.add("headgate_ui_unreadable_jobs", {}, unreadable)
    return page.text()


def _job(page: Page, model: Model, job: JobHome) -> None:
    status, of = job_status(job), {"job": job.name}
    for state in STATES:
        page.add("headgate_job_state", {**of, "state": state}, int(state == status.state))
    figures = status.figures
    if figures is None:
        return
    record, live = figures.newest, status.state in ("RUNNING", "RESTARTING")
    if record is not None:
        _steps(page, of, figures, record, live=live)
        _sources(page, of, record, live=live)
    _checkpoints(page, of, figures.tally, model.latest(job, figures))
    _events(page, of, job)
    _states(page, of, figures, live=live)
    if status.state == "RUNNING":
        rows = model.history(figures.run, limit=_RECENT)
        page.add("headgate_job_batch_busy_ratio", of, busy_share(rows))
    saved = savepoints(job)
    page.add("headgate_savepoints", of, len(saved))
    if saved:
        page.add("headgate_savepoint_age_seconds", of, _age(saved[-1].created_at))


def _steps(
    page: Page, of: Labels, figures: RunFigures, record: CheckpointRecord, *, live: bool
) -> None:
    graph = graph_view(Graph.from_json(figures.graph), record, parallelism=1)
    for node in graph.nodes:
        step = {**of, "step": node.id}
        page.add("headgate_step_records_in_total", step, node.records_in)
        for output, count in _outputs(node):
            page.add("headgate_step_records_out_total", {**step, "output": output}, count)
        page.add("headgate_step_late_records_total", step, node.late)
        for name, count in node.counted.items():
            page.add("headgate_step_counted_total", {**step, "name": name}, count)
        if node.stateful:
            page.add("headgate_state_rows", step, node.state_rows)
            page.add("headgate_state_bytes", step, node.state_bytes)
        if node.watermark is not None:
            page.add("headgate_step_watermark_timestamp_seconds", step, node.watermark.timestamp())
            if live:
                page.add("headgate_step_watermark_lag_seconds", step, _age(node.watermark))


def _outputs(node: NodeView) -> Iterable[tuple[str, int | None]]:
    yield "out", node.records_out
    for side in node.side:
        yield side.output, side.records


def _sources(page: Page, of: Labels, record: CheckpointRecord, *, live: bool) -> None:
    for name, offsets in record.sources.items():
        source = {**of, "source": name}
        page.add("headgate_source_pending_records", source, offsets.behind())
    if record.event_time is None or not live:
        return
    for name, time in record.event_time.sources.items():
        source = {**of, "source": name}
        if time.watermark is not None:
            page.add("headgate_source_event_time_lag_seconds", source, _age(time.watermark))
        if time.rows_at is not None:
            page.add("headgate_source_idle_seconds", source, _age(time.rows_at))


def _checkpoints(page: Page, of: Labels, tally: Tally, latest: RunLatest) -> None:
    page.histogram("headgate_checkpoint_duration_seconds", of, tally.durations)
    for phase in ("sources", "planning", "execution", "commit"):
        spent = tally.phases.get(phase, Durations())
        page.histogram("headgate_batch_duration_seconds", {**of, "phase": phase}, spent)
    counts = latest.counts
    for status, count in (("completed", counts.completed), ("failed", counts.failed)):
        page.add("headgate_checkpoints_total", {**of, "status": status}, count)
    page.add("headgate_checkpoints_in_progress", of, counts.in_progress)
    if latest.completed is not None:
        last = latest.completed
        page.add("headgate_checkpoint_last_id", of, last.id)
        page.add("headgate_checkpoint_last_size_bytes", of, last.checkpointed_size)
        page.add("headgate_checkpoint_last_full_size_bytes", of, last.full_size)
        done = last.latest_ack_timestamp
        page.add("headgate_checkpoint_last_completed_timestamp_seconds", of, _seconds(done))
    restored = _seconds(latest.restored_at)
    page.add("headgate_checkpoint_last_restored_timestamp_seconds", of, restored)


def _events(page: Page, of: Labels, job: JobHome) -> None:
    """Restarts and failures of all runs of a job."""
    reasons: Counter[str] = Counter()
    steps: Counter[str] = Counter()
    for run in job.runs():
        tally = run.event_log().tally
        reasons.update(tally.restarting)
        steps.update(tally.failed)
    for reason, count in reasons.items():
        page.add("headgate_job_restarts_total", {**of, "reason": reason}, count)
    for step, count in steps.items():
        page.add("headgate_step_errors_total", {**of, "step": step}, count)


def _states(page: Page, of: Labels, figures: RunFigures, *, live: bool) -> None:
    """Time in each state of the current run; one that was killed counts to its last checkpoint."""
    last = figures.newest.completed_at if figures.newest else None
    for state, spent in figures.events.tally.spent(now() if live else last).items():
        page.add("headgate_job_state_seconds_total", {**of, "state": state}, spent)


def _age(when: datetime) -> float:
    return max((now() - when).total_seconds(), 0.0)


def _seconds(when: datetime | None) -> float | None:
    return when.timestamp() if when else None
