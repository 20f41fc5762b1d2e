"""A sink step: rows that leave the job through a connector."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql.types import BooleanType, StructField, StructType

from headgate import jvm
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr, Sink
from headgate.graph.analysis import analysed, column, expression_text
from headgate.graph.hidden import DELETED, PREFIX
from headgate.graph.operation import Operation, Shape
from headgate.graph.plan import Node
from headgate.graph.port import Port

PARTS = "parts"
"""The schema of a sink node: the hidden columns from which the parts of its records are made."""


@dataclass(frozen=True)
class SinkStep(Operation):
    """Rows that leave the job; `parts` are the expressions of a record's key, headers, ..."""

    to: Sink
    parts: Mapping[str, str] = field(default_factory=dict)
    kind = "sink"
    shape = Shape.SINK

    @property
    def sink(self) -> Sink:
        return self.to

    def writing(self, sink: Sink) -> Operation:
        return SinkStep(sink, self.parts)

    def config(self) -> Mapping[str, Any]:
        own = dict(self.to.config())
        return {**self.parts, "own": own} if own else dict(self.parts)

    def labels(self) -> Mapping[str, str]:
        return {**self.parts, **{name: str(value) for name, value in self.to.config().items()}}

    @property
    def takes_changes(self) -> bool:
        return True

    def check(self) -> None:
        self.to.check()

    @classmethod
    def detail_1(cls, address: str, config: Mapping[str, Any]) -> dict[str, str]:
        return {"address": address, **config}


def add_sink(port: Port, name: str, sink: Sink) -> Node:
    """Write a sink down."""
    plan = port.plan
    plan.check_name(name, "sink")
    if not isinstance(sink, Sink):
        raise GraphError(
            "sink must be a topic, FilesSink, ForeachBatchSink, an object of a PythonSink, ...",
            step=name,
            got=repr(sink),
            remedy="for instance hg.topic('log:data/out')",
            location=user_location(),
        )
    with _located(name):
        sink.describe()
    parts = StructType()
    for part, expression in sink.hidden_columns().items():
        parts = parts.add(_part(port, name, sink, part, expression))
    if port.changes is not None:
        _check_changes(port, name, sink, port.changes)
        parts = parts.add(DELETED, BooleanType())
    with _located(name):
        sink.check_rows(port.schema)
        sink = sink.with_rows(port.schema).in_session(plan.spark)
    texts = {
        part: expression_text(expression) for part, expression in sink.hidden_columns().items()
    }
    return plan.add(
        name,
        SinkStep(sink, texts),
        {PARTS: parts},
        inputs=[port.edge],
        outputs=(),
        schema=port.schema,
    )


def _part(port: Port, step: str, sink: Sink, part: str, expression: Expr) -> StructField:
    """The column of a part of the records that a sink writes, in the type that it writes."""
    made = column(expression)
    typed = analysed(port.prototype(), step, lambda df: df.select(made), f"the sink's {part}")
    port.plan.note_changing(step, typed)
    with _located(step):
        return StructField(PREFIX + part, sink.hidden_type(part, typed.schema[0].dataType))


def _check_changes(port: Port, step: str, sink: Sink, key: tuple[str, ...]) -> None:
    """Refuse a sink that could not find the row that a change replaces or deletes."""
    columns = ", ".join(key) or "no column, as there is one row in all"
    written = f": key={sink.key_text(key)}" if key else " that is always the same"
    remedy = f"give it a key{written}"
    if not sink.takes_changes:
        raise GraphError(
            f"the rows of '{port.node.step.id}' are changes by {columns}, and this sink cannot"
            " delete or replace a row",
            step=step,
            got=sink.describe(),
            remedy="write them to a topic with a key, or merge them into a table by key",
            location=user_location(),
        )
    read: list[str] = []
    if sink.key is not None:
        made = column(sink.key)
        read = jvm.columns_read(
            analysed(port.prototype(), step, lambda df: df.select(made), "the sink's key")
        )
    if sink.key is None or set(read) != set(key):
        raise GraphError(
            f"the sink's key must be made of {columns}, by which the rows of"
            f" '{port.node.step.id}' are changes",
            step=step,
            got="no key" if sink.key is None else expression_text(sink.key),
            remedy=remedy,
            location=user_location(),
        )


@contextmanager
def _located(step: str) -> Iterator[None]:
    """Let errors of a connector name the step, and the line where it was written."""
    try:
        yield
    except GraphError as error:
        error.step = error.step or step
        error.location = error.location or user_location()
        raise
