"""Owns the order of tests: the quick ones first, the same share of slow ones for each worker.

Workers begin with equal parts of the list and later take from each other's ends. What is wrong in
small shows after minutes, and each worker keeps its Spark and its brokers for the slow tests.
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
    """All tests, so that each of `workers` equal parts has quick ones first, then slow ones."""
    slow = [test for test in tests if test.get_closest_marker("slow")]
    quick = [test for test in tests if not test.get_closest_marker("slow")]
    parts: list[list[T]] = [[] for _ in range(workers)]
    for _, file in groupby(slow, key=lambda test: test.nodeid.partition("::")[0]):
        min(parts, key=len).extend(file)  # what a file's tests share is made once
    size = -(-len(tests) // workers)
    found: list[T] = []
    for part in parts:
        room = max(size - len(part), 0)
        found += [*quick[:room], *part]
        del quick[:room]
    return quick + found
