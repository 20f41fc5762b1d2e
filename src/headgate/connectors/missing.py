"""What to do about a topic that is not there: it may be a typo, so nobody makes it unasked."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable

_NEAR = 0.8


def create_remedy(address: str, neighbours: Callable[[], Iterable[str]]) -> str:
    """How to make a topic, after the one beside it that was probably meant.

    >>> create_remedy("log:data/order", lambda: ["log:data/orders", "log:data/users"])
    'did you mean log:data/orders? If not, create it with `headgate topic create log:data/order`'
    """
    create = f"create it with `headgate topic create {address}`"
    try:
        near = nearest(address, neighbours())
    except Exception:  # who cannot list topics need not hear of it: this is only a guess
        near = None
    return f"did you mean {near}? If not, {create}" if near else create


def nearest(address: str, known: Iterable[str]) -> str | None:
    """The address that differs from another one by a typo in the topic's name.

    >>> nearest("kafka://b:9092/oders", ["kafka://b:9092/orders", "kafka://b:9092/users"])
    'kafka://b:9092/orders'
    """
    by_name = {_name(one): one for one in known}
    near = difflib.get_close_matches(_name(address), by_name, n=1, cutoff=_NEAR)
    return by_name[near[0]] if near else None


def _name(address: str) -> str:
    return re.split(r"[:/]", address)[-1]
