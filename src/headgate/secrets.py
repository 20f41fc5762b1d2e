"""Values that are not for everybody's eyes: which they are, and what is shown instead."""

from __future__ import annotations

import re

HIDDEN = "******"
_NAME = re.compile(
    r"pass(word|wd|phrase)|secret|token|credential|api.?key|access.?key|private.?key|sasl\.jaas",
    re.IGNORECASE,
)
_IN_TEXT = re.compile(
    r"((?:pass(?:word|wd|phrase)|secret|token|credential)[\w.-]*\s*=\s*)[^\s,;&]+", re.IGNORECASE
)
_IN_ADDRESS = re.compile(r"(?<=://)[^/\s@]+(?=@)")


def shown(name: str, value: str) -> str:
    """A setting's value as it may be seen.

    >>> shown("db_password", "hunter2"), shown("home", "s3://key:word@lake/home")
    ('******', 's3://******@lake/home')
    >>> shown("options", "-Dssl.keyStorePassword=hunter2 -Xmx1g")
    '-Dssl.keyStorePassword=****** -Xmx1g'
    """
    if _NAME.search(name):
        return HIDDEN
    return _IN_TEXT.sub(rf"\g<1>{HIDDEN}", _IN_ADDRESS.sub(HIDDEN, value))
