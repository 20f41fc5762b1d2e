"""What each query must give: its SQL in DuckDB over the same topics, compared row by row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import duckdb

from headgate.connectors.log.files import TopicFiles

_TABLES = {
    "person": ("persons", "id BIGINT, name VARCHAR, emailAddress VARCHAR, creditCard VARCHAR, "
               "city VARCHAR, state VARCHAR, dateTime TIMESTAMP, extra VARCHAR"),
    "auction": ("auctions", "id BIGINT, itemName VARCHAR, description VARCHAR, initialBid BIGINT, "
                "reserve BIGINT, dateTime TIMESTAMP, expires TIMESTAMP, seller BIGINT, "
                "category BIGINT, extra VARCHAR"),
    "bid": ("bids", "auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, "
            "dateTime TIMESTAMP, extra VARCHAR"),
    "side_input": ("side_input", "key BIGINT, value VARCHAR"),
}  # fmt: skip


def sql_of(query: int) -> str:
    """The SQL of a query."""
    path = Path(__file__).parent / "sql" / f"q{query}.sql"
    return path.read_text(encoding="utf-8")


@dataclass(frozen=True)
class Compared:
    """A query's rows against its truth."""

    rows: int
    """How many the truth has."""
    missing: int
    """Rows of the truth that are not there, each counted as often as it is missing."""
    unexpected: int
    """Rows that are there, but not in the truth."""
    examples: tuple[str, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether the two are the same multiset of rows."""
        return not self.missing and not self.unexpected


@dataclass(frozen=True)
class Processed:
    """When a batch was processed, and up to which offsets it read the bids."""

    millis: int
    upto: Mapping[int, int]


class Truth:
    """The topics of a folder as tables of DuckDB.

    >>> with Truth(Path("data/nexmark")) as truth:  # doctest: +SKIP
    ...     truth.compare_topic(sql_of(0), Path("data/nexmark/q0")).equal
    True
    """

    def __init__(self, data: Path) -> None:
        self._db = duckdb.connect()
        self._db.execute("SET TimeZone = 'UTC'; SET preserve_insertion_order = true")
        for table, (topic, columns) in _TABLES.items():
            files = TopicFiles(data / topic)
            self._db.execute(f"CREATE TABLE {table} ({columns})")
            self._db.execute(f"CREATE TABLE {table}_at ({columns}, part INTEGER, pos BIGINT)")
            for part in range(files.partitions()):
                for segment in files.segments(part):
                    path = data / topic / f"partition-{part:05d}" / segment.name
                    self._db.execute(
                        f"INSERT INTO {table}_at SELECT *, {part}, "
                        f"{segment.base} + row_number() OVER () - 1 "
                        f"FROM {_read_json([path], columns)}"
                    )
            self._db.execute(f"INSERT INTO {table} SELECT * EXCLUDE (part, pos) FROM {table}_at")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def processed(self, batches: Iterable[Processed]) -> None:
        """Say when each bid was processed: the truth of windows of processing time needs it."""
        self._db.execute("CREATE OR REPLACE TABLE batch (part INTEGER, upto BIGINT, millis BIGINT)")
        rows = [[part, upto, b.millis] for b in batches for part, upto in b.upto.items()]
        self._db.executemany("INSERT INTO batch VALUES (?, ?, ?)", rows)
        self._db.execute(
            "CREATE OR REPLACE TABLE bid_processed AS SELECT bid_at.*, epoch_ms(("
            "SELECT min(millis) FROM batch WHERE batch.part = bid_at.part AND upto > pos"
            ")) AS p_time FROM bid_at"
        )

    def compare_topic(self, sql: str, out: Path) -> Compared:
        """The rows of a topic; of records with keys the latest of each that is not deleted."""
        columns = self._wanted(sql)
        folder = TopicFiles(out)
        if not folder.exists():
            return self._compared(None)
        keyed = list(out.glob("partition-*/*.keyed.jsonl"))
        if keyed:
            final = out.with_name(f"{out.name}.final.jsonl")
            latest = {record.key: record.value for record in folder.read()}
            final.write_text("".join(f"{row}\n" for row in latest.values() if row is not None))
            paths = [final]
        else:
            paths = sorted(out.glob("partition-*/*.jsonl"))
        return self._compared(_read_json(paths, columns) if paths else None)

    def compare_csv(self, sql: str, out: Path) -> Compared:
        """The rows of a sink of CSV files."""
        columns = self._wanted(sql)
        paths = sorted(str(path) for path in out.glob("batch=*/part-*"))
        read = f"read_csv({paths!r}, header = false, columns = {_struct(columns)})"
        return self._compared(read if paths else None)

    def _wanted(self, sql: str) -> str:
        """Run the query; its columns."""
        self._db.execute(f"CREATE OR REPLACE TABLE wanted AS {sql}")
        described = self._db.execute("DESCRIBE wanted").fetchall()
        return ", ".join(f"{name} {kind}" for name, kind, *_ in described)

    def _compared(self, found: str | None) -> Compared:
        """`wanted` against what an expression reads."""
        rows = found or "(SELECT * FROM wanted LIMIT 0)"
        names = ", ".join(row[0] for row in self._db.execute("DESCRIBE wanted").fetchall())
        self._db.execute(f"CREATE OR REPLACE TABLE found AS SELECT {names} FROM {rows}")
        for name, one, other in (("missing", "wanted", "found"), ("unexpected", "found", "wanted")):
            self._db.execute(
                f"CREATE OR REPLACE TABLE {name} AS FROM {one} EXCEPT ALL FROM {other}"
            )
        examples = [
            f"{name} {json.dumps(dict(zip(names.split(', '), row, strict=True)), default=str)}"
            for name in ("missing", "unexpected")
            for row in self._db.execute(f"FROM {name} LIMIT 3").fetchall()
        ]
        wanted, missing, unexpected = map(self._count, ("wanted", "missing", "unexpected"))
        return Compared(wanted, missing, unexpected, tuple(examples))

    def _count(self, table: str) -> int:
        found: Any = self._db.execute(f"SELECT count(*) FROM {table}").fetchone()
        return int(found[0])


def _read_json(paths: list[Path], columns: str) -> str:
    names = [str(path) for path in paths]
    return (
        f"read_json({names!r}, format = 'newline_delimited', columns = {_struct(columns)}, "
        f"maximum_object_size = 1000000)"
    )


def _struct(columns: str) -> str:
    """Columns as the options of DuckDB's readers name them: {'id': 'BIGINT', ...}."""
    parts = re.split(r", (?![^(]*\))", columns)
    named = (part.split(" ", 1) for part in parts)
    return "{" + ", ".join(f"'{name}': '{kind}'" for name, kind in named) + "}"
