"""The order of tests: quick ones begin every worker's part, brokers are shared, none is lost."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.order import LONGEST, ordered, system_of

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class One:
    nodeid: str
    slow: bool = False
    fixturenames: tuple[str, ...] = ()

    def get_closest_marker(self, name: str) -> object | None:
        return True if name == "slow" and self.slow else None


def made_of(files: dict[str, tuple[int, int]], *fixtures: str) -> list[One]:
    """So many quick and slow tests in each file."""
    return [
        One(f"{file}::test_{number}", slow=number >= quick, fixturenames=fixtures)
        for file, (quick, slow) in files.items()
        for number in range(quick + slow)
    ]


def parts_of(tests: list[One], workers: int) -> list[list[One]]:
    """What each worker begins with."""
    parts = []
    for left in range(workers, 0, -1):
        size = len(tests) // left
        parts.append(tests[:size])
        tests = tests[size:]
    return parts


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_worker_ends_with_its_share_of_the_slow_tests(workers: int) -> None:
    files = {"a.py": (30, 4), "b.py": (10, 4), "c.py": (20, 4), "d.py": (1, 0)}
    all_tests = made_of(files)
    found = ordered(all_tests, workers)
    assert sorted(found, key=all_tests.index) == all_tests
    for part in parts_of(found, workers):
        slow = [test for test in part if test.slow]
        assert slow and part[-len(slow) :] == slow
        assert len({test.nodeid.split("::")[0] for test in slow}) == len(slow) // 4, "whole files"


def test_those_of_minutes_begin_before_the_other_slow_ones() -> None:
    minutes, seconds = "tests/reliability/test_kafka.py", "tests/a.py"
    first = ordered(made_of({seconds: (0, 3), minutes: (0, 1)}), 1)[0]
    assert first.nodeid.startswith(minutes)
    assert [name for name in LONGEST if not (ROOT / name).exists()] == []


def test_quick_tests_without_a_broker_stay_as_they_are() -> None:
    quick = made_of({"a.py": (5, 0), "b.py": (5, 0)})
    assert ordered(quick, 2) == quick
    assert ordered([], 2) == []


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_those_of_a_broker_begin_one_worker_s_part(workers: int) -> None:
    pulsar = made_of({"p.py": (3, 0)}, "pulsar_url")
    kafka = made_of({"k.py": (4, 0)}, "kafka_servers")
    both = [One("brokers.py::test_it[pulsar]"), One("brokers.py::test_it[kafka-3]")]
    all_tests = made_of({"a.py": (9, 0)}) + kafka + made_of({"b.py": (9, 0)}) + pulsar + both
    found = ordered(all_tests, workers)
    assert sorted(found, key=all_tests.index) == all_tests
    first, *others = parts_of(found, workers)
    assert {system_of(test) for test in first[:4]} == {"pulsar"}
    if others:
        assert {system_of(test) for test in others[0][:5]} == {"kafka"}
        assert {system_of(test) for part in others[1:] for test in part} <= {None}


def test_slow_ones_of_a_broker_stay_together() -> None:
    slow = made_of({"a.py": (0, 2), "b.py": (0, 2), "c.py": (0, 2)}, "kafka_servers")
    others = made_of({"d.py": (0, 6)})
    assert ordered(others + slow, 2) == slow + others
