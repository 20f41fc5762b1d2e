"""How people know the place of a record in its partition: by an offset, or as its system says."""

from __future__ import annotations

from collections.abc import Callable

_FORMS: dict[str, Callable[[int], str]] = {}


def register_place(scheme: str, form: Callable[[int], str]) -> None:
    """Let places in topics whose addresses begin with a scheme be spelled by a connector."""
    _FORMS[scheme] = form


def place_text(address: str, offset: object) -> str:
    """Where a record is in its partition.

    >>> place_text("kafka://h:1/orders", 7)
    'offset 7'
    """
    form = next((form for scheme, form in _FORMS.items() if address.startswith(scheme)), None)
    return form(offset) if form is not None and isinstance(offset, int) else f"offset {offset}"
