"""Owns the order of tests: the slow ones first, file by file, the same share for each worker.

Workers begin with equal parts of the list and later take from each other's ends. So what is left
for the end are short tests, and no worker waits for another one's last minute.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Protocol, TypeVar


class Test(Protocol):
    """What is known of a test before it runs."""

    nodeid: str

    def get_closest_marker(self, name: str) -> object | None:
        """Its mark of that name, if it has one."""


T = TypeVar("T", bound=Test)


def ordered(tests: Sequence[T], workers: int) -> list[T]:
    """All tests, so that part n of `workers` equal parts begins with slow ones."""
    slow = [test for test in tests if test.get_closest_marker("slow")]
    quick = [test for test in tests if not test.get_closest_marker("slow")]
    parts: list[list[T]] = [[] for _ in range(workers)]
    for _, file in groupby(slow, key=lambda test: test.nodeid.partition("::")[0]):
        min(parts, key=len).extend(file)  # what a file's tests share is made once
    size = -(-len(tests) // workers)
    for part in parts:
        room = size - len(part)
        part.extend(quick[:room])
        del quick[:room]
    return [test for part in parts for test in part] + quick
