"""What every page shows around its own part, and what a page is made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Site:
    """The bar on top: which home it is, and whether the reader may act."""

    home: str
    read_only: bool


@dataclass(frozen=True)
class Shown:
    """A template and the values in it."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
