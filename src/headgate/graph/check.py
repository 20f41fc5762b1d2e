"""Checks of the whole job, after every step has been checked as it was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headgate.base.errors import GraphError, HeadgateError, Location
from headgate.connectors.base import Source
from headgate.graph import Step
from headgate.graph.plan import (
    POSITION,
    LookupOp,
    Node,
    Plan,
    ProcessOp,
    SinkOp,
    SourceOp,
    TableOp,
    WindowOp,
)


def warnings_of(plan: Plan, *, check_connectors: bool) -> tuple[str, ...]:
    """What is odd but allowed; raises for what is not."""
    if not any(isinstance(n.operation, SinkOp) for n in plan.nodes):
        raise GraphError(
            f"the job '{plan.job}' has no sink, so it would do nothing",
            remedy="end a stream with .sink(name, ...)",
        )
    _refuse_changing(plan)
    if check_connectors:
        _check_connectors(plan)
    return (*_unused(plan), *_at_least_once(plan), *_late_after_waiting(plan))


def _refuse_changing(plan: Plan) -> None:
    """Refuse what an exactly-once sink would write differently when its batch is replayed."""
    inputs = {n.step.id: [e.step for e in n.step.inputs] for n in plan.nodes}
    for sink in plan.nodes:
        if not isinstance(sink.operation, SinkOp) or not sink.operation.sink.exactly_once:
            continue
        way, seen = [sink.step.id], set[str]()
        while way:
            id = way.pop()
            if id in seen:
                continue
            seen.add(id)
            way += inputs[id]
            if id in plan.changing:
                step = next(n.step for n in plan.nodes if n.step.id == id)
                raise GraphError(
                    f"{plan.changing[id]} gives another value when a batch is replayed, so the"
                    f" sink '{sink.step.id}' cannot be exactly once",
                    step=id,
                    remedy="derive the value from the record instead",
                    location=location_of(step),
                )


def location_of(step: Step) -> Location | None:
    """Where a step was written."""
    file, _, line = (step.location or "").rpartition(":")
    return Location(file, int(line)) if file and line.isdigit() else None


def behind(nodes: Sequence[Node], first: Node) -> Iterator[Node]:
    """The steps that get rows of a step, in the order in which they were written."""
    reached = {first.step.id}
    for node in nodes:
        if any(edge.step in reached for edge in node.step.inputs):
            reached.add(node.step.id)
            yield node


def goes_by_event_time(node: Node) -> bool:
    """Whether a step has windows or timers of event time, for which rows can be late."""
    operation = node.operation
    if isinstance(operation, WindowOp):
        return POSITION not in operation.needs
    return isinstance(operation, ProcessOp) and any(
        timer.clock == "event" for timer in operation.shape.timers
    )


def _late_after_waiting(plan: Plan) -> Iterator[str]:
    for node in plan.nodes:
        if not isinstance(node.operation, LookupOp) or node.operation.holds:
            continue
        late = [n.step.id for n in behind(plan.nodes, node) if goes_by_event_time(n)]
        if late:
            yield (
                f"step '{node.step.id}': rows that have waited may be late for"
                f" {', '.join(map(repr, late))}: hold_watermark=False lets the watermark go on."
                f" Read what is late, or leave it out [{node.step.location}]"
            )


def _unused(plan: Plan) -> Iterator[str]:
    used = {(e.step, e.output) for n in plan.nodes for e in n.step.inputs}
    for step in (n.step for n in plan.nodes):
        for side in step.side_outputs:
            if (step.id, side) not in used:
                yield (
                    f"step '{step.id}': its side output '{side}' goes nowhere, so those rows are"
                    f" counted and dropped [{step.location}]"
                )
        if "out" in step.outputs and not any(s == step.id for s, _ in used):
            yield f"step '{step.id}': nothing reads it, so it is not run [{step.location}]"


def _check_connectors(plan: Plan) -> None:
    for node in plan.nodes:
        operation = node.operation
        if isinstance(operation, SourceOp | TableOp) and isinstance(operation.source, Source):
            _checked(operation.source.check, node.step)
            if isinstance(operation, SourceOp):
                _checked(operation.source.check_stream, node.step)
        elif isinstance(operation, SinkOp):
            _checked(operation.sink.check, node.step)
    _refuse_mixed_options(plan)


def _refuse_mixed_options(plan: Plan) -> None:
    """Refuse sinks that cannot share a transaction although they are on the same servers.

    Which sinks share one decides the names of markers. If an option could decide it, a changed
    option would hide the markers of a batch that is out, and the batch would be written again.
    """
    first: dict[str, tuple[Step, object]] = {}
    for node in plan.nodes:
        if not isinstance(node.operation, SinkOp) or not node.operation.sink.by_task:
            continue
        told = node.operation.sink.spec().options or {}
        shared = (told.get("client"), told.get("marker_topic"))
        servers = str((told.get("client") or {}).get("bootstrap.servers"))
        other, options = first.setdefault(servers, (node.step, shared))
        if options != shared:
            raise GraphError(
                f"its options are not those of the sink '{other.id}', with which it shares"
                " transactions",
                step=node.step.id,
                remedy="give all exactly-once sinks on the same servers the same options",
                location=location_of(node.step),
            )


def _checked(check: Callable[[], None], step: Step) -> None:
    try:
        check()
    except HeadgateError as error:
        error.step = error.step or step.id
        error.location = error.location or location_of(step)
        raise


def _at_least_once(plan: Plan) -> Iterator[str]:
    for node in plan.nodes:
        if isinstance(node.operation, SinkOp) and not node.operation.sink.exactly_once:
            yield (
                f"step '{node.step.id}': a {node.operation.sink.describe()} sink is at least once:"
                " after a crash the last batch may come again"
            )
