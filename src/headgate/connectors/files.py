"""Files: a folder a batch, that readers see whole or not at all."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from headgate.base.errors import GraphError
from headgate.connectors.base import Sink, SinkSpec

_FORMATS = ("parquet", "json", "csv")


@dataclass(frozen=True)
class FilesSink(Sink):
    """Parquet, JSON or CSV files, exactly once, in folders `batch=<run>-<number>`.

    >>> FilesSink("out/orders", format="json").describe()
    'files:out/orders (json)'
    """

    path: str
    format: Literal["parquet", "json", "csv"] = "parquet"

    def describe(self) -> str:
        return f"files:{self.path} ({self.format})"

    def check(self) -> None:
        if self.format not in _FORMATS:
            raise GraphError(
                f"format must be one of {', '.join(_FORMATS)}",
                got=repr(self.format),
                remedy="correct it, or leave it out (parquet)",
            )

    def spec(self) -> SinkSpec:
        return SinkSpec("files", str(Path(self.path).absolute()), {"format": self.format})
