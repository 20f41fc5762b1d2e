"""The order of tests: what shares a broker together, quick ones first, equal parts of slow ones.

Workers begin with equal parts of the list and later take from each other's ends. What is wrong in
small shows after minutes. A broker starts once for the whole run and not once a worker, since its
tests lie at the beginning of one worker's part, from which no other one takes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

SYSTEMS = ("pulsar", "kafka")
"""Whose brokers tests share; the broker that costs most to start comes first."""
_FIXTURES = {"pulsar_url": "pulsar", "kafka_servers": "kafka"}
_PARAM = re.compile(r"[\[-](pulsar|kafka)[\]-]")


class Test(Protocol):
    """What is known of a test before it runs."""

    nodeid: str

    def get_closest_marker(self, name: str) -> object | None:
        """Its mark of that name, if it has one."""


T = TypeVar("T", bound=Test)

LONGEST = (
    "tests/reliability/test_kafka.py",
    "tests/reliability/test_pulsar.py",
    "tests/steps/test_window_properties.py",
    "tests/examples/test_nexmark.py",
    "tests/reliability/",
    "tests/nemesis/",
    "tests/lakes/",
    "tests/cli/test_run.py",
)
"""Slow ones of a minute and more: what begins last keeps one worker when the others are done."""


def ordered(tests: Sequence[T], workers: int) -> list[T]:
    """All tests, so that each of `workers` equal parts has quick ones first, then slow ones."""
    slow = [test for test in tests if test.get_closest_marker("slow")]
    quick = [test for test in tests if not test.get_closest_marker("slow")]
    parts: list[list[T]] = [[] for _ in range(workers)]
    for group in sorted(_groups(slow), key=_rank):
        min(parts, key=len).extend(group)
    rooms = [
        max(size - len(part), 0)
        for size, part in zip(_sizes(len(tests), workers), parts, strict=True)
    ]
    found: list[T] = []
    for part, first in zip(parts, _dealt(quick, rooms), strict=True):
        found += [*first, *part]
    return found


def system_of(test: Test) -> str | None:
    """The system whose shared broker a test uses."""
    for fixture in getattr(test, "fixturenames", ()):
        if fixture in _FIXTURES:
            return _FIXTURES[fixture]
    found = _PARAM.search(test.nodeid)
    return found.group(1) if found else None


def _sizes(tests: int, workers: int) -> list[int]:
    """What each worker begins with, as xdist's `WorkStealingScheduling` deals tests out."""
    return [(tests + number) // workers for number in range(workers)]


def _groups(tests: Sequence[T]) -> list[list[T]]:
    """Those of one broker, then those of one file: what they share is made once."""
    groups: dict[str, list[T]] = {system: [] for system in SYSTEMS}
    for test in tests:
        groups.setdefault(system_of(test) or test.nodeid.partition("::")[0], []).append(test)
    return list(groups.values())


def _rank(group: Sequence[Test]) -> int:
    """The place of a group's file among the longest; those of a shared broker stay in front."""
    if not group or system_of(group[0]):
        return -1
    first = group[0].nodeid
    return next((n for n, name in enumerate(LONGEST) if first.startswith(name)), len(LONGEST))


def _dealt(tests: Sequence[T], rooms: Sequence[int]) -> list[list[T]]:
    """As many tests for each part as it has room for; each system's begin one, where there is one.

    If the rooms are too small, the last part gets what is left.
    """
    parts: list[list[T]] = [[] for _ in rooms]
    for number, system in enumerate(SYSTEMS):
        parts[number % len(parts)] += [test for test in tests if system_of(test) == system]
    others = [test for test in tests if system_of(test) is None]
    for part, room in zip(parts, rooms, strict=True):
        free = max(room - len(part), 0)
        part += others[:free]
        del others[:free]
    parts[-1] += others
    return parts
