"""Nexmark's queries over the same events, in one session, against their SQL in DuckDB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from nexmark_events import Settings, make_events, write
from nexmark_run import QUERIES, Place, compare, lines_of_job, run_query, verdict
from nexmark_truth import Truth
from pyspark.sql import SparkSession

from headgate import jvm

BATCH = 10_000
CRASHED = {4: "before_sink", 6: "after_sink", 7: "after_sink", 11: "before_sink", 18: "after_sink"}
"""Queries that stop at half of the events and die in their next batch, at this point of it."""


@contextmanager
def dying(spark: SparkSession, point: str) -> Iterator[None]:
    jvm.arm_crash(spark, "r1", point)
    try:
        yield
    finally:
        jvm.disarm_crash(spark, "r1")


@pytest.mark.slow
def test_every_query_equals_its_sql(spark: SparkSession, tmp_path: Path) -> None:
    settings = Settings(events=20_000, seed=11, per_second=0.5)
    made = make_events(settings)
    place = Place(tmp_path)
    write(place.data, made, made.until(0.5), settings.partitions)
    for query in CRASHED:
        half = run_query(spark, place, query, batch=BATCH, drain=False)
        assert half.error is None, f"q{query}: {half.error}"
    write(place.data, made, made.until(1.0), settings.partitions)
    for query, point in CRASHED.items():
        with dying(spark, point):
            died = run_query(spark, place, query, batch=BATCH)
        assert died.error is not None, f"q{query} did not die"

    wrong, rows = {}, {}
    with Truth(place.data) as truth:
        for query in QUERIES:
            outcome = run_query(spark, place, query, batch=BATCH)
            assert outcome.error is None, f"q{query}: {outcome.error}"
            found = compare(truth, place, query)
            rows[query] = found.rows
            if not found.equal:
                wrong[f"q{query}"] = verdict(found), *found.examples
    assert wrong == {}
    assert not [query for query, n in rows.items() if n == 0], "a truth without rows shows nothing"


def test_the_events_are_of_the_usual_kinds_and_out_of_order() -> None:
    made = make_events(Settings(events=5_000))
    assert {name: len(lines) for name, lines in made.lines.items()} == {
        "persons": 100, "auctions": 300, "bids": 4_600,
    }  # fmt: skip
    assert made == make_events(Settings(events=5_000))
    assert made != make_events(Settings(events=5_000, seed=8))
    times = [line.split('"dateTime":"')[1][:23] for line in made.lines["bids"]]
    assert times != sorted(times)


def test_lines_are_those_of_the_program() -> None:
    assert lines_of_job(2) == 3, "a decorator, a def and a body of one line"
