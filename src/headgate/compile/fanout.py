"""A shared stream given to all of its users, computed once.

Users that are reached by select and filter steps alone are fed in one pass over the shared rows
(the kernel's Split): rows for sinks ride on beside the rows for the next stateful step, and pass
that step untouched. Where that is not possible (two stateful steps, Python functions on the way)
the shared stream goes through one shuffle that all users read (the kernel's Tee).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headgate import jvm
from headgate.compile.keys import arrival_keys, keyed
from headgate.compile.rows import Arrival
from headgate.compile.sinks import Sinks, hashable, sink_row
from headgate.graph.operation import Shape


@dataclass
class Outlets:
    """Where rows are left: at the stateful steps, and at the end of the query."""

    inputs: dict[str, list[DataFrame]] = field(default_factory=dict)
    leaves: list[DataFrame] = field(default_factory=list)
    unplaced: set[str] = field(default_factory=set)
    """Steps to which rows come in the partitions of their sources."""


Ways = Callable[[DataFrame], Sequence[Arrival]]


def fan_out(
    base: DataFrame, users: Sequence[Arrival], ways: Ways, sinks: Sinks, outlets: Outlets,
    partitions: int, *, placed: bool,
) -> None:  # fmt: skip
    """Bring the rows of `base` to every user; `ways` gives the users' rows made from another base.

    `placed` says that a keyed shuffle has decided which partition each row is in.
    """
    groups = _groups(base, users, ways)
    if len(groups) > 1:
        base = _shared(base, groups[0], partitions)
        placed = True
        groups = _groups(base, ways(base), ways)
    for number, group in enumerate(groups):
        # rows that ride along go with the first group; the others see live rows only
        leaf = _deliver(base, group, sinks, outlets, riders=number == 0)
        if not placed:
            outlets.unplaced.update(a.node.step.id for a in group.arrivals if not _is_sink(a))
        if leaf is not None:
            outlets.leaves.append(leaf if placed else sinks.placed(leaf, partitions))


@dataclass(frozen=True)
class _Group:
    """Users fed by one pass (`chain`), or one user that takes its rows as they are."""

    arrivals: tuple[Arrival, ...]
    chain: bool


def _groups(base: DataFrame, users: Sequence[Arrival], ways: Ways) -> list[_Group]:
    riders = jvm.OUT in base.columns
    # rows that ride to a sink do not pass an aggregation or a process function, which get the
    # others by themselves
    chained = [a for a in users if not _is_alone(a) and jvm.is_chain(base, a.rows)]
    steps = list(dict.fromkeys(a.node.step.id for a in chained if not _is_sink(a)))
    first = [a for a in chained if _is_sink(a) or a.node.step.id == steps[0]]
    groups = [_Group(tuple(first), True)] if first or riders else []
    for step in steps[1:]:
        groups.append(_Group(tuple(a for a in chained if a.node.step.id == step), True))
    plain = [number for number, a in enumerate(users) if a not in chained]
    if plain and riders:
        users = ways(base.where(F.col(jvm.OUT).isNull()))
    return groups + [_Group((users[number],), False) for number in plain]


def _is_sink(arrival: Arrival) -> bool:
    return arrival.node.operation.shape is Shape.SINK


def _is_alone(arrival: Arrival) -> bool:
    return not _is_sink(arrival) and not arrival.node.operation.rows_may_ride


def _deliver(
    base: DataFrame, group: _Group, sinks: Sinks, outlets: Outlets, *, riders: bool
) -> DataFrame | None:
    """Rows to the stateful step that they are for; or, if they are for sinks alone, back."""
    if not group.chain:
        (arrival,) = group.arrivals
        if _is_sink(arrival):
            return sinks.leaf(arrival.node.step.id, sink_row(arrival))
        outlets.inputs.setdefault(arrival.node.step.id, []).append(keyed(arrival))
        return None
    branches, step = [], None
    spread: list[str] = []
    for arrival in group.arrivals:
        if _is_sink(arrival):
            branches.append((sink_row(arrival), sinks.number(arrival.node.step.id)))
        else:
            branches.append((keyed(arrival), -1))
            step = arrival.node.step.id
            spread = arrival_keys(arrival)
    split = jvm.split(base, branches, sink_schemas=sinks.schemas, spread_by=spread, riders=riders)
    assert split is not None, "every branch was found to be a chain"
    if step is None:
        return split
    outlets.inputs.setdefault(step, []).append(split)
    return None


def _shared(base: DataFrame, first: _Group, partitions: int) -> DataFrame:
    """The stream behind one shuffle: by the first keyed user's key, which then needs no other."""
    keys: list[str] = []
    for arrival in first.arrivals:
        if not _is_sink(arrival):
            keys = [k for k in arrival_keys(arrival) if k in base.columns]
    keys = keys or hashable(base.schema)
    columns = [F.col(f"`{k}`") for k in keys]
    return jvm.tee(base.repartition(partitions, *columns) if columns else base.repartition(1))
