"""The ways from a shared stream to its users: stateless steps applied, each row counted once."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame

from headgate import jvm
from headgate.compile.rows import Arrival
from headgate.graph.operation import Shape
from headgate.graph.plan import BuiltJob, Node


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
    shape = user.operation.shape
    if shape is Shape.SINK:
        yield Arrival(user, _count(rows.counted, user, "records_in", "records_out"))
    elif shape is Shape.STATELESS:
        counted = rows.counted
        if user.step.named:
            made = user.operation.through(user, _count(counted, user, "records_in"))
            counted = _count(made, user, "records_out")
        else:
            counted = user.operation.through(user, counted)
        plain = user.operation.through(user, rows.plain)
        yield from _onward(job, user, "out", _Rows(counted, plain))
    else:
        yield Arrival(user, rows.counted, input)


Needs = Mapping[str, set[str]]
"""By step, the hidden columns that its rows carry because of a step behind it."""


def carried_columns(job: BuiltJob) -> Needs:
    """What the rows of each step carry to the steps behind them."""
    needs: dict[str, set[str]] = {node.step.id: set() for node in job.nodes}
    for node in reversed(job.nodes):
        # what a step needs it also gives, in rows that it makes anew
        own: Collection[str] = node.operation.needs or needs[node.step.id]
        for edge in node.step.inputs:
            needs[edge.step].update(own)
    return needs


def _count(rows: DataFrame, node: Node, *outputs: str) -> DataFrame:
    for output in outputs:
        rows = jvm.count(rows, node.step.id, output)
    return rows
