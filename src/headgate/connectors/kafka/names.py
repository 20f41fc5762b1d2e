"""What may be the name of a Kafka server or topic: jobs and commands ask the same question."""

from __future__ import annotations

import re

_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/,\[\]]+):(\d{1,5})")
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")


def are_servers(text: str) -> bool:
    """Whether this is one address with its port, or several with commas.

    >>> are_servers("a:9092,b:9092"), are_servers("a"), are_servers("a:99999")
    (True, False, False)
    """
    found = [_SERVER.fullmatch(server) for server in text.split(",")]
    return all(server is not None and 0 < int(server[2]) < 65536 for server in found)


def is_topic(name: str) -> bool:
    """Whether this is a topic's name, and not a pattern or a list of names.

    >>> is_topic("orders-2"), is_topic("orders-.*"), is_topic("a,b")
    (True, False, False)
    """
    return _TOPIC.fullmatch(name) is not None and name not in (".", "..")
