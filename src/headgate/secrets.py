"""Values that are not for everybody's eyes: which they are, and what is shown instead."""

from __future__ import annotations

import re

HIDDEN = "******"
_NAME = re.compile(
    r"pass(word|wd|phrase)|secret|token|credential|api.?key|access.?key|private.?key|sasl\.jaas",
    re.IGNORECASE,
)
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s@]+(?=@)")


def shown(name: str, value: str) -> str:
    """A setting's value as it may be seen.

    >>> shown("db_password", "hunter2"), shown("home", "s3://key:word@lake/home")
    ('******', 's3://******@lake/home')
    """
    return HIDDEN if _NAME.search(name) else _IN_ADDRESS.sub(HIDDEN, value)
