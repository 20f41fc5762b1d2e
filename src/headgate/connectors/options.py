"""What the options of all brokers' sources and sinks have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate.base.errors import GraphError


def choice(own: Mapping[str, str], name: str, allowed: Sequence[str]) -> str:
    """An option that has few values, the first of them by default."""
    value = own.get(name, allowed[0])
    if value not in allowed:
        raise GraphError(
            f"the option '{name}' is not known",
            expected=" or ".join(repr(a) for a in allowed),
            got=repr(value),
            remedy="use one of them",
        )
    return value


def check_limit(limit: str) -> None:
    """Raise if this is not how many records a batch may have.

    >>> check_limit("1000")
    """
    if not limit.isdigit() or int(limit) < 1:
        raise GraphError(
            "max_records is not a number of records",
            expected="1 or more",
            got=repr(limit),
            remedy="correct it",
        )
