"""What the options of all brokers' sources and sinks have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.base.errors import GraphError


def choice(own: Mapping[str, str], name: str, allowed: Sequence[str]) -> str:
    """An option that has few values, the first of them by default."""
    value = own.get(name, allowed[0])
    if value not in allowed:
        raise GraphError(
            f"the option '{name}' must be {' or '.join(repr(a) for a in allowed)}",
            got=repr(value),
            remedy=f"correct it, or leave it out ({allowed[0]})",
        )
    return value


def check_limit(limit: str | int) -> None:
    """Raise if this is not how many records a batch may have.

    >>> check_limit("1000"), check_limit(1000)
    (None, None)
    """
    if not str(limit).isdigit() or int(limit) < 1:
        raise GraphError(
            "max_records must be a whole number of at least 1",
            got=repr(limit),
            remedy="correct it",
        )
