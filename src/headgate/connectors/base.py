"""What every connector gives: raw records from a source, a place for rows from a sink."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructType

from headgate.errors import GraphError

Expr: TypeAlias = Column | str
Start: TypeAlias = Literal["earliest", "latest"] | datetime


class Source:
    """Where a stream or a table comes from."""

    def struct(self) -> StructType:
        """The columns of a record's value."""
        raise NotImplementedError

    def describe(self) -> str:
        """An address that people recognise."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise if the source cannot be read at all, before anything is started."""

    def records(self, spark: SparkSession, *, table: bool) -> DataFrame:
        """The raw records: key, value, partition, offset, timestamp."""
        raise NotImplementedError

    def earliest(self) -> Mapping[str, int] | None:
        """The first offset that is still there, by partition; nothing if it cannot be told."""
        return None


class Sink:
    """Where rows go."""

    exactly_once = True
    key: Expr | None = None  # what partitions the sink's rows, if anything

    def describe(self) -> str:
        """An address that people recognise."""
        raise NotImplementedError

    def check(self) -> None:
        """Raise if the sink can never be written, before anything is started."""

    def spec(self) -> SinkSpec:
        """What the kernel's writer is told."""
        raise NotImplementedError


@dataclass(frozen=True)
class SinkSpec:
    """One sink as the kernel's writer knows it."""

    kind: Literal["log", "files", "console"]
    path: str = ""
    options: Mapping[str, Any] | None = None

    def to_json(self, name: str, *, keyed: bool) -> dict[str, Any]:
        """The sink's part of the writer's specification."""
        return {
            "name": name,
            "kind": self.kind,
            "path": self.path,
            "key": "__hg_key" if keyed else None,
            **(self.options or {}),
        }


def not_available(system: str, instead: str) -> GraphError:
    """A connector whose broker this version cannot reach."""
    return GraphError(
        f"this version of Headgate cannot reach {system}",
        remedy=f"use {instead}, or test the job with headgate.testing.JobDriver",
    )


def start_option(start: Start) -> str:
    """A start position as the kernel reads it: earliest, latest or epoch milliseconds."""
    if isinstance(start, datetime):
        return str(int(start.timestamp() * 1000))
    if start in ("earliest", "latest"):
        return start
    raise GraphError(
        "the start position is not known",
        expected="'earliest', 'latest' or a datetime",
        got=repr(start),
        remedy="use one of the three",
    )
