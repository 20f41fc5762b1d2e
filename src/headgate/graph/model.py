"""Graph, Step and Edge: frozen, serialisable, and all that the home and the UI need of a job."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headgate.base.secrets import redact, redacted, shown
from headgate.graph.text import mermaid, outline

FORMAT_VERSION = 2
_NAMES_ONLY = ("table", "inputs", "timers", "required")
"""Parts of a config that have names of steps and fields, never text of the user's."""


def operator_id(step: str) -> int:
    """The number under which a stateful step's state lives, made from its name alone.

    >>> operator_id("users_lookup")
    2147172245
    """
    return (zlib.crc32(step.encode()) & 0x3FFFFFFF) | 0x40000000


@dataclass(frozen=True)
class Edge:
    """Rows that go from an output of a step into another step."""

    step: str
    output: str = "out"


@dataclass(frozen=True)
class Step:
    """One step: `id` is its name, or one made from its place when the user gave none."""

    id: str
    kind: str
    named: bool
    inputs: tuple[Edge, ...] = ()
    outputs: tuple[str, ...] = ("out",)
    role: str = "step"
    """What it is to people: source, table, sink or step."""
    schema: str = ""
    stateful: bool = False
    state_schema: str = ""
    state_key: tuple[str, ...] = ()
    """What the parts of the key are called under which its state is found."""
    state_view: str = "stores"
    """How people see its state: by stores, or by the names that its author declared."""
    address: str = ""
    """Where it reads or writes."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """What identity and upgrades go by, as its kind wrote it."""
    config_version: int = 1
    labels: Mapping[str, str] = field(default_factory=dict)
    """What people read about it; decides nothing."""
    one_for_one: bool = False
    """Whether it gives a row for each row that it gets."""
    location: str | None = None
    stores: tuple[Mapping[str, Any], ...] = ()
    """How its state is laid out, store by store; known once the job is compiled."""

    @property
    def name(self) -> str:
        """What people call the step."""
        return self.id

    @property
    def side_outputs(self) -> tuple[str, ...]:
        """The outputs beside the main one."""
        return tuple(o for o in self.outputs if o != "out")

    @property
    def operator_id(self) -> int | None:
        """Where the step's state lives; None if it keeps none."""
        return operator_id(self.id) if self.stateful else None

    def without_secrets(self) -> Step:
        """The step as it is written down and shown: another password is no other graph."""
        return replace(
            self,
            schema=redact(self.schema),
            address=shown("", self.address),
            config={
                name: value if name in _NAMES_ONLY else redacted(value)
                for name, value in self.config.items()
            },
            labels={name: redact(text) for name, text in self.labels.items()},
        )

    def identity(self) -> dict[str, Any]:
        """What makes it another step if it changes."""
        return {
            "id": self.id,
            "kind": self.kind,
            "named": self.named,
            "inputs": [{"step": e.step, "output": e.output} for e in self.inputs],
            "outputs": list(self.outputs),
            "schema": self.schema,
            "stateful": self.stateful,
            "operator_id": self.operator_id,
            "state_schema": self.state_schema,
            "state_key": list(self.state_key),
            "address": self.address,
            "config": dict(self.config),
            "config_version": self.config_version,
            "stores": [dict(store) for store in self.stores],
        }

    def to_json(self) -> dict[str, Any]:
        """The step as it stands in graph.json."""
        return {
            **self.identity(),
            "role": self.role,
            "state_view": self.state_view,
            "labels": dict(self.labels),
            "one_for_one": self.one_for_one,
            "location": self.location,
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Step:
        """The step of a graph.json of the current format."""
        return Step(
            id=data["id"],
            kind=data["kind"],
            role=data["role"],
            named=data["named"],
            inputs=tuple(Edge(e["step"], e["output"]) for e in data["inputs"]),
            outputs=tuple(data["outputs"]),
            schema=data["schema"],
            stateful=data["stateful"],
            state_schema=data["state_schema"],
            state_key=tuple(data["state_key"]),
            state_view=data["state_view"],
            address=data["address"],
            config=data["config"],
            config_version=data["config_version"],
            labels=data["labels"],
            one_for_one=data["one_for_one"],
            location=data["location"],
            stores=tuple(data.get("stores") or ()),
        ).without_secrets()


@dataclass(frozen=True)
class Graph:
    """A job's steps in the order of the code, and its sources in the order of the query.

    >>> graph = store.describe()
    >>> graph.step("users_lookup").kind, graph.sources
    ('lookup', ('users', 'orders'))
    >>> [step.id for step in graph.consumers("users_lookup", "missing")]
    ['unknown']
    """

    job: str
    steps: tuple[Step, ...]
    sources: tuple[str, ...]
    warnings: tuple[str, ...] = ()

    def step(self, id: str) -> Step:
        """The step with this name."""
        return next(s for s in self.steps if s.id == id)

    def consumers(self, id: str, output: str | None = None) -> tuple[Step, ...]:
        """The steps that read from a step, or from one of its outputs."""
        return tuple(
            s
            for s in self.steps
            if any(e.step == id and output in (None, e.output) for e in s.inputs)
        )

    def to_json(self) -> dict[str, Any]:
        """The graph as it is stored in graph.json."""
        return {
            "version": FORMAT_VERSION,
            "job": self.job,
            "sources": list(self.sources),
            "steps": [s.to_json() for s in self.steps],
            "warnings": list(self.warnings),
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Graph:
        """The graph from a graph.json in the current format (`formats.current`)."""
        return Graph(
            data["job"],
            tuple(Step.from_json(s) for s in data["steps"]),
            tuple(data["sources"]),
            tuple(data["warnings"]),
        )

    def json(self) -> str:
        """The graph as JSON text."""
        return json.dumps(self.to_json(), indent=2)

    def fingerprint(self) -> str:
        """The same for two graphs that do the same: names, inputs, configs, schemas and layouts.

        The position of a step in the file does not matter, nor do labels and warnings.
        """
        return fingerprint_of(self.sources, [s.identity() for s in self.steps])

    def mermaid(self) -> str:
        """The graph as a Mermaid flowchart."""
        return mermaid(self)

    def text(self) -> str:
        """The graph as an outline for a terminal."""
        return outline(self)


def fingerprint_of(sources: tuple[str, ...], steps: list[dict[str, Any]]) -> str:
    """A short hash of a graph's sources and of what makes its steps what they are."""
    text = json.dumps({"sources": sources, "steps": steps}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
