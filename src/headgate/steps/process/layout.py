"""How a process function's state is laid out in columns: the same here and in the kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import BooleanType, LongType, StructField, StructType, TimestampType

from headgate.steps.process.codecs import Codec, Scalar
from headgate.steps.process.shape import Shape

SWEEP = "sweep.at"


class Micros(Codec):
    """A time as microseconds since 1970, which the store keeps as a timestamp."""

    spark = TimestampType()
    arrow = pa.timestamp("us", "UTC")
    name = "time"

    def decode(self, column: pa.Array) -> list[Any]:
        return list(column.view(pa.int64()).to_pylist())

    def encode(self, values: Sequence[Any]) -> pa.Array:
        return pa.array(values, pa.int64()).view(self.arrow)


class Count(Scalar):
    """A number of entries."""

    def __init__(self) -> None:
        super().__init__(int, LongType(), pa.int64())


@dataclass(frozen=True)
class Column:
    """A column of a key's main row."""

    name: str
    codec: Codec


# a row has at least one column, also where nothing is kept
NOTHING = Column("none", Scalar(bool, BooleanType(), pa.bool_()))


@dataclass(frozen=True)
class Layout:
    """The columns of a key's main row, in this order: values, their ends, entries, times.

    A value state has its value and, with a time to live, when it ends. A list or map has how many
    entries it has (and a list the number of its next); the entries are in stores of their own.
    Then come the timers, and when the key is next looked at for what is over.
    """

    shape: Shape

    @property
    def values(self) -> list[Column]:
        """The values of the value states."""
        return [Column(s.name, s.value) for s in self.shape.of_kind("value")]

    @property
    def ends(self) -> list[Column]:
        """When the values of states with a time to live end."""
        return [
            Column(f"{s.name}.expires", Micros())
            for s in self.shape.of_kind("value")
            if s.ttl is not None
        ]

    @property
    def entries(self) -> list[Column]:
        """How many entries the lists have and the number of their next, and those of the maps."""
        lists = [
            Column(f"{s.name}.{what}", Count())
            for s in self.shape.of_kind("list")
            for what in ("entries", "next")
        ]
        return lists + [Column(f"{s.name}.entries", Count()) for s in self.shape.of_kind("map")]

    @property
    def times(self) -> list[Column]:
        """The timers, and the sweep."""
        sweep = [Column(SWEEP, Micros())] if self.shape.expires else []
        return [Column(t.name, Micros()) for t in self.shape.timers] + sweep

    @property
    def columns(self) -> list[Column]:
        """All of them."""
        return self.values + self.ends + self.entries + self.times or [NOTHING]

    @property
    def struct(self) -> StructType:
        """The main row as Spark knows it."""
        return StructType([StructField(c.name, c.codec.spark) for c in self.columns])

    @property
    def clocks(self) -> list[str]:
        """By which clock each of the times comes: event, processing or expiry."""
        sweep = ["expiry"] if self.shape.expires else []
        return [t.clock for t in self.shape.timers] + sweep
