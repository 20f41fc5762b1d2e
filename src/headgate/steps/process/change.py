"""What a key has when it is taken up, and what is to be written of it when it is done."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headgate.steps.process.remote import Large


@dataclass
class Loaded:
    """All that a key has when it is taken up, in the order of the layout."""

    values: Sequence[Any]
    ends: Sequence[int | None]
    lists: Sequence[list[Any] | Large]
    nexts: Sequence[int]
    maps: Sequence[dict[Any, Any] | Large]
    times: Sequence[int | None]
    """The timers and, if any state has a time to live, the sweep."""
    entries: Sequence[int] = ()
    """How many entries the lists and maps had when the key was last written."""


@dataclass
class ListChange:
    """What is to be written of a list: `first` is the number of the first new entry."""

    cleared: bool
    first: int
    added: list[Any]


@dataclass
class MapChange:
    """What is to be written of a map."""

    cleared: bool
    put: dict[Any, Any]
    removed: list[Any]


@dataclass
class Change:
    """What is to be written of a key; a key that has nothing left is deleted."""

    empty: bool
    values: list[Any]
    ends: list[int | None]
    entries: list[int]
    times: list[int | None]
    old_times: Sequence[int | None]
    lists: list[ListChange | None]
    maps: list[MapChange | None]
