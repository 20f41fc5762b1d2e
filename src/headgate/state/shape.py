"""What state a snapshot has, from its graph alone: steps, the names of keys, layouts of stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from headgate.base.errors import NotFoundError, UsageError
from headgate.graph.hidden import PREFIX
from headgate.snapshots.layouts import Layout
from headgate.snapshots.snapshot import Snapshot
from headgate.state.packed import APART, is_packed

ROWS = "default"
"""The store that holds the rows of a lookup's table."""
_CLOCKS = ("event_timers", "processing_timers", "expiry")
"""Stores of process functions that hold times in order."""


def kept_states(snapshot: Snapshot) -> list[dict[str, Any]]:
    """The steps that keep state, with their stores, keys, rows and sizes."""
    sizes = snapshot.record.state if snapshot.record else {}
    shape = StateShape(snapshot)
    return [
        {
            "step": step["id"],
            "kind": step["kind"],
            "states": shape.names(step["id"]) if step.get("stores") else [],
            "key": list(step["state_key"]),
            "rows": sizes.get(step["id"], {}).get("rows"),
            "bytes": sizes.get(step["id"], {}).get("bytes"),
        }
        for step in snapshot.graph["steps"]
        if step["stateful"]
    ]


class StateShape:
    """Knows which state there is; reads none of it."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._steps: dict[str, Mapping[str, Any]] = {
            str(step["id"]): step for step in snapshot.graph["steps"] if step["stateful"]
        }

    def step(self, step: str) -> Mapping[str, Any]:
        """A step that keeps state, as the graph has it."""
        if step not in self._steps:
            raise NotFoundError(
                f"job '{self._snapshot.job}' has no step '{step}' with state",
                expected=", ".join(self._steps) or "none",
                remedy="name one of them",
            )
        return self._steps[step]

    def key_names(self, step: str) -> list[str]:
        """What the parts of a step's key are called."""
        names: list[str] = list(self.step(step)["state_key"])
        return names

    def check_key(self, step: str, names: Iterable[str]) -> None:
        """Refuse a key whose parts are not those of the step."""
        wanted, got = self.key_names(step), list(names)
        if set(got) != set(wanted):
            raise UsageError(
                f"the key must have the parts of the key of '{step}'",
                expected=", ".join(wanted) or "none",
                got=", ".join(got) or "none",
                remedy="name each part of the key, for instance "
                + " ".join(f"--key {name}=..." for name in wanted)
                if wanted
                else "leave --key out: all rows have the same",
            )

    def stores(self, step: str) -> Sequence[Layout]:
        """The layouts of a step's stores."""
        found: Sequence[Layout] = self.step(step).get("stores") or ()
        if not found:
            raise NotFoundError(
                f"{self._snapshot.name} does not say how the state of '{step}' is laid out",
                remedy="it was written by an older Headgate; start the job once with this one",
            )
        return found

    @staticmethod
    def beside_key(layout: Layout) -> list[str]:
        """What tells rows of the same key apart, for instance the end of their window."""
        if is_packed(layout):
            return APART
        fields = [str(field["name"]) for field in layout["key"]["fields"]]
        return [
            name
            for at, name in enumerate(fields)
            if at not in layout["partition_by"] and not name.startswith(PREFIX)
        ]

    def is_named(self, step: str) -> bool:
        """Whether the parts of the state have names that the step's author declared."""
        return bool(self.step(step)["state_view"] == "named")

    def column(self, step: str, name: str) -> str | None:
        """A value state or timer of a process function, which is a column of its keys' rows."""
        return name if self.is_named(step) and name in self._columns(step) else None

    def check_name(self, step: str, name: str) -> None:
        """Refuse a name that no state of the step has."""
        if self.column(step, name) is None:
            self.store(step, name)

    def many(self, step: str, name: str) -> bool:
        """Whether a key may have several rows of it; a table has one, waiting rows are many."""
        return not self.is_named(step) and (name != ROWS or "number" in self.apart(step, name))

    def apart(self, step: str, name: str) -> list[str]:
        """What tells the rows of a key apart, if there can be several."""
        return [] if self.is_named(step) else self.beside_key(self.store(step, name)[0])

    def _columns(self, step: str) -> list[str]:
        fields = [str(field["name"]) for field in self.stores(step)[0]["value"]["fields"]]
        return [name for name in fields if "." not in name]

    def store(self, step: str, name: str) -> tuple[Layout, int]:
        """The layout of one store of a step, and its number."""
        for number, layout in enumerate(self.stores(step)):
            if layout["name"] == name:
                return layout, number
        raise NotFoundError(
            f"step '{step}' has no state '{name}'",
            expected=", ".join(self.names(step)),
            remedy="name one of them",
        )

    def names(self, step: str) -> list[str]:
        """The names by which the state of a step can be requested."""
        stores = [str(layout["name"]) for layout in self.stores(step)]
        if not self.is_named(step):
            return stores
        return [ROWS, *self._columns(step), *[n for n in stores[1:] if n not in _CLOCKS]]
