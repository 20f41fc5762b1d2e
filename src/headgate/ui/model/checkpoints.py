"""Checkpoints of a run: counts, the latest of each kind, history and summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headgate.home.layout import JobHome, RunHome
from headgate.home.model import EventRecord
from headgate.home.read.rows import CheckpointRow
from headgate.home.read.run import RunFigures
from headgate.home.times import from_ms
from headgate.runtime.lease import is_live
from headgate.snapshots.savepoints import SavepointRecord, savepoints
from headgate.snapshots.snapshot import restorable
from headgate.snapshots.spark_log import pending_batch, read_entry
from headgate.ui.model.history import History
from headgate.ui.model.restores import Restored, last_restore, restored
from headgate.ui.model.sizes import SizeBook
from headgate.ui.model.statistics import Statistics, statistics
from headgate.ui.model.view import FlinkDuration, FlinkTime, View, json_name


@dataclass(frozen=True)
class Counts(View):
    """How many checkpoints there were of each kind."""

    total: int
    in_progress: int
    completed: int
    failed: int
    restored: int
    """Starts and restarts from a checkpoint."""


@dataclass(frozen=True)
class CheckpointView(View):
    """One line of the history."""

    id: int
    run: str
    name: str
    """As the command line takes it: r1/ck:17."""
    status: str
    """COMPLETED, IN_PROGRESS or FAILED."""
    is_savepoint: bool
    checkpoint_type: str
    trigger_timestamp: FlinkTime | None
    latest_ack_timestamp: FlinkTime | None
    end_to_end_duration: FlinkDuration | None
    checkpointed_size: int | None
    """Bytes that it has written; known while it is retained, or if it was measured then."""
    full_size: int | None
    """Bytes of all files that it needs; known as long."""
    state_size: int | None
    """Bytes that the state store takes; known always."""
    state_rows: int | None
    records: int | None
    latency_ms: int | None
    """From the timestamps of 99 % of its records to their commit in the sinks."""
    """Taken from the sources since the checkpoint before it."""
    num_subtasks: int
    num_acknowledged_subtasks: int
    """Partitions of the state, and how many have committed."""
    phases: Mapping[str, int]
    """Milliseconds in sources, planning, execution and commit."""
    restorable: bool
    pinned: bool
    discarded: bool
    """Whether retention has deleted its files; the record stays."""
    external_path: str | None
    failure_message: str | None


@dataclass(frozen=True)
class FailedCheckpoint(View):
    """A batch that failed, and why."""

    id: int | None
    failure_timestamp: FlinkTime
    reason: str
    failure_message: str
    remedy: str | None
    step: str | None


@dataclass(frozen=True)
class LatestSavepoint(View):
    """The newest savepoint."""

    label: str
    id: int
    run: str
    trigger_timestamp: FlinkTime
    state_size: int
    savepoint_format: str
    external_path: str
    reason: str


@dataclass(frozen=True)
class Latest(View):
    """The newest of each kind."""

    completed: CheckpointView | None
    savepoint: LatestSavepoint | None
    failed: FailedCheckpoint | None
    restored: Restored | None


@dataclass(frozen=True)
class Summary(View):
    """Columns of the newest completed checkpoints in short; durations in milliseconds."""

    checkpoints: int
    """How many they are of: at most 1,000."""
    end_to_end_duration: Statistics
    state_size: Statistics
    checkpointed_size: Statistics
    records: Statistics


@dataclass(frozen=True)
class CheckpointsView(View):
    """The checkpoints of a run: counts since its start, the newest, and a page of its history."""

    job: str
    run: str | None
    runs: tuple[str, ...]
    counts: Counts
    latest: Latest
    summary: Summary
    history: tuple[CheckpointView, ...]
    """The newest first."""
    total_history: int = field(metadata=json_name("history_total"))


def checkpoints_view(
    job: JobHome,
    run: RunHome | None,
    history: History,
    sizes: SizeBook,
    *,
    limit: int,
    before: int | None = None,
) -> CheckpointsView:
    """The checkpoints of a run, the newest `limit` of them, or of those before one."""
    runs = tuple(one.id for one in job.runs())
    if run is None:
        empty = Latest(None, _latest_savepoint(savepoints(job)), None, None)
        return CheckpointsView(
            job.name, None, runs, Counts(0, 0, 0, 0, 0), empty, _summary([]), (), 0
        )
    make = _Lines(run, sizes)
    figures, running = RunFigures(run), _in_progress(job, run)
    recent = [make.completed(row) for row in history.rows(run)]
    page = [make.completed(row) for row in history.rows(run, limit=limit, before=before)]
    oldest = page[0].id if len(page) == limit else None
    failed = [make.failed(one) for one in _failures(figures, limit, before=before, oldest=oldest)]
    shown = sorted([*page, *failed], key=_when)
    if running is not None and (before is None or running[0] < before):
        shown.append(make.running(*running))
    own = [line for line in recent if line.checkpoint_type != "forked"]  # that was its parent's
    counts = _counts(figures, running)
    done = [(line.id, line.latest_ack_timestamp) for line in recent]
    return CheckpointsView(
        job=job.name,
        run=run.id,
        runs=runs,
        counts=counts,
        latest=Latest(
            recent[-1] if recent else None,
            _latest_savepoint(savepoints(job)),
            _failure(figures.events.last("failed")),
            restored(job, figures, done),
        ),
        summary=_summary(own),
        history=tuple(reversed(shown[-limit:])),
        total_history=figures.checkpoints_kept + counts.failed + counts.in_progress,
    )


@dataclass(frozen=True)
class RunLatest:
    """What metrics say of the checkpoints of a run; reads no history."""

    counts: Counts
    completed: CheckpointView | None
    restored_at: datetime | None


def run_latest(job: JobHome, figures: RunFigures, sizes: SizeBook) -> RunLatest:
    """The counts and the newest checkpoint of a run."""
    newest = figures.newest
    restore = last_restore(figures)
    return RunLatest(
        _counts(figures, _in_progress(job, figures.run)),
        line_of(figures.run, CheckpointRow.of(newest), sizes) if newest else None,
        restore.at if restore else None,
    )


def _counts(figures: RunFigures, running: tuple[int, datetime | None] | None) -> Counts:
    completed, events = figures.tally.completed, figures.events.tally
    return Counts(
        total=completed + events.failed_batches + (running is not None),
        in_progress=int(running is not None),
        completed=completed,
        failed=events.failed_batches,
        restored=events.restored,
    )


def line_of(run: RunHome, row: CheckpointRow, sizes: SizeBook) -> CheckpointView:
    """The line of the history of one checkpoint."""
    return _Lines(run, sizes).completed(row)


class _Lines:
    """Makes lines of the history of one run."""

    def __init__(self, run: RunHome, sizes: SizeBook) -> None:
        self._run = run
        self._sizes = sizes
        record = run.read()
        self._parallelism, self._uid = record.parallelism, record.uid
        self._kept = set(restorable(run))
        self._pins = set(run.pinned())

    def completed(self, row: CheckpointRow) -> CheckpointView:
        kept, pinned = row.id in self._kept, row.id in self._pins
        sizes = self._sizes.of(self._run, self._uid, row.id, retained=kept and not pinned)
        path = self._run.pin_path(row.id) if pinned else self._run.spark_path
        return CheckpointView(
            id=row.id,
            run=self._run.id,
            name=f"{self._run.id}/ck:{row.id}",
            status=row.status,
            is_savepoint=False,
            checkpoint_type=row.type,
            trigger_timestamp=row.triggered_at,
            latest_ack_timestamp=row.completed_at,
            end_to_end_duration=row.duration,
            checkpointed_size=sizes.written if sizes else None,
            full_size=sizes.full if sizes else None,
            state_size=row.state_bytes,
            state_rows=row.state_rows,
            records=row.records,
            latency_ms=row.latency_ms,
            num_subtasks=self._parallelism,
            num_acknowledged_subtasks=self._parallelism,
            phases=row.phases,
            restorable=kept,
            pinned=pinned,
            discarded=not kept,
            external_path=self._run.files.location(path) if kept else None,
            failure_message=None,
        )

    def running(self, batch: int, since: datetime | None) -> CheckpointView:
        return self._line(batch, "IN_PROGRESS", since, None, None)

    def failed(self, failure: FailedCheckpoint) -> CheckpointView:
        assert failure.id is not None
        when = failure.failure_timestamp
        return self._line(failure.id, "FAILED", None, when, failure.failure_message)

    def _line(
        self,
        id: int,
        status: str,
        began: datetime | None,
        ended: datetime | None,
        message: str | None,
    ) -> CheckpointView:
        return CheckpointView(
            id=id,
            run=self._run.id,
            name=f"{self._run.id}/ck:{id}",
            status=status,
            is_savepoint=False,
            checkpoint_type="periodic",
            trigger_timestamp=began,
            latest_ack_timestamp=ended,
            end_to_end_duration=None,
            checkpointed_size=None,
            full_size=None,
            state_size=None,
            state_rows=None,
            records=None,
            latency_ms=None,
            num_subtasks=self._parallelism,
            num_acknowledged_subtasks=0,
            phases={},
            restorable=False,
            pinned=False,
            discarded=False,
            external_path=None,
            failure_message=message,
        )


def _when(line: CheckpointView) -> tuple[int, float]:
    stamp = line.latest_ack_timestamp or line.trigger_timestamp
    # a batch that failed and was run again has two lines, the failed one first
    return line.id, stamp.timestamp() if stamp else 0.0


def _in_progress(job: JobHome, run: RunHome) -> tuple[int, datetime | None] | None:
    record = job.read()
    if record.current_run != run.id or not is_live(record.lease):
        return None
    batch = pending_batch(run)
    if batch is None:
        return None
    entry = read_entry(run, batch)
    return batch, from_ms(entry.batch_time_ms) if entry else None


def _failures(
    figures: RunFigures, limit: int, *, before: int | None, oldest: int | None
) -> Iterator[FailedCheckpoint]:
    """Failures of batches from a page of the history, the newest first; no older event is read."""
    found = 0
    for event in figures.events.newest_first():
        failure = _failure(event) if event.kind == "failed" else None
        if failure is None or failure.id is None or (before is not None and failure.id >= before):
            continue
        if found == limit or (oldest is not None and failure.id < oldest):
            return
        found += 1
        yield failure


def _failure(event: EventRecord | None) -> FailedCheckpoint | None:
    if event is None:
        return None
    return FailedCheckpoint(
        event.details.get("batch"),
        event.at,
        str(event.details.get("reason")),
        str(event.details.get("message")),
        event.details.get("remedy"),
        event.details.get("step"),
    )


def _latest_savepoint(records: Sequence[SavepointRecord]) -> LatestSavepoint | None:
    if not records:
        return None
    last = records[-1]
    return LatestSavepoint(
        last.label,
        last.checkpoint,
        last.run,
        last.created_at,
        last.bytes,
        "canonical",
        last.path,
        last.reason,
    )


def _summary(lines: Sequence[CheckpointView]) -> Summary:
    ms = timedelta(milliseconds=1)
    took = [line.end_to_end_duration for line in lines]
    return Summary(
        len(lines),
        statistics(one // ms for one in took if one is not None),
        statistics(line.state_size for line in lines if line.state_size is not None),
        statistics(line.checkpointed_size for line in lines if line.checkpointed_size is not None),
        statistics(line.records for line in lines if line.records is not None),
    )
