"""What a user declares of a top step: the key, n and the order, checked as they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql.types import StructField

from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr
from headgate.graph.analysis import analysed, column, expression_text
from headgate.graph.keys import key_fields
from headgate.graph.port import KeyedPort

RANK = "rank"
UNKEYED = "__hg_all"  # the key of all rows where there is none


def wrong(step: str, what: str, got: str, remedy: str) -> GraphError:
    """An error about something that a user gave to a top step."""
    return GraphError(what, step=step, got=got, remedy=remedy, location=user_location())


def checked_order(keyed: KeyedPort, name: str, n: int, by: Sequence[Expr]) -> list[StructField]:
    """The parts of the key; raises for what cannot be the key, n or order of a top step."""
    port, plan = keyed.port, keyed.port.plan
    plan.check_name(name, "top")
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise wrong(name, "n must be a number of rows greater than zero", repr(n), "give one")
    if not by:
        raise wrong(name, "by must name an order", "none", 'for instance by=F.desc("price")')
    fields = key_fields(plan, port.prototype(), keyed.keys, name)
    key = tuple(field.name for field in fields)
    texts = tuple(expression_text(k) for k in keyed.keys)
    if texts != key or not set(key) <= set(port.columns):
        remedy = "make the key a column first, with with_columns"
        raise wrong(name, "the key of a top step must be columns", ", ".join(texts), remedy)
    if RANK in port.columns:
        remedy = "rename it first, with select"
        raise wrong(name, f"the rows must not have a column '{RANK}'", RANK, remedy)
    made = [column(b) for b in by]
    ordered = analysed(port.prototype(), name, lambda df: df.sort(*made), "the order (by)")
    plan.note_changing(name, ordered)
    return fields


def other_order(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """Why rows that were kept under an old config are not those of a new one, if so.

    >>> other_order({"by": ["price"], "key": ["id"]}, {"by": ["price DESC"], "key": ["id"]})
    'its order was price and is price DESC'
    """
    for field, what in (("by", "its order"), ("key", "its key")):
        if old[field] != new[field]:
            was, now = (", ".join(config[field] or ["nothing"]) for config in (old, new))
            return f"{what} was {was} and is {now}"
    return ""
