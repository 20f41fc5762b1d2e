"""What tasks do: write a batch's rows as files of a table, and rewrite files without some keys."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.connectors.iceberg.failures import explained
from headgate.connectors.iceberg.keys import others

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.io import FileIO
    from pyiceberg.table import Table
    from pyiceberg.table.metadata import TableMetadata

Task = Callable[[Iterator[Any]], Iterator[Any]]
_CHUNK = 256 << 20
"""So many bytes of rows, as Arrow has them, are gathered in a task before they are written."""


@dataclass(frozen=True)
class Place:
    """Where a task writes, and under which name its failures are reported."""

    sink: str
    name: str
    metadata: TableMetadata
    io: FileIO

    @staticmethod
    def of(sink: str, name: str, table: Table) -> Place:
        """A table without its history, which may be long."""
        past: dict[str, Any] = {"snapshots": [], "snapshot_log": [], "metadata_log": []}
        return Place(sink, name, table.metadata.model_copy(update=past), table.io)

    def write(self, rows: pa.Table) -> list[Any]:
        """New files of the table with these rows; no snapshot has them yet."""
        from pyiceberg.io.pyarrow import _dataframe_to_data_files

        if not len(rows):
            return []
        return list(_dataframe_to_data_files(self.metadata, self._divisible(rows), self.io))

    def _divisible(self, rows: pa.Table) -> pa.Table:
        """The rows with the columns that the table is divided by, null where they lack them."""
        import pyarrow as pa
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        schema = self.metadata.schema()
        for part in self.metadata.spec().fields:
            name = schema.find_column_name(part.source_id)
            if name in schema.column_names and name not in rows.column_names:
                kind = schema_to_pyarrow(schema.find_type(part.source_id))
                rows = rows.append_column(name, pa.nulls(len(rows), kind))
        return rows


def travelling(place: Place, task: Task) -> Task:
    """A task as the workers get it: one that lacks what the task needs can say so."""
    sink, name, payload = place.sink, place.name, pickle.dumps(task)

    def run(given: Iterator[Any]) -> Iterator[Any]:
        with explained(sink, name):
            found: Task = pickle.loads(payload)
        yield from found(given)

    return run


@dataclass(frozen=True)
class Written:
    """What a task has written, and with a key the keys of its rows, deleted ones too."""

    files: Sequence[Any]
    keys: pa.Table | None = None


@dataclass(frozen=True)
class Writing:
    """Writes the rows of a task; `deleted` is the column that says of a change that it deletes."""

    place: Place
    schema: pa.Schema
    key: Sequence[str]
    deleted: str | None

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        """For `mapInArrow`: one message, of one row, if there are rows."""
        import pyarrow as pa

        files: list[Any] = []
        keys: list[Any] = []
        with explained(self.place.sink, self.place.name):
            for rows in _chunks(batches):
                typed = rows.select(self.schema.names).cast(self.schema)
                if self.key:
                    keys.append(typed.select(self.key))
                if self.deleted is not None:
                    typed = typed.filter(pa.compute.invert(rows.column(self.deleted)))
                files += self.place.write(typed)
        if files or keys:
            written = Written(files, pa.concat_tables(keys) if keys else None)
            message = pa.array([pickle.dumps(written)], pa.binary())
            yield pa.RecordBatch.from_arrays([message], ["message"])


def _chunks(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa
    import pyarrow.compute

    assert pyarrow.compute
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(one.nbytes for one in held) >= _CHUNK:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


@dataclass(frozen=True)
class Rewritten:
    """A file of the table that had some of the keys, and those that take its place."""

    old: Any
    files: Sequence[Any]


@dataclass(frozen=True)
class Rewriting:
    """Writes files of a table anew without the rows of some keys."""

    place: Place
    keys: pa.Table

    def __call__(self, scans: Iterator[Any]) -> Iterator[Rewritten]:
        """For `mapPartitions`: of files that have none of the keys nothing is said."""
        for scan in scans:
            with explained(self.place.sink, self.place.name):
                made = self._one(scan)
            if made is not None:
                yield made

    def _one(self, scan: Any) -> Rewritten | None:
        names = self.keys.column_names
        there = self._read(scan, names)
        kept = others(there, self.keys)
        if len(kept) == len(there):
            return None
        rows = self._read(scan, None).take(kept) if len(kept) else there.slice(0, 0)
        return Rewritten(scan.file, self.place.write(rows))

    def _read(self, scan: Any, names: Sequence[str] | None) -> Any:
        """Rows of a file, in its order and without those that are deleted beside it."""
        from pyiceberg.expressions import AlwaysTrue
        from pyiceberg.io.pyarrow import ArrowScan

        metadata = self.place.metadata
        schema = metadata.schema()
        columns = schema if names is None else schema.select(*names)
        return ArrowScan(metadata, self.place.io, columns, AlwaysTrue()).to_table([scan])
