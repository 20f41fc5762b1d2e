"""The page from SQL to Headgate: each program gives what its SQL gives, over the same events."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from nexmark_events import Settings, make_events, write
from nexmark_truth import Truth
from pyspark.sql import SparkSession

import headgate as hg
from headgate.runtime.run import run

PAGE = Path(__file__).parents[1] / "docs" / "from-sql.md"
BLOCK = re.compile(r"^```(sql|python)\n(.*?)^```", re.S | re.M)


def pairs(text: str) -> tuple[str, list[tuple[str, str]]]:
    """The first lines of a job, then each SQL with the program that follows it."""
    (kind, first), *rest = BLOCK.findall(text)
    assert kind == "python"
    found = []
    for (one, sql), (other, program) in zip(rest[::2], rest[1::2], strict=True):
        assert (one, other) == ("sql", "python"), f"a pair is SQL, then Python: {sql}{program}"
        found.append((sql, program))
    return first, found


@pytest.mark.slow
def test_each_program_of_the_page_gives_what_its_sql_gives(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, found = pairs(PAGE.read_text(encoding="utf-8"))
    assert len(found) >= 12
    monkeypatch.chdir(tmp_path)

    @hg.job("from_sql")
    def from_sql(job: hg.Job) -> None:
        """All programs of the page in one job."""
        names: dict[str, Any] = {"job": job}
        exec(compile(first, "from-sql.md", "exec", dont_inherit=True), names)
        for number, (_, program) in enumerate(found):
            exec(compile(program, "from-sql.md", "exec", dont_inherit=True), names)
            rows = names.pop("rows")
            key = (
                f"to_json(struct({', '.join(rows.key)}))" if isinstance(rows, hg.Changes) else None
            )
            rows.sink(f"out_{number}", hg.topic(f"log:out/{number}", key=key))

    settings = Settings(events=3_000, seed=3, per_second=0.5)
    made = make_events(settings)
    write(Path("data"), made, made.until(1.0), settings.partitions)
    outcome = run(from_sql, home="home", bounded=True, drain=True, spark=spark)
    assert outcome.error is None

    wrong = {}
    with Truth(Path("data")) as truth:
        for number, (sql, _) in enumerate(found):
            compared = truth.compare_topic(sql, Path(f"out/{number}"))
            assert compared.rows, f"nothing to compare:\n{sql}"
            if not compared.equal:
                wrong[sql] = compared
    assert wrong == {}
