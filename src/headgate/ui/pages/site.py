"""PageResponse: a template with its values, and Site: what every page shows around it."""

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
class PageResponse:
    """A template, its values, and the status."""

    template: str
    values: Mapping[str, Any] = field(default_factory=dict)
    status: int = 200
