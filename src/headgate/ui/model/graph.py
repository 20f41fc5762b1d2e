"""The graph of a job with what went over it: nodes, edges, counts, state and watermarks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headgate.graph.model import Graph, Step
from headgate.home.model import CheckpointRecord
from headgate.home.read.counts import StepCounts
from headgate.home.read.steps import StepFigures, step_figures
from headgate.ui.model.load import level, skew_level
from headgate.ui.model.roles import Role, describe, labels_of, role_of
from headgate.ui.model.view import IsoTime, View


@dataclass(frozen=True)
class SideView(View):
    """An output beside the main one, and the rows that left by it."""

    output: str
    records: int | None


@dataclass(frozen=True)
class NodeView(View):
    """A step with its counts since the run's line of parents began."""

    id: str
    kind: str
    role: Role
    named: bool
    description: str
    """What it computes, or where it reads or writes."""
    location: str | None
    """The line of the job's file."""
    parallelism: int
    records_in: int | None
    """Of streams; the rows of a lookup's table are `table_in`."""
    table_in: int | None
    records_out: int | None
    """Of the main output; nothing where the step is not counted."""
    unmatched: int | None
    """Rows of the main output that found no table row."""
    batch_records_in: int | None
    batch_records_out: int | None
    """The same of the newest checkpoint alone."""
    side: tuple[SideView, ...]
    waiting: int | None
    """Rows that wait in it."""
    late: int | None
    """Rows that came too late for it."""
    dropped: int | None
    """Rows that it has dropped, as it was configured to."""
    counted: Mapping[str, int]
    """What its function has counted with `ctx.count`."""
    stateful: bool
    state_rows: int | None
    state_bytes: int | None
    behind: int | None
    """Of a source: records that were there and are not in the newest checkpoint."""
    watermark: IsoTime | None
    batch_share: float | None
    """Of the newest batch: the part in which the busiest task of the step's stages worked."""
    busy_share: float | None
    """The same of all time, where the job runs: `batch_share` of the time that batches take."""
    busy_level: str | None
    """OK up to 10 %, LOW up to 50 %, HIGH above, as in Flink."""
    skew: float | None
    """The coefficient of variation of its rows over partitions, as in Flink; of the newest batch,
    and nothing where that has too few rows to say."""
    skew_level: str | None
    """OK up to 25 %, LOW up to 75 %, HIGH above."""
    computed_with: tuple[str, ...]
    """Other steps in its stages: the time is theirs as well."""
    detail: Mapping[str, str]
    schema: str


@dataclass(frozen=True)
class EdgeView(View):
    """Rows that go from an output of one step into another."""

    source: str
    output: str
    target: str
    records: int | None
    """Nothing where neither end counts them."""
    batch_records: int | None
    strategy: str
    """hash, where rows go to the partition of their key; else forward."""


@dataclass(frozen=True)
class GraphView(View):
    """A job's steps in the order they are written in."""

    nodes: tuple[NodeView, ...]
    edges: tuple[EdgeView, ...]
    warnings: tuple[str, ...]
    counted_at: IsoTime | None
    """When the counts were true: the end of the newest checkpoint."""
    checkpoint: int | None

    def node(self, id: str) -> NodeView:
        """The node of a step."""
        return next(node for node in self.nodes if node.id == id)


def graph_view(
    graph: Graph, record: CheckpointRecord | None, *, parallelism: int, busy: float | None = None
) -> GraphView:
    """The graph with the counts of a checkpoint; `busy` is the part of time that batches take."""
    figures = {one.name: one for one in step_figures(graph.to_json(), record)}
    totals = _Flow(graph, figures, {name: one.totals for name, one in figures.items()})
    batch = _Flow(graph, figures, {name: one.batch for name, one in figures.items()})
    return GraphView(
        tuple(
            _node(step, figures[step.id], record, totals, batch, parallelism, busy)
            for step in graph.steps
        ),
        tuple(
            EdgeView(
                edge.step,
                edge.output,
                step.id,
                totals.edge(edge.step, edge.output, step) if record else None,
                batch.edge(edge.step, edge.output, step) if record else None,
                "hash" if step.stateful else "forward",
            )
            for step in graph.steps
            for edge in step.inputs
        ),
        graph.warnings,
        record.completed_at if record else None,
        record.id if record else None,
    )


def _node(
    step: Step,
    figures: StepFigures,
    record: CheckpointRecord | None,
    totals: _Flow,
    batch: _Flow,
    parallelism: int,
    job_busy: float | None,
) -> NodeView:
    own, load = figures.totals, figures.load
    part = load.batch_share
    busy = part * job_busy if part is not None and job_busy is not None else None
    offsets = record.sources.get(step.id) if record else None
    sides = tuple(SideView(name, totals.out(step, name)) for name in step.side_outputs)
    return NodeView(
        id=step.id,
        kind=step.kind,
        role=role_of(step),
        named=step.named,
        description=describe(step),
        location=step.location,
        parallelism=len(offsets.end) if offsets and offsets.end else parallelism,
        records_in=totals.into(step) if record else None,
        table_in=own.table if record else None,
        records_out=totals.out(step, "out") if record else None,
        unmatched=own.unmatched,
        batch_records_in=batch.into(step) if record else None,
        batch_records_out=batch.out(step, "out") if record else None,
        side=sides,
        waiting=own.waiting,
        late=own.late,
        dropped=own.dropped,
        counted=own.counted,
        stateful=step.stateful,
        state_rows=figures.state_rows if record else None,
        state_bytes=figures.state_bytes if record else None,
        behind=offsets.behind() if offsets else None,
        watermark=figures.watermark,
        batch_share=part,
        busy_share=busy,
        busy_level=level(busy) if busy is not None else None,
        skew=load.skew,
        skew_level=skew_level(load.skew) if load.skew is not None else None,
        computed_with=load.together,
        detail=labels_of(step),
        schema=step.schema,
    )


class _Flow:
    """Rows over each edge, from the counts of the steps that count.

    Unnamed selects, filters and unions count nothing. What leaves them is what the step behind
    them says came in, if that is its only input; else it follows from what came into them.
    """

    def __init__(
        self,
        graph: Graph,
        figures: Mapping[str, StepFigures],
        counts: Mapping[str, StepCounts],
    ) -> None:
        self._figures = figures
        self._counts = counts
        self._steps = {step.id: step for step in graph.steps}
        self._users: dict[tuple[str, str], list[Step]] = {}
        for step in graph.steps:
            for edge in step.inputs:
                self._users.setdefault((edge.step, edge.output), []).append(step)

    def into(self, step: Step) -> int | None:
        """Rows that came into a step."""
        if not step.inputs:
            return None
        counted = self._counted_in(step)
        if counted is not None:
            return counted
        return self._sum_of_inputs(step)

    def out(self, step: Step, output: str) -> int | None:
        """Rows that left by an output."""
        counted = self._counted_out(step, output)
        if counted is not None:
            return counted
        behind = self._taken_behind(step, output)
        if behind is None and (step.one_for_one or len(step.inputs) > 1):
            return self._sum_of_inputs(step)
        return behind

    def _taken_behind(self, step: Step, output: str) -> int | None:
        """What a step behind this one says it got from it; only looks onward, so it ends."""
        for user in self._users.get((step.id, output), ()):
            if len(user.inputs) != 1:
                continue
            taken = self._counted_in(user)
            if taken is None and user.one_for_one:
                taken = self._taken_behind(user, "out")
            if taken is not None:
                return taken
        return None

    def edge(self, source: str, output: str, target: Step) -> int | None:
        """Rows that went over an edge."""
        if len(target.inputs) == 1:
            counted = self._counted_in(target)
            if counted is not None:
                return counted
        return self.out(self._steps[source], output)

    def _sum_of_inputs(self, step: Step) -> int | None:
        parts = [self.out(self._steps[edge.step], edge.output) for edge in step.inputs]
        known = [rows for rows in parts if rows is not None]
        return sum(known) if len(known) == len(parts) else None

    def _counted_in(self, step: Step) -> int | None:
        return self._counts[step.id].records_in if self._counts_rows(step) else None

    def _counted_out(self, step: Step, output: str) -> int | None:
        return self._counts[step.id].left_by(output) if self._counts_rows(step) else None

    def _counts_rows(self, step: Step) -> bool:
        """Named steps count their rows; of others some do."""
        return self._figures[step.id].is_counted or step.named
