"""The ways from a shared stream to its users: stateless steps applied, each row counted once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate import jvm
from headgate.graph.plan import (
    CARRIED,
    BuiltJob,
    Node,
    ProcessOp,
    SinkOp,
    StatelessOp,
    UnionOp,
    WindowOp,
)


@dataclass(frozen=True)
class Arrival:
    """Rows as they arrive at a sink or at a stateful step."""

    node: Node
    rows: DataFrame
    input: int = 0
    """Which of the step's inputs they are for."""


@dataclass(frozen=True)
class _Rows:
    """The same rows as the first user gets them, with counters, and as every other user does.

    Rows that several users share pass the steps before the fork once: only one user may count.
    """

    counted: DataFrame
    plain: DataFrame


def arrivals(job: BuiltJob, node: Node, outputs: Mapping[str, DataFrame]) -> Iterator[Arrival]:
    """Every way from a node's outputs through stateless steps to sinks and stateful steps."""
    for output, rows in outputs.items():
        yield from _onward(job, node, output, _Rows(rows, rows))


def _onward(job: BuiltJob, node: Node, output: str, rows: _Rows) -> Iterator[Arrival]:
    users = [
        (user, input)
        for user in job.nodes
        for input, edge in enumerate(user.step.inputs)
        if edge.step == node.step.id and edge.output == output
    ]
    for number, (user, input) in enumerate(users):
        given = rows if number == 0 else _Rows(rows.plain, rows.plain)
        yield from _through(job, user, input, given)


def _through(job: BuiltJob, user: Node, input: int, rows: _Rows) -> Iterator[Arrival]:
    operation = user.operation
    if isinstance(operation, SinkOp):
        yield Arrival(user, _count(rows.counted, user, "records_in", "records_out"))
    elif isinstance(operation, UnionOp):
        schema = user.schemas["out"]
        same = _Rows(conform(rows.counted, schema), conform(rows.plain, schema))
        yield from _onward(job, user, "out", same)
    elif isinstance(operation, StatelessOp):
        counted = rows.counted
        if user.step.named:
            counted = _count(
                applied(operation, _count(counted, user, "records_in")), user, "records_out"
            )
        else:
            counted = applied(operation, counted)
        yield from _onward(job, user, "out", _Rows(counted, applied(operation, rows.plain)))
    else:
        yield Arrival(user, rows.counted, input)


Needs = Mapping[str, set[str]]
"""By step, the hidden columns that its rows carry because of a window behind it."""


def carried_columns(job: BuiltJob) -> Needs:
    """What the rows of each step carry to the windows behind them."""
    needs: dict[str, set[str]] = {node.step.id: set() for node in job.nodes}
    for node in reversed(job.nodes):
        operation = node.operation
        own: Collection[str] = needs[node.step.id]
        if isinstance(operation, WindowOp | ProcessOp):
            own = operation.needs
        for edge in node.step.inputs:
            needs[edge.step].update(own)
    return needs


def applied(operation: StatelessOp, rows: DataFrame) -> DataFrame:
    """What a stateless step makes of rows; it neither sees nor loses what they carry."""
    hidden = [c for c in CARRIED if c in rows.columns]
    made = operation.apply(rows.drop(*hidden) if hidden else rows)
    for name in hidden:
        # rows that are made anew have lost it, and no window is behind them
        made = jvm.carry(rows, made, name) or made
    return made


def _count(rows: DataFrame, node: Node, *outputs: str) -> DataFrame:
    for output in outputs:
        rows = jvm.count(rows, node.step.id, output)
    return rows


def conform(rows: DataFrame, schema: StructType) -> DataFrame:
    """The same columns in the order and with the types of a schema."""
    carried = [c for c in CARRIED if c in rows.columns]
    return rows.select(
        *[F.col(f"`{f.name}`").cast(f.dataType).alias(f.name) for f in schema.fields], *carried
    )


def union_of(frames: Sequence[DataFrame]) -> DataFrame:
    """The union of frames of one schema, some of which carry rows that are bound for sinks."""
    riding = [f.schema[jvm.OUT].dataType for f in frames if jvm.OUT in f.columns]
    result: DataFrame | None = None
    for frame in frames:
        if riding and jvm.OUT not in frame.columns:
            frame = frame.withColumn(jvm.OUT, F.lit(None).cast(riding[0]))
        result = frame if result is None else result.unionByName(frame)
    assert result is not None
    return result
