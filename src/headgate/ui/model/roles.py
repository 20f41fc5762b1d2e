"""Roles of steps: the only module of the web interface that looks at a step's role and labels.

Everything else here takes the answers below. A step comes as it stands in graph.json, as a Step of
the graph, or as a view that carries its role.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, Protocol, TypeAlias

from headgate.graph.model import Step

Role: TypeAlias = Literal["source", "table", "sink", "step"]
Shape: TypeAlias = Literal["end", "inner"]


class HasRole(Protocol):
    """A view of a step."""

    @property
    def role(self) -> Role:
        """The role of the step."""


AnyStep: TypeAlias = Mapping[str, Any] | Step | HasRole
_ROLES: Mapping[str, Role] = {"source": "source", "table": "table", "sink": "sink"}
_FIRST = ("address", "expression", "on")
"""Of these labels, the first that a step has says most about it."""


def role_of(step: AnyStep) -> Role:
    """What a step is to its job.

    >>> role_of({"role": "sink"}), role_of(Step("big", "where", named=False))
    ('sink', 'step')
    """
    if isinstance(step, Mapping):
        return _ROLES.get(step["role"], "step")
    if isinstance(step, Step):
        return _ROLES.get(step.role, "step")
    return step.role


def is_sink(step: AnyStep) -> bool:
    """Whether rows leave the job by it."""
    return role_of(step) == "sink"


def is_entry(step: AnyStep) -> bool:
    """Whether rows enter the job by it: a source or a table."""
    return role_of(step) in ("source", "table")


def is_stream_source(step: AnyStep) -> bool:
    """Whether it is a source; a table is none."""
    return role_of(step) == "source"


def has_event_time(step: Mapping[str, Any]) -> bool:
    """Whether event time is declared for a source or table of graph.json."""
    return is_entry(step) and bool(step["labels"].get("event_time"))


def shape_of(step: AnyStep) -> Shape:
    """How it is drawn: an end of the graph, which has an address, or a step inside it."""
    return "end" if is_sink(step) or is_entry(step) else "inner"


def address_of(step: Mapping[str, Any]) -> str:
    """Where a source, table or sink of graph.json reads or writes."""
    return str(step["address"])


def labels_of(step: Step) -> Mapping[str, str]:
    """What people may read about a step, by name."""
    return {"address": step.address, **step.labels} if step.address else dict(step.labels)


def describe(step: Step) -> str:
    """What a step does, in one line."""
    labels = labels_of(step)
    for name in _FIRST:
        if labels.get(name):
            prefix = "on " if name == "on" else ""
            return f"{prefix}{labels[name]}"
    return ", ".join(f"{name} {text}" for name, text in labels.items() if text)
