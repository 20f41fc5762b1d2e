"""A sink of one's own: rows into a table of SQLite, exactly once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from typing import Any

import pyarrow as pa

import headgate as hg

_WAIT_SECONDS = 60.0  # one task writes at a time: the others wait for it


class SqliteSink(hg.PythonSink):
    """`stream.sink("visits", SqliteSink("visits.db", "visits"))`; the columns must be there.

    A task's rows and the name of its part of the batch are one transaction: a part whose name is
    there is left out. Tasks on several machines would have to see one disk with locks.
    """

    exactly_once = True
    by_task = True  # a replayed batch has the same rows in each partition

    def __init__(self, path: str, table: str) -> None:
        self.path, self.table = path, table

    def config(self) -> Mapping[str, Any]:
        """Another table is another sink."""
        return {"path": self.path, "table": self.table}

    def write(self, rows: Iterator[pa.RecordBatch], batch: hg.Batch, partition: int) -> int:
        """Write a task's rows, unless they are there; gives their number."""
        with closing(sqlite3.connect(self.path, _WAIT_SECONDS, isolation_level=None)) as db:
            db.execute("BEGIN IMMEDIATE")
            db.execute("CREATE TABLE IF NOT EXISTS _batches (part TEXT PRIMARY KEY)")
            part = f"{batch.token}/{partition}"
            if db.execute("SELECT 1 FROM _batches WHERE part = ?", [part]).fetchone():
                return 0  # closing without COMMIT leaves all as it was
            db.execute("INSERT INTO _batches VALUES (?)", [part])
            written = sum(self._insert(db, record_batch) for record_batch in rows)
            db.execute("COMMIT")
            return written

    def _insert(self, db: sqlite3.Connection, rows: pa.RecordBatch) -> int:
        names = ", ".join(f'"{name}"' for name in rows.schema.names)
        marks = ", ".join("?" * rows.num_columns)
        columns = [column.to_pylist() for column in rows.columns]
        db.executemany(
            f'INSERT INTO "{self.table}" ({names}) VALUES ({marks})', zip(*columns, strict=True)
        )
        return int(rows.num_rows)
