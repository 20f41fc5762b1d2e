"""A batch of one sink: its rows as files of the table, then one snapshot with the batch's token."""

from __future__ import annotations

import math
import pickle
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import StructType

from headgate.base.coded import CodedFailure
from headgate.connectors.iceberg.failures import explained, failure
from headgate.connectors.iceberg.keys import joined, near
from headgate.connectors.iceberg.table import LakeTable
from headgate.connectors.iceberg.tasks import (
    Place,
    Rewriting,
    Rewritten,
    Writing,
    Written,
    travelling,
)

if TYPE_CHECKING:
    from pyiceberg.table import Table

DELETED = "__hg_deleted"
"""The column of a change that says that it deletes."""
WRITER, NUMBER, TOKEN = "headgate.writer", "headgate.batch", "headgate.token"
"""What a snapshot's summary says of the batch that it has."""
_TASK_BYTES = 64 << 20
"""A task writes the staged rows of so many bytes: fewer tasks leave fewer small files."""
_TRIES = 5
_PLACE = "__hg_place"


@dataclass(frozen=True)
class BatchWrite:
    """Writes the batches of one sink; `rows` are the columns that the table gets."""

    table: LakeTable
    rows: StructType
    key: tuple[str, ...] = ()

    def __call__(self, rows: DataFrame, request: Mapping[str, Any]) -> None:
        """Write a batch, unless the table has it."""
        with explained(self.table.sink, self.table.name):
            found = self.table.find()
            if found is not None and self._is_out(found, request):
                return
            self._write(rows, request, *self.table.prepared(self.rows))

    def _write(self, rows: DataFrame, request: Mapping[str, Any], table: Table, arrow: Any) -> None:
        place = Place.of(self.table.sink, self.table.name, table)
        changes = DELETED in rows.columns
        task = Writing(place, arrow, self.key, DELETED if changes else None)
        few = self._few(rows, request, changes)
        messages = few.mapInArrow(travelling(place, task), "message BINARY").collect()
        batch = _Batch(place, [pickle.loads(message.message) for message in messages], request)
        for number in range(_TRIES):
            if number:
                time.sleep(0.1 * 2**number)
                table = self.table.load()
                if self._is_out(table, request):
                    return
            if batch.committed(table, few):
                return
        raise failure(
            "ICEBERG_CONFLICT", self.table.sink, self.table.name, f"{_TRIES} tries have failed"
        )

    def _is_out(self, table: Table, request: Mapping[str, Any]) -> bool:
        """Whether the table has the batch; raises if it has others in its place."""
        from pyiceberg.table.snapshots import ancestors_of

        for snapshot in ancestors_of(table.current_snapshot(), table.metadata):
            said = snapshot.summary.additional_properties if snapshot.summary else {}
            if said.get(WRITER) != request["writer"]:
                continue
            number = int(said[NUMBER])
            if number == request["number"] and said[TOKEN] == request["token"]:
                return True
            if number >= request["number"]:
                there = {"found": number, "batch": request["number"]}
                raise CodedFailure("SINK_AHEAD", {"sink": self.table.sink, **there})
            return False
        return False

    def _few(self, rows: DataFrame, request: Mapping[str, Any], changes: bool) -> DataFrame:
        """The rows in few tasks; with a key, the last of each key."""
        wanted = max(1, math.ceil(request["bytes"] / _TASK_BYTES))
        count = min(wanted, len(request["tasks"]))
        if not self.key or changes:  # of changes there is only one a key
            return rows.coalesce(count)
        key = [F.col(_quoted(name)) for name in self.key]
        every = F.struct(*[F.col(_quoted(name)) for name in rows.columns])
        # staged rows are in their order, each partition behind the one before it
        placed = rows.withColumn(_PLACE, F.monotonically_increasing_id()).repartition(count, *key)
        last = placed.groupBy(*key).agg(F.max_by(every, F.col(_PLACE)).alias("last"))
        return last.select(*[F.col(f"last.{_quoted(name)}") for name in rows.columns])


@dataclass(frozen=True)
class _Batch:
    """What the tasks have written, on its way into a snapshot."""

    place: Place
    written: Sequence[Written]
    request: Mapping[str, Any]
    files: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.files.extend(file for one in self.written for file in one.files)

    def committed(self, table: Table, rows: DataFrame) -> bool:
        """Commit to the table as it is, without another try if somebody else was faster."""
        from pyiceberg.exceptions import (
            CommitFailedException,
            CommitStateUnknownException,
            ValidationException,
        )

        self._check_same(table)
        changed = self._rewritten(table, rows)
        added = [*self.files, *(file for one in changed for file in one.files)]
        if not added and not changed:
            return True  # only deletions, of rows that are not there
        # a try of pyiceberg's own would not look whether the batch is there by now
        properties = {**table.metadata.properties, "commit.retry.num-retries": "0"}
        table.metadata = table.metadata.model_copy(update={"properties": properties})
        try:
            with table.transaction() as transaction:
                update = transaction.update_snapshot(snapshot_properties=self._summary())
                with update.overwrite() if changed else update.merge_append() as snapshot:
                    for one in changed:
                        snapshot.delete_data_file(one.old)
                    for file in added:
                        snapshot.append_data_file(file)
        except (CommitFailedException, CommitStateUnknownException, ValidationException):
            return False
        return True

    def _summary(self) -> dict[str, str]:
        said = {WRITER: "writer", NUMBER: "number", TOKEN: "token"}
        return {name: str(self.request[part]) for name, part in said.items()}

    def _check_same(self, table: Table) -> None:
        """The files are of a schema and a division into partitions that the table must have."""
        was, now = self.place.metadata, table.metadata
        if was.default_spec_id != now.default_spec_id or was.table_uuid != now.table_uuid:
            raise failure(
                "ICEBERG_CONFLICT",
                self.place.sink,
                self.place.name,
                "its partitioning has changed, or it was recreated",
            )

    def _rewritten(self, table: Table, rows: DataFrame) -> list[Rewritten]:
        """Files of the table that have some of the batch's keys, written anew without them."""
        keys = [one.keys for one in self.written if one.keys is not None]
        if not keys or table.current_snapshot() is None:
            return []
        ours = joined(keys)
        scans = list(table.scan(row_filter=near(ours)).plan_files())
        if not scans:
            return []
        place = Place.of(self.place.sink, self.place.name, table)
        context = rows.sparkSession.sparkContext
        tasks = context.parallelize(scans, min(len(scans), 4 * context.defaultParallelism))
        rewrite: Any = travelling(place, Rewriting(place, ours))
        made: list[Rewritten] = tasks.mapPartitions(rewrite).collect()
        return made


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
