"""Checks of the whole job, after every step has been checked as it was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from headgate.base.errors import GraphError, HeadgateError, Location
from headgate.graph.model import Step
from headgate.graph.operation import Shape
from headgate.graph.plan import Node, Plan


def warnings_of(plan: Plan, *, check_connectors: bool) -> tuple[str, ...]:
    """What is odd but allowed; raises for what is not."""
    if not any(n.operation.sink is not None for n in plan.nodes):
        raise GraphError(
            f"the job '{plan.job}' has no sink, so it would do nothing",
            remedy="end a stream with .sink(name, ...)",
        )
    _refuse_changing(plan)
    if check_connectors:
        for node in plan.nodes:
            _checked(node.operation.check, node.step)
        _refuse_mixed_options(plan)
    return (
        *_unused(plan),
        *_at_least_once(plan),
        *_late_after_waiting(plan),
        *_held_by_tables(plan),
    )


def _refuse_changing(plan: Plan) -> None:
    """Refuse what an exactly-once sink would write differently when its batch is replayed."""
    inputs = {n.step.id: [e.step for e in n.step.inputs] for n in plan.nodes}
    for node in plan.nodes:
        if node.operation.sink is None or not node.operation.sink.exactly_once:
            continue
        ahead, seen = [node.step.id], set[str]()
        while ahead:
            id = ahead.pop()
            if id in seen:
                continue
            seen.add(id)
            ahead += inputs[id]
            if id in plan.changing:
                raise GraphError(
                    f"{plan.changing[id]} gives another value when a batch is replayed, so the"
                    f" sink '{node.step.id}' cannot be exactly once",
                    step=id,
                    remedy="derive the value from the record instead",
                    location=location_of(plan.node(id).step),
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


def _late_after_waiting(plan: Plan) -> Iterator[str]:
    for node in plan.nodes:
        if not node.operation.holds_rows or node.operation.holds_watermark:
            continue
        late = [n.step.id for n in behind(plan.nodes, node) if n.operation.by_event_time]
        if late:
            yield (
                f"step '{node.step.id}': rows that have waited may be late for"
                f" {', '.join(map(repr, late))}: hold_watermark=False lets the watermark go on."
                f" Read what is late, or leave it out [{node.step.location}]"
            )


def _held_by_tables(plan: Plan) -> Iterator[str]:
    """Tables are silent for long, and those who wait for the watermark wait for them, too."""
    others = any(
        n.operation.by_event_time
        or (n.operation.shape is Shape.ORIGIN and n.operation.event_time())
        for n in plan.nodes
    )
    for node in plan.nodes:
        time = node.operation.event_time()
        if others and node.operation.shape is Shape.TABLE and time and time["idle_after"] is None:
            yield (
                f"table '{node.step.id}': while it gives no rows the job's watermark waits for it:"
                f" give its event_time an idle_after if it may be silent [{node.step.location}]"
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


def _refuse_mixed_options(plan: Plan) -> None:
    """Refuse sinks that share transactions but not the settings that these depend on.

    Which sinks share one decides the names of markers. If an option could decide it, a changed
    option would hide the markers of a batch that is out, and the batch would be written again.
    """
    first: dict[str, tuple[Step, object]] = {}
    for node in plan.nodes:
        shared = node.operation.sink.shared_writer() if node.operation.sink else None
        if shared is None:
            continue
        other, settings = first.setdefault(shared.name, (node.step, shared.settings))
        if settings != shared.settings:
            raise GraphError(
                f"its options must be those of the sink '{other.id}', with which it shares "
                "transactions",
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
        sink = node.operation.sink
        if sink is not None and not sink.exactly_once:
            yield (
                f"step '{node.step.id}': a {sink.describe()} sink is at least once:"
                " after a crash the last batch may come again"
            )
