"""Keys of streams: what an expression must hold to be one, and how keys are written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql.types import StructField

from headgate import jvm
from headgate.base.errors import GraphError, user_location
from headgate.connectors.base import Expr
from headgate.graph.analysis import analysed, column, expression_text
from headgate.graph.plan import Plan


def key_fields(
    plan: Plan, prototype: DataFrame, keys: Sequence[Expr], step: str
) -> list[StructField]:
    """The parts of a key, by name and type; raises for what cannot be one."""
    for key in keys:
        if not isinstance(key, str | Column):
            raise GraphError(
                "a key must be a column or a SQL expression",
                step=step,
                got=repr(key),
                remedy="name columns, each by itself",
                location=user_location(),
            )
    made = [column(k) for k in keys]
    found = analysed(prototype, step, lambda df: df.select(*made), "the key")
    if len(found.columns) != len(keys) or not jvm.is_chain(prototype, found):
        raise GraphError(
            "a key must be one value of each row",
            step=step,
            got=", ".join(map(expression_text, keys)),
            remedy="name the columns, each by itself; aggregate or explode in a step before",
            location=user_location(),
        )
    plan.note_changing(step, found)
    problem = jvm.window_problem(found)
    if problem is not None:
        raise GraphError(
            f"{problem}, which cannot be a key",
            step=step,
            remedy="name a column",
            location=user_location(),
        )
    for field, key in zip(found.schema.fields, keys, strict=True):
        kind = field.dataType.simpleString()
        if "map<" in kind or "variant" in kind:
            raise GraphError(
                f"the key {expression_text(key)} must be of a type whose values can be compared",
                step=step,
                got=kind.upper(),
                remedy="use parts of it as the key",
                location=user_location(),
            )
    return [StructField(f.name, f.dataType) for f in found.schema.fields]


def written_keys(
    inputs: Mapping[str, Sequence[Expr]], names: Sequence[str]
) -> dict[str, list[str]]:
    """By input, keys that are more than columns of their names.

    >>> written_keys({"orders": ["id"], "payments": ["upper(order)"]}, ["id"])
    {'payments': ['upper(order)']}
    """
    texts = {input: [expression_text(key) for key in keys] for input, keys in inputs.items()}
    return {input: written for input, written in texts.items() if written != list(names)}


def other_key(old: Mapping[str, Sequence[str]], new: Mapping[str, Sequence[str]]) -> str:
    """What to know where a key is computed in another way: its values may mean others now.

    >>> other_key({"": ["id"]}, {"": ["upper(id) AS id"]})
    'the key was id and is upper(id) AS id: state goes on by the values of the new one'
    """
    for input in (name for name in new if name in old):
        was, now = ", ".join(old[input]), ", ".join(new[input])
        if was != now:
            of = f" of {input}" if input else ""
            return f"the key{of} was {was} and is {now}: state goes on by the values of the new one"
    return ""
