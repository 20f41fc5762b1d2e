"""transform: any stateless PySpark code, as a named step."""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame

from headgate import jvm
from headgate.base.errors import GraphError, user_location
from headgate.graph.analysis import analysed
from headgate.graph.operation import Transform as Function
from headgate.graph.plan import Node
from headgate.graph.port import Port
from headgate.steps.stateless.columns import Stateless, kept_key


@dataclass(frozen=True)
class Transform(Stateless):
    """A user's function from DataFrame to DataFrame; `code` is a fingerprint of its text."""

    apply: Function
    code: str
    kind = "transform"

    def config(self) -> Mapping[str, Any]:
        return {"code": self.code}

    @classmethod
    def detail_1(cls, address: str, config: Mapping[str, Any]) -> dict[str, str]:
        return {"code": config["code"]}


def add_transform(port: Port, name: str, function: Callable[[DataFrame], DataFrame]) -> Node:
    """Write a transform down."""
    plan = port.plan
    plan.check_name(name, "transform")
    if not callable(function):
        raise GraphError(
            "transform must be given a function from DataFrame to DataFrame",
            step=name,
            got=repr(function),
            remedy="for instance lambda df: df.dropna()",
            location=user_location(),
        )
    result = analysed(port.prototype(), name, function, "the transform")
    if not isinstance(result, DataFrame):
        raise GraphError(
            "the transform must return a DataFrame",
            step=name,
            got=type(result).__name__,
            remedy="return the DataFrame at the end of the function",
            location=user_location(),
        )
    state = jvm.stateful_part(result)
    if state is not None:
        raise GraphError(
            f"the transform contains {state}, which keeps state",
            step=name,
            remedy="use a step of Headgate for it: lookup for joins with a table, and key_by"
            " with window or process for aggregates and duplicates",
            location=user_location(),
        )
    plan.note_changing(name, result)
    operation = Transform(function, _code(function))
    changes = kept_key(port, function, name)
    return plan.add(name, operation, {"out": result.schema}, inputs=[port.edge], changes=changes)


def _code(function: Callable[..., Any]) -> str:
    """A fingerprint of a function's code: a changed transform is a changed graph."""
    try:
        text = inspect.getsource(function)
    except (OSError, TypeError):
        text = getattr(function, "__qualname__", repr(type(function)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
