"""The version of the home's files, and refusing those of a newer Headgate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headgate.base.errors import HeadgateError

VERSION = 1


def check_version(data: Mapping[str, Any], what: str, *, newest: int = VERSION) -> None:
    """Refuse a record that a newer Headgate wrote: guessing at it could lose something."""
    version = data.get("version")
    if not isinstance(version, int):
        raise HeadgateError(
            f"{what} has no version",
            code="DAMAGED",
            remedy="it was not written by Headgate; move it away",
        )
    if version > newest:
        raise HeadgateError(
            f"{what} was written by a newer Headgate (format {version}, this one reads up to "
            f"{newest})",
            code="NEWER_FORMAT",
            remedy="upgrade headgate: pip install --upgrade headgate",
        )
