"""The state of steps at a snapshot: which there is, its rows, and two snapshots compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headgate.ui.model.view import View


@dataclass(frozen=True)
class KeptState(View):
    """A step that keeps state."""

    step: str
    kind: str
    states: tuple[str, ...]
    """The names of its stores; `default` is the one that people mean."""
    key: tuple[str, ...]
    rows: int | None
    bytes: int | None


@dataclass(frozen=True)
class StateView(View):
    """Which state a snapshot has; reads none of it."""

    job: str
    snapshot: str
    steps: tuple[KeptState, ...]


@dataclass(frozen=True)
class StateRows(View):
    """Rows of a step's state."""

    job: str
    snapshot: str
    step: str
    state: str
    offset: int
    """How many rows stand before these."""
    rows: tuple[Mapping[str, Any], ...]
    """Each with `key`, the value under the state's name, and `partition`."""
    truncated: bool
    """Whether there are more."""


@dataclass(frozen=True)
class StateDiff(View):
    """What has changed between two snapshots, key by key."""

    job: str
    before: str
    after: str
    step: str
    state: str
    counts: Mapping[str, int]
    """added, removed, changed."""
    rows: tuple[Mapping[str, Any], ...]
    truncated: bool
