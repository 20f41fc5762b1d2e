"""The checker finds what was planted, and nothing where nothing is wrong."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.nemesis.checker import Finding, compare, ordered, stayed, together

WANTED = Counter({"a": 1, "b": 1, "c": 2})


@pytest.mark.parametrize(
    ("got", "found"),
    [
        (["a", "b", "c", "c"], []),
        (["a", "c", "c"], [Finding("lost", "out", 1, ("b",))]),
        (["a", "b", "c"], [Finding("lost", "out", 1, ("c",))]),
        (["a", "b", "b", "b", "c", "c"], [Finding("twice", "out", 2, ("b",))]),
        (["a", "b", "c", "c", "d"], [Finding("never sent", "out", 1, ("d",))]),
        (["b", "b", "c", "c"], [Finding("lost", "out", 1, ("a",)),
                                Finding("twice", "out", 1, ("b",))]),
    ],
)  # fmt: skip
def test_rows_are_compared_with_how_often_they_are_wanted(
    got: list[str], found: list[Finding]
) -> None:
    assert compare("out", WANTED, Counter(got)) == found


def test_a_key_whose_rows_are_out_of_order_is_found() -> None:
    rows = [
        {"k": 1, "n": 1},
        {"k": 2, "n": 1},
        {"k": 1, "n": 2},
        {"k": 2, "n": 3},
        {"k": 1, "n": 9},
    ]
    assert ordered("out", rows, lambda r: r["k"], "n") == []
    rows[2], rows[4] = rows[4], rows[2]
    (finding,) = ordered("out", rows, lambda r: r["k"], "n")
    assert finding == Finding("reordered", "out", 1, ("1: n 2 after 9",))


def test_a_row_that_is_in_one_sink_only_is_found() -> None:
    both = {"links": Counter([1, 2, 3]), "copies": Counter([3, 2, 1])}
    assert together(both) == []
    assert together({**both, "copies": Counter([1, 3])}) == [Finding("torn", "copies", 1, ("2",))]
    assert together({**both, "copies": Counter([1, 2, 3, 3])}) == [
        Finding("torn", "links", 1, ("3",))
    ]


def test_a_row_that_was_seen_and_is_gone_or_another_is_found() -> None:
    seen = {("out", 0, 4): "a", ("out", 0, 5): "b"}
    assert stayed(seen, {**seen, ("out", 0, 6): "c"}) == []
    assert stayed(seen, {("out", 0, 4): "a"}) == [Finding("aborted row seen", "out", 1, ("0:5 b",))]
    assert stayed(seen, {**seen, ("out", 0, 5): "x"})[0].rows == 1
