"""Files: a folder a batch, that readers see whole or not at all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pyspark.sql.types import StructType

from headgate.base.errors import GraphError
from headgate.connectors.base import Sink, SinkSpec
from headgate.connectors.columns import check_columns, names_of

_FORMATS = ("parquet", "json", "csv")


@dataclass(frozen=True)
class FilesSink(Sink):
    """Writes Parquet, JSON or CSV files exactly once, into folders `batch=<run>-<number>`.

    `partition_by` names columns whose values become folders inside, as in Hive and Spark.
    `rows_per_file` is the maximum number of rows per file.

    >>> FilesSink("out/orders", format="json", partition_by=["day"]).describe()
    'files:out/orders (json)'
    """

    path: str
    format: Literal["parquet", "json", "csv"] = "parquet"
    partition_by: Sequence[str] = field(default=(), kw_only=True)
    rows_per_file: int | None = field(default=None, kw_only=True)

    def describe(self) -> str:
        return f"files:{self.path} ({self.format})"

    def config(self) -> Mapping[str, Any]:
        return {"partition_by": list(self.partition_by)} if self.partition_by else {}

    def check(self) -> None:
        if self.format not in _FORMATS:
            raise GraphError(
                f"format must be one of {', '.join(_FORMATS)}",
                got=repr(self.format),
                remedy="correct it, or leave it out (parquet)",
            )
        names_of("partition_by", self.partition_by)
        if self.rows_per_file is not None and self.rows_per_file < 1:
            raise GraphError(
                "rows_per_file must be at least 1",
                got=str(self.rows_per_file),
                remedy="correct it, or leave it out: a file has all rows of its task and folder",
            )

    def check_rows(self, rows: StructType) -> None:
        check_columns(rows, "partition_by", self.partition_by, others=True)

    def spec(self) -> SinkSpec:
        options = {
            "format": self.format,
            "partition_by": list(self.partition_by),
            "rows_per_file": self.rows_per_file,
        }
        given = {name: value for name, value in options.items() if value}
        return SinkSpec("files", str(Path(self.path).absolute()), given)
