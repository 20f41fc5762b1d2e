"""Sinks that a test's job writes for real, and the rows of them that were seen."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

ReadSink: TypeAlias = Callable[[], Iterable[Mapping[str, Any]]]


class RealSink:
    """A sink that is written as the job says, and the rows of it that were seen."""

    def __init__(self, read: ReadSink) -> None:
        self._read = read
        self._seen: Counter[str] = Counter()

    def fresh(self) -> list[dict[str, Any]]:
        """The rows that have come since the last call; a row may be there several times."""
        found: list[dict[str, Any]] = []
        now: Counter[str] = Counter()
        for row in map(dict, self._read()):
            text = json.dumps(row, default=str, sort_keys=True)
            now[text] += 1
            if now[text] > self._seen[text]:
                found.append(row)
        self._seen = now
        return found
