"""What a look of the doctor at one thing gives."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One thing that was looked at: good or not, what was found, and what to do about it.

    A check that is good may still carry a remedy: it is a hint then.
    """

    name: str
    ok: bool
    detail: str
    remedy: str | None = None
