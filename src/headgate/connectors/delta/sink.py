"""DeltaSink: a table of Delta Lake, exactly once by its own transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from headgate.base.errors import GraphError
from headgate.base.store_url import StoreUrl
from headgate.connectors.base import Expr, Sink, SinkSpec
from headgate.connectors.columns import check_columns, check_stored, names_of
from headgate.jvm.lakes import need_delta
from headgate.jvm.stores import need_store

_MODES = ("append", "merge")


class DeltaSink(Sink):
    """Writes to a Delta table exactly once, one commit per batch; a missing table is created.

    `mode="merge"` replaces the row with the same `key`, and accepts streams of changes. A restore
    from an older snapshot is a new run: it appends rows again, but a merge ends with the same
    table. Columns that the table lacks are added with `evolve=True`, and refused otherwise.

    >>> DeltaSink("lake/visits", partition_by=["day"]).describe()
    'delta:lake/visits'
    >>> DeltaSink("lake/totals", mode="merge", key=["user"]).takes_changes
    True
    """

    def __init__(
        self,
        path: str,
        *,
        mode: Literal["append", "merge"] = "append",
        key: Sequence[str] = (),
        partition_by: Sequence[str] = (),
        evolve: bool = False,
    ) -> None:
        self.path, self.mode, self.evolve = path, mode, evolve
        self.columns = names_of("key", key)
        self.partition_by = names_of("partition_by", partition_by)
        self.key = _as_one(self.columns)

    def hidden_columns(self) -> Mapping[str, Expr]:
        return {}  # the table has no other columns than the rows

    def key_text(self, columns: Sequence[str]) -> str:
        return str(list(columns))

    @property
    def takes_changes(self) -> bool:
        return self.mode == "merge"

    def describe(self) -> str:
        return f"delta:{self.path}"

    def config(self) -> Mapping[str, Any]:
        """Without `evolve`: a job that was refused because of a new column can continue with it."""
        given = {"key": self.columns, "partition_by": self.partition_by}
        lists = {name: list(names) for name, names in given.items() if names}
        return {"mode": self.mode, **lists}

    def check(self) -> None:
        if self.mode not in _MODES:
            raise GraphError(
                f"mode must be {' or '.join(map(repr, _MODES))}",
                got=repr(self.mode),
                remedy="correct it, or leave it out (append)",
            )
        if self.takes_changes != bool(self.columns):
            raise GraphError(
                "mode='merge' needs a key, and mode='append' has none",
                got=f"mode={self.mode!r}, key={list(self.columns)}",
                remedy="mode='merge', key=['user'] keeps one row for each user",
            )

    def check_rows(self, rows: StructType) -> None:
        check_stored(rows, "written to a Delta table")
        check_columns(rows, "key", self.columns)
        check_columns(rows, "partition_by", self.partition_by, others=True)

    def need_client(self, spark: SparkSession) -> None:
        need_delta(spark)
        need_store(spark, self.path)

    def spec(self) -> SinkSpec:
        options = {
            "merge_key": list(self.columns),
            "partition_by": list(self.partition_by),
            "evolve": str(self.evolve).lower(),
        }
        return SinkSpec("delta", _spark_path(self.path), options)


def _as_one(columns: Sequence[str]) -> str | None:
    """What rows are merged by, as one expression."""
    names = ["`" + name.replace("`", "``") + "`" for name in columns]
    return f"to_json(struct({', '.join(names)}))" if len(names) > 1 else next(iter(names), None)


def _spark_path(path: str) -> str:
    """The address as Spark takes it; a plain path is one of the driver's folder."""
    if (store := StoreUrl.parse(path)) is not None:
        return store.spark()
    return path if "://" in path else str(Path(path).absolute())
