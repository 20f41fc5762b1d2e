"""Metrics of all jobs in the text format of Prometheus, from the home alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headgate.base.errors import HeadgateError
from headgate.graph.model import Graph
from headgate.home.layout import JobHome, RunHome
from headgate.home.model import CheckpointRecord, EventRecord
from headgate.home.times import now
from headgate.runtime.status import STATES, job_status
from headgate.snapshots.savepoints import savepoints
from headgate.ui.model import Model
from headgate.ui.model.graph import NodeView, graph_view
from headgate.ui.model.history import CheckpointRow
from headgate.ui.model.slow import busy_share

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
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
_UNDER_WAY = {"started": "RUNNING", "restarted": "RUNNING", "failed": "RESTARTING",
              "restarting": "RESTARTING"}  # fmt: skip

Labels = Mapping[str, str]


@dataclass
class Page:
    """The samples of one scrape, in families."""

    samples: dict[str, list[str]] = field(default_factory=dict)

    def add(self, name: str, labels: Labels, value: float | None) -> None:
        """One sample; nothing if there is no value."""
        if value is not None:
            self._line(name, name, labels, value)

    def histogram(self, name: str, labels: Labels, seconds: Sequence[float]) -> None:
        """A histogram of durations."""
        for bound in (*_BUCKETS, float("inf")):
            le = "+Inf" if bound == float("inf") else f"{bound:g}"
            below = sum(one <= bound for one in seconds)
            self._line(name, f"{name}_bucket", {**labels, "le": le}, below)
        self._line(name, f"{name}_sum", labels, sum(seconds))
        self._line(name, f"{name}_count", labels, len(seconds))

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
    run = job.run(status.run.run) if status.run else None
    if run is None:
        return
    record, rows, events = status.checkpoint, model.history(run), run.events()
    live = status.state in ("RUNNING", "RESTARTING")
    if record is not None:
        _steps(page, of, run, record, live=live)
        _sources(page, of, record, live=live)
    _checkpoints(page, of, model, run, [row for row in rows if row.type != "forked"])
    _events(page, of, job, events, live=live, last=record.completed_at if record else None)
    if status.state == "RUNNING":
        page.add("headgate_job_batch_busy_ratio", of, busy_share(rows))
    saved = savepoints(job)
    page.add("headgate_savepoints", of, len(saved))
    if saved:
        page.add("headgate_savepoint_age_seconds", of, _age(saved[-1].created_at))


def _steps(page: Page, of: Labels, run: RunHome, record: CheckpointRecord, *, live: bool) -> None:
    graph = graph_view(Graph.from_json(run.graph()), record, parallelism=1)
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


def _checkpoints(
    page: Page, of: Labels, model: Model, run: RunHome, rows: Sequence[CheckpointRow]
) -> None:
    took = [row.duration / timedelta(seconds=1) for row in rows if row.duration is not None]
    page.histogram("headgate_checkpoint_duration_seconds", of, took)
    for phase in ("sources", "planning", "execution", "commit"):
        spent = [row.phases[phase] / 1000 for row in rows if phase in row.phases]
        page.histogram("headgate_batch_duration_seconds", {**of, "phase": phase}, spent)
    view = model.checkpoints(run.job.name, run=run.id, limit=1)
    counts, latest = view.counts, view.latest
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
    if latest.restored is not None:
        at = latest.restored.restore_timestamp
        page.add("headgate_checkpoint_last_restored_timestamp_seconds", of, _seconds(at))


def _events(
    page: Page,
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
        page.add("headgate_job_restarts_total", {**of, "reason": reason}, count)
    for step, count in steps.items():
        page.add("headgate_step_errors_total", {**of, "step": step}, count)
    for state, spent in _spent(events, live=live, last=last).items():
        page.add("headgate_job_state_seconds_total", {**of, "state": state}, spent)


def _spent(events: Sequence[EventRecord], *, live: bool, last: datetime | None) -> dict[str, float]:
    """Time in each state of the current run; one that was killed counts to its last checkpoint."""
    found = {"RUNNING": 0.0, "RESTARTING": 0.0}
    for at, event in enumerate(events):
        state = _UNDER_WAY.get(event.kind)
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
