"""The names of counters: which are Headgate's own, and which a user's function has chosen."""

from __future__ import annotations

from collections.abc import Mapping

OWN_COUNTS = ("records_", "state_", "waiting_")
"""How the names of Headgate's own counters begin; all others are counted by users."""


def counted_by_users(counts: Mapping[str, int]) -> dict[str, int]:
    """What functions of users have counted in a step, by name.

    >>> counted_by_users({"records_in": 7, "unpaid": 2})
    {'unpaid': 2}
    """
    return {name: n for name, n in sorted(counts.items()) if not name.startswith(OWN_COUNTS)}
