"""The order of tests: quick ones begin every worker's part, and none is lost."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.order import ordered


@dataclass(frozen=True)
class One:
    nodeid: str
    slow: bool = False

    def get_closest_marker(self, name: str) -> object | None:
        return True if name == "slow" and self.slow else None


def made_of(files: dict[str, tuple[int, int]]) -> list[One]:
    """So many quick and slow tests in each file."""
    return [
        One(f"{file}::test_{number}", slow=number >= quick)
        for file, (quick, slow) in files.items()
        for number in range(quick + slow)
    ]


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_worker_ends_with_its_share_of_the_slow_tests(workers: int) -> None:
    files = {"a.py": (30, 4), "b.py": (10, 4), "c.py": (20, 4), "d.py": (1, 0)}
    all_tests = made_of(files)
    found = ordered(all_tests, workers)
    assert sorted(found, key=all_tests.index) == all_tests
    size = -(-len(found) // workers)
    for start in range(0, len(found), size):
        part = found[start : start + size]
        slow = [test for test in part if test.slow]
        assert slow and part[-len(slow) :] == slow
        assert len({test.nodeid.split("::")[0] for test in slow}) == len(slow) // 4, "whole files"


def test_quick_tests_stay_as_they_are() -> None:
    quick = made_of({"a.py": (5, 0), "b.py": (5, 0)})
    assert ordered(quick, 2) == quick
    assert ordered([], 2) == []
