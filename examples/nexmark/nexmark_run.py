"""Runs the Nexmark queries over the same events, and compares every row with SQL in DuckDB.

python examples/nexmark/nexmark_run.py --events 1000000 --queries q4 q7
"""

from __future__ import annotations

import argparse
import ast
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nexmark_events import SIDE_INPUT, TOPICS, Settings, make_events, write
from nexmark_truth import Compared, Processed, Truth, sql_of

from headgate.cli.app import load_app
from headgate.home.layout import Home
from headgate.runtime.run import RunOutcome, run
from headgate.snapshots.spark_log import read_entry

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.api.job import JobDef

HERE = Path(__file__).parent
QUERIES = tuple(range(23))
FILES = (10,)
"""Queries whose sink is files, not a topic."""
PROCESSING_TIME = (12,)
SHARED = ("ranks", "winning")


@dataclass(frozen=True)
class Place:
    """Where a run of queries has its topics, its home and its results."""

    folder: Path

    @property
    def data(self) -> Path:
        """The topics of events."""
        return self.folder / "data"

    @property
    def home(self) -> str:
        """The jobs' home."""
        return str(self.folder / "home")

    def out(self, query: int) -> Path:
        """A query's results."""
        return self.folder / "out" / f"q{query}"

    def params(self, query: int, job: JobDef, batch: int) -> dict[str, str]:
        """The addresses of the topics that a query reads and writes, and the size of batches."""
        out = str(self.out(query)) if query in FILES else f"log:{self.out(query)}"
        topics = {name: f"log:{self.data / name}" for name in (*TOPICS, SIDE_INPUT)}
        asked = job.build(check_connectors=False).graph
        return {
            "out": out, "batch": str(batch),
            **{name: address for name, address in topics.items() if name in asked.sources},
        }  # fmt: skip


def query_job(query: int) -> JobDef:
    """The job of a query."""
    return load_app(str(HERE / f"q{query}.py")).job


def run_query(
    spark: SparkSession, place: Place, query: int, *, batch: int, drain: bool = True
) -> RunOutcome:
    """Run a query over all that is in its topics; with `drain` all windows end."""
    job = query_job(query)
    params = place.params(query, job, batch)
    return run(job, home=place.home, params=params, bounded=True, drain=drain, spark=spark)


def compare(truth: Truth, place: Place, query: int) -> Compared:
    """A query's results against its SQL."""
    if query in PROCESSING_TIME:
        truth.processed(_batches(place, query))
    if query in FILES:
        return truth.compare_csv(sql_of(query), place.out(query))
    return truth.compare_topic(sql_of(query), place.out(query))


def _batches(place: Place, query: int) -> list[Processed]:
    """When each batch of the query's current run was, and how far it read."""
    current = Home(place.home).job(query_job(query).name).current()
    assert current is not None
    found = []
    for record in current.checkpoints():
        entry = read_entry(current, record.id)
        assert entry is not None and entry.batch_time_ms is not None, "retain more checkpoints"
        upto = {int(part): int(end) for part, end in record.sources["bids"].end.items()}
        found.append(Processed(entry.batch_time_ms, upto))
    return found


def lines_of_job(query: int) -> int:
    """The lines of a query's program, without blank lines, comments, docstrings and imports.

    What it shares with other queries counts, too; `nexmark.py` does not, as the SQL has its tables.
    """
    program = HERE / f"q{query}.py"
    text = program.read_text(encoding="utf-8")
    return sum(_lines(HERE / f"{name}.py") for name in SHARED if f"from {name}" in text) + _lines(
        program
    )


def _lines(program: Path) -> int:
    text = program.read_text(encoding="utf-8")
    tree = ast.parse(text)
    left_out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) or (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            left_out.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = enumerate(text.splitlines(), start=1)
    return sum(
        1
        for number, line in lines
        if number not in left_out and line.strip() and not line.strip().startswith("#")
    )


def lines_of_sql(query: int) -> int:
    """The lines of a query's SQL, without blank lines and comments."""
    lines = sql_of(query).splitlines()
    return sum(1 for line in lines if line.strip() and not line.strip().startswith("--"))


def play(
    spark: SparkSession, place: Place, settings: Settings, queries: Sequence[int], batch: int
) -> int:
    """Make the events, run the queries, print a line for each; how many are different."""
    made = make_events(settings)
    write(place.data, made, made.until(1.0), settings.partitions)
    counts = ", ".join(f"{len(made.lines[name]):,} {name}" for name in TOPICS)
    print(f"{counts}; seed {settings.seed}, up to half a minute out of order\n")
    print("query  lines  lines of SQL       rows  seconds")
    different = 0
    with Truth(place.data) as truth:
        for query in queries:
            began = time.monotonic()
            outcome = run_query(spark, place, query, batch=batch)
            if outcome.error is not None:
                raise outcome.error
            seconds = time.monotonic() - began
            found = compare(truth, place, query)
            different += not found.equal
            print(
                f"q{query:<5} {lines_of_job(query):>5} {lines_of_sql(query):>13} "
                f"{found.rows:>10,} {seconds:>8.1f}  {verdict(found)}",
                flush=True,
            )
            for example in found.examples:
                print(f"       {example}", flush=True)
            shutil.rmtree(place.out(query), ignore_errors=True)
    return different


def verdict(found: Compared) -> str:
    """Equal or different, and by how much."""
    if found.equal:
        return "equal"
    return f"different: {found.missing:,} rows are missing, {found.unexpected:,} are too many"


def main() -> int:
    """Run queries and compare."""
    from headgate.runtime.session import get_session

    defaults = Settings()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=defaults.events)
    parser.add_argument("--seed", type=int, default=defaults.seed)
    parser.add_argument("--per-second", type=float, default=defaults.per_second)
    parser.add_argument("--batch", type=int, default=200_000, help="events in a batch")
    parser.add_argument("--rounds", type=int, default=1, help="so many seeds, one after the other")
    parser.add_argument("--queries", nargs="*", default=[f"q{n}" for n in QUERIES])
    parser.add_argument("--dir", type=Path, default=Path("build/nexmark"))
    args = parser.parse_args()
    queries = [int(name.removeprefix("q")) for name in args.queries]
    spark = get_session()
    different = 0
    try:
        for seed in range(args.seed, args.seed + args.rounds):
            shutil.rmtree(args.dir, ignore_errors=True)
            settings = Settings(args.events, seed, args.per_second)
            different += play(spark, Place(args.dir.absolute()), settings, queries, args.batch)
    finally:
        spark.stop()
    shutil.rmtree(args.dir, ignore_errors=True)
    ran = len(queries) * args.rounds
    print(f"\n{ran - different} of {ran} runs equal SQL in DuckDB")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
