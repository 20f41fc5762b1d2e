"""What sending to a topic needs: the partition of a key, and what was acknowledged."""

from __future__ import annotations

import struct
from functools import lru_cache

import pulsar


@lru_cache(maxsize=100_000)
def key_hash(key: str) -> int:
    """What `String.hashCode` gives in Java, without its sign: Pulsar's default for keys.

    Java's producers go by it; the client that Python has would go by another hash.

    >>> key_hash("user-1"), key_hash("😀")
    (1311451823, 1772899)
    """
    found = 0
    for (unit,) in struct.iter_unpack(">H", key.encode("utf-16-be")):
        found = (31 * found + unit) & 0xFFFFFFFF
    return found & 0x7FFFFFFF


class Tally:
    """Counts what the broker acknowledges and keeps the first failure."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.done = 0
        self.failed: str | None = None

    def hear(self, result: pulsar.Result, message_id: object) -> None:
        """Called from a thread of the client; an error that it raised would end the process."""
        if result == pulsar.Result.Ok:
            self.acknowledged += 1
        elif self.failed is None:
            self.failed = result.name
        self.done += 1
