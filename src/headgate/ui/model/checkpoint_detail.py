"""One checkpoint in detail: by step and partition, and where each source was."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from headgate.base.errors import NotFoundError
from headgate.home.layout import JobHome, RunHome
from headgate.home.offsets import Offset, SourceOffsets
from headgate.home.read.rows import CheckpointRow
from headgate.home.read.steps import StepFigures, step_figures
from headgate.home.stages import StageRecord
from headgate.ui.model.checkpoints import CheckpointView, line_of
from headgate.ui.model.resume_hint import ResumeHint, resume_hint
from headgate.ui.model.sizes import PartSize, SizeBook, by_step
from headgate.ui.model.statistics import Statistics, statistics
from headgate.ui.model.view import IsoTime, Seconds, View


@dataclass(frozen=True)
class PartitionDetail(View):
    """One partition of a step's state."""

    index: int
    checkpointed_size: int
    full_size: int
    files: int


@dataclass(frozen=True)
class StepDetail(View):
    """What a step did in a checkpoint, and what it keeps."""

    id: str
    kind: str
    records_in: int | None
    """Of streams; the rows of a lookup's table are `table_in`."""
    table_in: int | None
    records_out: int | None
    side: Mapping[str, int]
    total_records_in: int | None
    total_records_out: int | None
    state_rows: int | None
    state_size: int | None
    checkpointed_size: int | None
    full_size: int | None
    num_subtasks: int
    num_acknowledged_subtasks: int
    partitions: tuple[PartitionDetail, ...]
    """Empty once retention has taken the files."""
    partition_sizes: Statistics
    """Of the partitions' full sizes: minimum and maximum far apart show skew."""


@dataclass(frozen=True)
class OffsetDetail(View):
    """How far one partition of a source was read."""

    partition: str
    start: int | str | None
    end: int | str
    latest: int | str | None
    records: int | None
    behind: int | None


@dataclass(frozen=True)
class SourceDetail(View):
    """Where a source was, partition by partition."""

    id: str
    behind: int
    partitions: tuple[OffsetDetail, ...]


@dataclass(frozen=True)
class StageView(View):
    """A stage that Spark ran for the batch; steps computed together are in the same one."""

    steps: tuple[str, ...]
    """Those that counted rows in it."""
    began: Seconds
    """After the batch's trigger."""
    took: Seconds
    tasks: int
    worked: Seconds
    """All its tasks together."""
    longest_task: Seconds


@dataclass(frozen=True)
class CheckpointDetail(View):
    """One checkpoint with all that is known of it."""

    checkpoint: CheckpointView
    stages: tuple[StageView, ...]
    """Where the batch's time went; empty where Spark did not tell in time."""
    steps: tuple[StepDetail, ...]
    sources: tuple[SourceDetail, ...]
    watermark: IsoTime | None
    """With which the batch ran."""
    watermark_after: IsoTime | None
    restore: ResumeHint | None
    """How to start from it; None if its files are gone."""


def checkpoint_detail(job: JobHome, run: RunHome, id: int, sizes: SizeBook) -> CheckpointDetail:
    """Read a checkpoint's record and measure its files."""
    record = run.record_at(id)
    if record is None:
        raise NotFoundError(
            f"run {run.id} of job '{job.name}' has no checkpoint ck:{id}",
            remedy="see the checkpoints of the job",
        )
    line = line_of(run, CheckpointRow.of(record), sizes)
    graph = run.graph()
    made = run.read()
    measured = sizes.of(run, made.uid, id, retained=line.restorable and not line.pinned)
    operators = {int(s["operator_id"]): str(s["id"]) for s in graph["steps"] if s["stateful"]}
    parts = by_step(measured, operators) if measured else {}
    parallelism = made.parallelism
    restore = None
    if line.restorable:
        text = f"a new run starts from {line.name}; existing runs stay"
        restore = resume_hint(job, made, text, snapshot=line.name)
    return CheckpointDetail(
        line,
        tuple(map(_stage, record.stages)),
        tuple(
            _step(step, parts.get(step.name, []), parallelism)
            for step in step_figures(graph, record)
            if step.named or step.is_counted
        ),
        tuple(_source(name, offsets) for name, offsets in record.sources.items()),
        record.watermark,
        record.watermark_after,
        restore,
    )


def _step(step: StepFigures, parts: list[PartSize], parallelism: int) -> StepDetail:
    batch, totals = step.batch, step.totals
    side = {"missing": batch.missing, "late": batch.late, **batch.side}
    return StepDetail(
        id=step.name,
        kind=step.kind,
        records_in=batch.records_in,
        table_in=batch.table,
        records_out=batch.records_out,
        side={name: count for name, count in side.items() if count is not None},
        total_records_in=totals.records_in,
        total_records_out=totals.records_out,
        state_rows=step.state_rows,
        state_size=step.state_bytes,
        checkpointed_size=sum(part.written for part in parts) if parts else None,
        full_size=sum(part.full for part in parts) if parts else None,
        num_subtasks=parallelism,
        num_acknowledged_subtasks=parallelism,
        partitions=tuple(
            PartitionDetail(part.partition, part.written, part.full, part.files) for part in parts
        ),
        partition_sizes=statistics(part.full for part in parts),
    )


def _stage(stage: StageRecord) -> StageView:
    times = (stage.at_ms, stage.took_ms, stage.run_ms, stage.longest_ms)
    began, took, worked, longest = (timedelta(milliseconds=ms) for ms in times)
    return StageView(tuple(stage.steps), began, took, stage.tasks, worked, longest)


def _source(name: str, offsets: SourceOffsets) -> SourceDetail:
    return SourceDetail(
        name,
        offsets.behind(),
        tuple(
            OffsetDetail(
                part,
                offsets.start.get(part),
                offsets.end[part],
                offsets.latest.get(part),
                _between(offsets.start.get(part, 0), offsets.end[part]),
                _between(offsets.end[part], offsets.latest.get(part)),
            )
            for part, _ in offsets.places()
        ),
    )


def _between(start: Offset | None, end: Offset | None) -> int | None:
    """Records between two offsets; ids of messages do not say how many."""
    return max(0, end - start) if isinstance(start, int) and isinstance(end, int) else None
