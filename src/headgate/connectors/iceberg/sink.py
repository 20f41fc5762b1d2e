"""IcebergSink: a table of an Iceberg catalog, exactly once by its snapshots."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from pyspark.sql import SparkSession
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    FloatType,
    MapType,
    StructType,
)

from headgate.base.coded import CodedFailure
from headgate.base.errors import GraphError
from headgate.base.secrets import protect_settings
from headgate.connectors.base import Expr, Finding, Sink, SinkSpec
from headgate.connectors.columns import check_columns, names_of
from headgate.connectors.extras import need_extra
from headgate.connectors.iceberg.batch import BatchWrite
from headgate.connectors.iceberg.columns import check_types, fitted
from headgate.connectors.iceberg.failures import explained
from headgate.connectors.iceberg.table import LakeTable
from headgate.connectors.options import choice
from headgate.failures import Reason
from headgate.jvm.python_sinks import BatchWriter

_MODES = ("append", "merge")
_NO_KEY = (ArrayType, DoubleType, FloatType, MapType, StructType)


class IcebergSink(Sink):
    """Writes to an Iceberg table exactly once, one snapshot per batch; creates a missing table.

    `catalog` is a name from pyiceberg's own configuration, and `options` are pyiceberg's catalog
    properties: `type`, `uri`, `warehouse`, ... `mode="merge"` replaces the row with the same `key`,
    and accepts streams of changes. Columns that the table lacks are added with `evolve=True`, and
    refused otherwise. The driver and the executors need the package pyiceberg:
    `pip install 'headgate[iceberg]'`.

    >>> options = {"type": "rest", "uri": "https://catalog.example.com"}
    >>> IcebergSink("shop.visits", partition_by=["day"], options=options).describe()
    'iceberg:shop.visits'
    >>> IcebergSink("shop.totals", mode="merge", key=["user"], options=options).takes_changes
    True
    """

    def __init__(
        self,
        table: str,
        *,
        mode: Literal["append", "merge"] = "append",
        key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        evolve: bool = False,
        catalog: str = "default",
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.table, self.mode, self.evolve, self.catalog = table, mode, evolve, catalog
        self.columns = names_of("key", key)
        """Those of the key."""
        self.partition_by = names_of("partition_by", partition_by)
        self.options = {name: str(value) for name, value in (options or {}).items()}
        self.key: Expr | None = _as_one(self.columns)
        self._rows = StructType()
        protect_settings(self.options)

    def hidden_columns(self) -> Mapping[str, Expr]:
        return {}  # the table has no other columns than the rows

    def key_text(self, columns: Sequence[str]) -> str:
        return str(list(columns))

    @property
    def takes_changes(self) -> bool:
        return self.mode == "merge"

    def describe(self) -> str:
        return f"iceberg:{self.table}"

    def config(self) -> Mapping[str, Any]:
        """Without `evolve`: a job that was refused because of a new column can continue with it."""
        given = {"key": self.columns, "partition_by": self.partition_by}
        lists = {name: list(names) for name, names in given.items() if names}
        return {"mode": self.mode, **lists}

    def check(self) -> None:
        choice({"mode": self.mode}, "mode", _MODES)
        if not self.table.rpartition(".")[0] or not all(self.table.split(".")):
            raise GraphError(
                "table must be the name of a table behind its namespace",
                expected="'shop.orders'",
                got=repr(self.table),
                remedy="correct it",
            )
        if self.takes_changes != bool(self.columns):
            raise GraphError(
                "mode='merge' needs a key, and mode='append' has none",
                got=f"mode={self.mode!r}, key={list(self.columns)}",
                remedy="mode='merge', key=['user'] keeps one row for each user",
            )

    def check_rows(self, rows: StructType) -> None:
        check_types(rows)
        check_columns(rows, "key", self.columns)
        check_columns(rows, "partition_by", self.partition_by)
        for name in self.columns:
            if isinstance(rows[name].dataType, _NO_KEY):
                raise GraphError(
                    f"the column {name} cannot be a part of the key of an Iceberg table",
                    got=rows[name].dataType.simpleString(),
                    remedy="cast it: numbers that are no fractions, texts, dates and times can",
                )

    def with_rows(self, rows: StructType) -> Sink:
        made = copy.copy(self)
        made._rows = rows
        return made

    def need_client(self, spark: SparkSession) -> None:
        self._need_package()

    def _need_package(self) -> None:
        need_extra("iceberg", f"the sink {self.describe()}")

    def live(self, spark: SparkSession) -> Sequence[Finding]:
        self._need_package()
        about = self.describe()
        table = self._lake("")
        try:
            with explained("", self.table):
                found = table.find()
        except CodedFailure as error:
            reason = Reason[error.code]
            said = error.fields["text"]
            return [Finding(about, f"{reason.text} ({about}): {said}", reason)]
        if found is None:
            return [Finding(about, f"{about}: not there, will be created")]
        wrong = table.misfit(found, fitted(self._rows, found.schema()))
        if wrong is not None:
            reason = Reason.ICEBERG_TABLE
            return [Finding(about, f"{reason.text} ({about}): {wrong}", reason)]
        count = len(self._rows)
        return [Finding(about, f"{about}: {count} column{'s' * (count != 1)} to write")]

    def batch_writer(self, step: str) -> BatchWriter:
        return BatchWrite(self._lake(step), self._rows, self.columns)

    def _lake(self, step: str) -> LakeTable:
        return LakeTable(
            step, self.table, self.catalog, self.options, self.partition_by, self.evolve
        )

    def spec(self) -> SinkSpec:
        return SinkSpec("python", options={"delivery": "exactly_once"})


def _as_one(columns: Sequence[str]) -> str | None:
    """What rows are merged by, as one expression."""
    names = ["`" + name.replace("`", "``") + "`" for name in columns]
    return f"to_json(struct({', '.join(names)}))" if len(names) > 1 else next(iter(names), None)
