"""Families: the metrics of /metrics by name, with their types, labels and help texts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from headgate.home.tally import Durations

Labels: TypeAlias = Mapping[str, str]
_STEP = ("job", "step")
_SOURCE = ("job", "source")
# prometheus_client adds _total to the names of counters.
COUNTERS = {
    "headgate_job_state_seconds": (("job", "state"), "Time that a job has spent in a state."),
    "headgate_job_restarts": (("job", "reason"), "Restarts after failures, by reason."),
    "headgate_step_records_in": (_STEP, "Records that entered a step."),
    "headgate_step_records_out": ((*_STEP, "output"), "Records that left a step, by output."),
    "headgate_step_errors": (_STEP, "Failures of the job that came from a step."),
    "headgate_step_late_records": (_STEP, "Records that arrived too late for a step."),
    "headgate_step_counted": ((*_STEP, "name"), "Counts made by functions, by name."),
    "headgate_checkpoints": (("job", "status"), "Checkpoints of the run, by status."),
}
GAUGES = {
    "headgate_job_state": (("job", "state"), "1 for the state that a job is in, 0 for the others."),
    "headgate_job_batch_busy_ratio": (("job",), "Share of time during which a batch is running."),
    "headgate_step_watermark_timestamp_seconds": (_STEP, "The watermark of a step."),
    "headgate_step_watermark_lag_seconds": (_STEP, "How far the watermark is behind the clock."),
    "headgate_source_pending_records": (_SOURCE, "Records that a source has not read yet."),
    "headgate_source_event_time_lag_seconds": (_SOURCE, "How far a source is behind the clock."),
    "headgate_source_idle_seconds": (_SOURCE, "Time since the last rows of a source."),
    "headgate_sink_latency_seconds": (
        (*_STEP, "quantile"), "Time from a record's timestamp to the sink's commit.",
    ),
    "headgate_state_rows": (_STEP, "Rows of a step's state."),
    "headgate_state_bytes": (_STEP, "Bytes of a step's state."),
    "headgate_checkpoint_last_id": (("job",), "The newest checkpoint."),
    "headgate_checkpoint_last_size_bytes": (("job",), "Bytes that the newest checkpoint wrote."),
    "headgate_checkpoint_last_full_size_bytes": (("job",), "All bytes of the newest checkpoint."),
    "headgate_checkpoint_last_completed_timestamp_seconds": (
        ("job",), "When the newest checkpoint was completed.",
    ),
    "headgate_checkpoint_last_restored_timestamp_seconds": (
        ("job",), "When the job last started from a snapshot.",
    ),
    "headgate_checkpoints_in_progress": (("job",), "Checkpoints in progress."),
    "headgate_savepoints": (("job",), "Savepoints that a job has."),
    "headgate_savepoint_age_seconds": (("job",), "Time since the newest savepoint."),
    "headgate_ui_unreadable_jobs": ((), "Jobs whose files could not be read."),
}  # fmt: skip
HISTOGRAMS = {
    "headgate_batch_duration_seconds": (("job", "phase"), "Duration of batches, by phase."),
    "headgate_checkpoint_duration_seconds": (("job",), "End-to-end duration of checkpoints."),
}


@dataclass
class Families:
    """The samples of one scrape. A family without samples is left out."""

    _found: dict[str, Metric] = field(default_factory=dict)

    def count(self, name: str, labels: Labels, value: float | None) -> None:
        """One sample of a counter; none if there is no value."""
        names, about = COUNTERS[name]
        if value is not None:
            family = self._found.setdefault(name, CounterMetricFamily(name, about, labels=names))
            assert isinstance(family, CounterMetricFamily)
            family.add_metric(_values(names, labels), value)

    def gauge(self, name: str, labels: Labels, value: float | None) -> None:
        """One sample of a gauge; none if there is no value."""
        names, about = GAUGES[name]
        if value is not None:
            family = self._found.setdefault(name, GaugeMetricFamily(name, about, labels=names))
            assert isinstance(family, GaugeMetricFamily)
            family.add_metric(_values(names, labels), value)

    def histogram(self, name: str, labels: Labels, spent: Durations) -> None:
        """A histogram of durations."""
        names, about = HISTOGRAMS[name]
        family = self._found.setdefault(name, HistogramMetricFamily(name, about, labels=names))
        assert isinstance(family, HistogramMetricFamily)
        below = [
            ("+Inf" if bound == float("inf") else str(bound), float(count))
            for bound, count in spent.cumulative()
        ]
        family.add_metric(_values(names, labels), below, spent.seconds)

    def all(self) -> Iterable[Metric]:
        """The families in the order of their names."""
        return [self._found[name] for name in sorted(self._found)]


def _values(names: Sequence[str], labels: Labels) -> list[str]:
    assert set(names) == set(labels), (names, labels)
    return [labels[name] for name in names]
