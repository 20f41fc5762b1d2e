"""Owns `make bench-jdbc`: rows into PostgreSQL by a job, against psql's \\copy of the same rows.

python -m bench.jdbc --rows 1000000 --rounds 2

Both write into tables of the same server, in turn, and each row is compared in the end. What a job
takes is the time of its batches, from reading an embedded topic of JSON to the commit. Each takes
half as many rows; the one before them, of as many, is not counted: Spark makes its code there.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import headgate as hg
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from headgate.runtime.run import run
from headgate.runtime.session import get_session
from tests.jdbc.server import Postgres

_SCHEMA = (
    "id BIGINT, user_id BIGINT, item STRING, category STRING, price DOUBLE, paid DECIMAL(10,2), "
    "at TIMESTAMP, note STRING"
)
_COLUMNS = (
    "id bigint, user_id bigint, item text, category text, price double precision, "
    "paid numeric(10,2), at timestamptz, note text"
)
_PARTITIONS = 2


def main() -> int:
    """Write the rows by each in turn, and compare tables and times."""
    parser = argparse.ArgumentParser(prog="bench.jdbc", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    server = Postgres()
    try:
        with tempfile.TemporaryDirectory(prefix="headgate-bench-jdbc-") as folder:
            Bench(server, Path(folder), options.rows).run(options.rounds)
    finally:
        server.close()
    return 0


class Bench:
    """A server, and a topic and a file with the same rows."""

    def __init__(self, server: Postgres, folder: Path, rows: int) -> None:
        self._server, self._folder, self._rows = server, folder, rows
        self._spark = get_session(master="local[2]", parallelism=_PARTITIONS)

    def run(self, rounds: int) -> None:
        whole = self._topic("rows", self._rows * 3 // 2)
        self._job("warm", whole, "upsert")
        self._job("made", whole, "append")
        file = self._folder / "rows.tsv"
        # by psql, so that the file is its user's
        self._server.psql("-c", f"\\copy ({self._counted('made')}) TO '{file}'")
        for number in range(rounds):
            copied = self._copy(f"copied{number}", file)
            appended = self._job(f"appended{number}", whole, "append")
            upserted = self._job(f"upserted{number}", whole, "upsert")
            for name in ("appended", "upserted"):
                self._same(f"copied{number}", f"{name}{number}")
            by_copy = f"psql \\copy {copied:.1f} s"
            by_append = f"append {appended:.1f} s (of \\copy {copied / appended:.2f})"
            by_upsert = f"upsert by key {upserted:.1f} s ({copied / upserted:.2f})"
            print(f"{self._rows:,} rows: {by_copy}, {by_append}, {by_upsert}", flush=True)

    def _topic(self, name: str, count: int) -> TopicFiles:
        topic = TopicFiles(self._folder / name)
        topic.create(_PARTITIONS)
        for partition in range(_PARTITIONS):
            topic.append(list(_records(range(partition, count, _PARTITIONS))), partition=partition)
        return topic

    def _copy(self, table: str, file: Path) -> float:
        self._server.sql(f"CREATE TABLE {table} ({_COLUMNS})", "CHECKPOINT")
        began = time.monotonic()
        self._server.psql("-c", f"\\copy {table} FROM '{file}'")
        return time.monotonic() - began

    def _job(self, table: str, topic: TopicFiles, mode: str) -> float:
        key = ", PRIMARY KEY (id)" if mode == "upsert" else ""
        self._server.sql(f"CREATE TABLE {table} ({_COLUMNS}{key})", "CHECKPOINT")
        sink = hg.JdbcSink(
            self._server.url, table, mode="upsert" if key else "append",
            key=["id"] if key else (), options=self._server.login,
        )  # fmt: skip

        @hg.job(table)
        def job(job: hg.Job) -> None:
            rows = hg.topic(f"log:{topic.path}", schema=_SCHEMA, max_records=str(self._rows // 2))
            job.source("rows", rows).sink("out", sink)

        home = self._folder / "home"
        outcome = run(job, home=str(home), bounded=True, spark=self._spark, parallelism=_PARTITIONS)
        if outcome.error is not None:
            raise outcome.error
        current = Home(str(home)).job(table).current()
        assert current is not None
        records = [current.checkpoint(id) for id in current.checkpoint_ids()]
        assert len(records) == 3, f"{len(records)} batches"
        return sum((record.duration_ms or 0) / 1000 for record in records[1:])

    def _counted(self, table: str) -> str:
        """The rows of the batches that count."""
        return f"SELECT * FROM {table} WHERE id >= {7 * (self._rows // 2)}"

    def _same(self, one: str, other: str) -> None:
        left = f"SELECT * FROM {one} EXCEPT ALL {self._counted(other)}"
        ((different,),) = self._server.rows(f"SELECT count(*) FROM ({left}) t")
        ((count,),) = self._server.rows(f"SELECT count(*) FROM ({self._counted(other)}) t")
        assert (different, count) == ("0", str(self._rows)), f"{other} has other rows than {one}"


def _records(numbers: range) -> Iterator[Record]:
    for n in numbers:
        at = f"2026-01-01T{n // 3600 % 24:02d}:{n // 60 % 60:02d}:{n % 60:02d}.{n % 1000:03d}Z"
        note = f"order {n} was paid with card {n * 13 % 1_000_003} and sent\\tby post"
        yield Record(
            f'{{"id":{n * 7},"user_id":{n * 7919 % 200_000},"item":"item {n * 31 % 10_000}",'
            f'"category":"category {n % 37}","price":{n % 9973 / 100},'
            f'"paid":{n % 99_991 / 100:.2f},"at":"{at}","note":"{note}"}}'
        )


if __name__ == "__main__":
    sys.exit(main())
