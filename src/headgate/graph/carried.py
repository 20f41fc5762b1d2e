"""Whether rows still carry, to a window, what their source gave them: event time and position."""

from __future__ import annotations

from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from headgate import jvm
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Source
from headgate.graph.plan import (
    EVENT_TIME,
    POSITION,
    Node,
    Plan,
    ProcessOp,
    SourceOp,
    StatelessOp,
    UnionOp,
    WindowOp,
)
from headgate.steps.process.arrow import ArrowProcess

_WHAT = {EVENT_TIME: "event time", POSITION: "place in a topic"}
_TYPES = {EVENT_TIME: TimestampType(), POSITION: LongType()}


def check_carried(
    plan: Plan, node: Node, output: str, step: str, name: str, *, may_lack: bool = False
) -> None:
    """Refuse a stream whose rows have lost what they carry, or never had it.

    `may_lack`: those of windows, and of sources that are no topics, need not have it.
    """
    operation = node.operation
    if may_lack and isinstance(operation, SourceOp | WindowOp):
        return
    if isinstance(operation, SourceOp):
        _check_source(operation, node.step.id, output, step, name)
    elif isinstance(operation, ProcessOp):
        _check_process(plan, node, step, name)
    elif isinstance(operation, WindowOp):
        _check_window(node.step.id, output, step, name)
        if POSITION in operation.needs:  # its rows have the time of the last that it counted
            (edge,) = node.step.inputs
            check_carried(plan, _node(plan, edge.step), edge.output, step, name)
    else:
        # a lookup's first input is its stream
        edges = node.step.inputs if isinstance(operation, UnionOp) else node.step.inputs[:1]
        for edge in edges:
            above = _node(plan, edge.step)
            check_carried(plan, above, edge.output, step, name, may_lack=may_lack)
    if isinstance(operation, StatelessOp):
        (edge,) = node.step.inputs
        schema = _node(plan, edge.step).schemas[edge.output]
        rows = plan.prototype(StructType([*schema.fields, StructField(name, _TYPES[name])]))
        if jvm.carry(rows, operation.apply(rows.drop(name)), name) is None:
            raise GraphError(
                f"the rows of '{node.step.id}' are made anew, so they have no {_WHAT[name]}",
                step=step,
                remedy="use expressions in it instead of functions over whole batches",
                location=user_location(),
            )


def has_carried(plan: Plan, node: Node, output: str, name: str) -> bool:
    """Whether the rows of a stream carry something."""
    try:
        check_carried(plan, node, output, "", name)
    except GraphError:
        return False
    return True


def _check_process(plan: Plan, node: Node, step: str, name: str) -> None:
    """Its rows have the time of the row or timer that they came from, and an order of their own."""
    inputs = [(_node(plan, edge.step), edge.output) for edge in node.step.inputs]
    operation = node.operation
    assert isinstance(operation, ProcessOp)
    if name == EVENT_TIME and isinstance(operation.function, ArrowProcess):
        raise GraphError(
            f"the rows of '{node.step.id}' have no {_WHAT[name]}: its function gives whole batches",
            step=step,
            remedy="make the function a hg.Process",
            location=user_location(),
        )
    if name == EVENT_TIME and not any(has_carried(plan, n, output, name) for n, output in inputs):
        raise GraphError(
            f"the rows of '{node.step.id}' have no {_WHAT[name]}: none of its inputs has one",
            step=step,
            remedy='give a source one: event_time=hg.event_time("column")',
            location=user_location(),
        )


def _check_source(operation: SourceOp, source: str, output: str, step: str, name: str) -> None:
    there = operation.watermark is not None
    remedy = 'give the source one: event_time=hg.event_time("column")'
    if name != EVENT_TIME:
        there = isinstance(operation.source, Source)
        remedy = "read a topic: rows are counted in its order"
    if not there or output != "out":
        raise GraphError(
            f"the rows of source '{source}' have no {_WHAT[name]}",
            step=step,
            remedy=remedy,
            location=user_location(),
        )


def _check_window(window: str, output: str, step: str, name: str) -> None:
    if name != EVENT_TIME:
        raise GraphError(
            f"the rows of the window '{window}' have no order in which they could be counted",
            step=step,
            remedy="use a window of time",
            location=user_location(),
        )
    if output != "out":
        raise GraphError(
            f"the late rows of '{window}' are behind the watermark already",
            step=step,
            remedy="use a longer allowed_lateness there",
            location=user_location(),
        )


def _node(plan: Plan, id: str) -> Node:
    return next(n for n in plan.nodes if n.step.id == id)
