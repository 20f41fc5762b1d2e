"""Checks of the whole job, after every step has been checked as it was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from headgate.connectors.base import Source
from headgate.errors import GraphError, HeadgateError
from headgate.plan import Plan, SinkOp, SourceOp, TableOp


def warnings_of(plan: Plan, *, check_connectors: bool) -> tuple[str, ...]:
    """What is odd but allowed; raises for what is not."""
    if not any(isinstance(n.operation, SinkOp) for n in plan.nodes):
        raise GraphError(
            f"the job '{plan.job}' has no sink, so it would do nothing",
            remedy="end a stream with .sink(name, ...)",
        )
    if check_connectors:
        _check_connectors(plan)
    return (*_unused(plan), *_at_least_once(plan))


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
            _checked(operation.source.check, node.step.id)
        elif isinstance(operation, SinkOp):
            _checked(operation.sink.check, node.step.id)


def _checked(check: Callable[[], None], step: str) -> None:
    try:
        check()
    except HeadgateError as error:
        error.step = error.step or step
        raise


def _at_least_once(plan: Plan) -> Iterator[str]:
    for node in plan.nodes:
        if isinstance(node.operation, SinkOp) and not node.operation.sink.exactly_once:
            yield (
                f"step '{node.step.id}': a {node.operation.sink.describe()} sink is at least once:"
                " after a crash the last batch may come again"
            )
