"""Aggregates of users: what an expression must hold to be one."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructField

from headgate import jvm
from headgate.base.errors import GraphError, user_location
from headgate.graph.analysis import analysed, expression_text
from headgate.graph.plan import Plan

_ALIAS = re.compile(r" as (`[^`]+`|[^()]+)$", re.IGNORECASE)


def results(
    plan: Plan,
    prototype: DataFrame,
    aggregates: Sequence[Column],
    step: str,
    kind: str,
    *,
    ordered: bool = True,
) -> tuple[list[StructField], bool]:
    """The columns of the aggregates of a step, and whether one depends on the places of rows.

    `ordered` says whether the step knows these places. Raises for what cannot be an aggregate.
    """
    if not aggregates:
        raise GraphError(
            f"{kind} must have at least one aggregate",
            step=step,
            remedy='give at least one, for instance F.count("*").alias("n")',
            location=user_location(),
        )
    for aggregate in aggregates:
        if not isinstance(aggregate, Column):
            raise GraphError(
                "an aggregate must be a Column",
                step=step,
                got=repr(aggregate),
                remedy='give one, for instance F.sum("price").alias("total")',
                location=user_location(),
            )
        if not _ALIAS.search(expression_text(aggregate)):
            raise GraphError(
                f"the aggregate {expression_text(aggregate)} must have a name",
                step=step,
                remedy='give it one with .alias("..."): its state is found by it',
                location=user_location(),
            )
    found = analysed(prototype, step, lambda df: df.groupBy().agg(*aggregates), "an aggregate")
    problem = jvm.window_problem(found)
    if problem is not None:
        raise GraphError(
            f"{problem}, which {kind} cannot use",
            step=step,
            remedy="use another aggregate function",
            location=user_location(),
        )
    plan.note_changing(step, jvm.replayable(found, ordered=ordered))
    return [StructField(f.name, f.dataType) for f in found.schema.fields], jvm.needs_order(found)
