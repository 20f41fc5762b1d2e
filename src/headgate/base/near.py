"""Names that are nearly the one that was written: what to suggest for a typo."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, known: Iterable[str], *, prefix: str = "") -> str | None:
    """A question with the known name that is nearest, or nothing if none is near.

    >>> did_you_mean("order", ["orders", "users"], prefix="sp:")
    'did you mean sp:orders?'
    >>> did_you_mean("payments", ["orders", "users"]) is None
    True
    """
    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean {prefix}{near[0]}?" if near else None


def or_else(question: str | None, remedy: str) -> str:
    """A remedy with the question before it, if there is one.

    >>> or_else("did you mean orders?", "it has: orders, users")
    'did you mean orders? it has: orders, users'
    >>> or_else(None, "it has: orders, users")
    'it has: orders, users'
    """
    return f"{question} {remedy}" if question else remedy
