"""Dataclasses and rows as Arrow columns of their parts and back, many at a time, and checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import repeat
from operator import attrgetter, itemgetter
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.types import StructField, StructType

from headgate.steps.process.codecs import Codec, TypeMistake, named, part_of, with_nulls


class Struct(Codec):
    """Named parts: what dataclasses and rows have in common."""

    spark: StructType

    def __init__(self, parts: Sequence[tuple[str, Codec]]) -> None:
        self.parts = tuple(parts)
        self.spark = StructType([StructField(n, c.spark) for n, c in parts])
        self.arrow = pa.struct([pa.field(n, c.arrow) for n, c in parts])

    def make(self, columns: Sequence[list[Any]], size: int) -> list[Any]:
        """The values whose parts are in columns."""
        raise NotImplementedError

    def part(self, number: int) -> Callable[[Any], Any]:
        """What takes a part from a value."""
        raise NotImplementedError

    @property
    def _numbered(self) -> list[tuple[int, Codec]]:
        return [(number, codec) for number, (_, codec) in enumerate(self.parts)]

    def decode(self, column: pa.Array) -> list[Any]:
        return with_nulls(self.make(self._columns(column), len(column)), column)

    def _columns(self, column: pa.Array) -> list[list[Any]]:
        """The values of each part."""
        columns = []
        for name, codec in self.parts:
            at = column.type.get_field_index(name)
            columns.append(codec.decode(column.field(at)) if at >= 0 else [None] * len(column))
        return columns

    def encode(self, values: Sequence[Any]) -> pa.Array:
        gone = [value is None for value in values]
        if True not in gone:
            arrays = [codec.encode(list(map(self.part(n), values))) for n, codec in self._numbered]
        else:
            arrays = [
                codec.encode([None if v is None else part(v) for v in values])
                for part, codec in ((self.part(n), codec) for n, codec in self._numbered)
            ]
        if not arrays:
            return pa.array([None if v is None else {} for v in values], self.arrow)
        return pa.StructArray.from_arrays(
            arrays, fields=list(self.arrow), mask=pa.array(gone) if any(gone) else None
        )


class Record(Struct):
    """A dataclass."""

    def __init__(
        self, kind: type, parts: Sequence[tuple[str, Codec]], optional: Collection[str] = ()
    ) -> None:
        super().__init__(parts)
        self.kind = kind
        self.name = kind.__name__
        self.optional = frozenset(optional)
        fields = {f.name: f for f in dataclasses.fields(kind)}
        parameters: Any = kind.__dict__["__dataclass_params__"]
        self.changeable = not parameters.frozen or any(c.changeable for _, c in parts)
        self._plain = all(fields[n].init and not fields[n].kw_only for n, _ in parts)
        self.defaults = {n: d for n, _ in parts if (d := _default(fields[n])) is not None}
        self._filled = self.defaults.keys() - self.optional
        """Fields that are never None: where there is nothing they have their default."""
        self.own_start = not parameters.init or hasattr(kind, "__post_init__")
        """Whether code of the user's runs when one is made."""
        self._started = True

    def kept(self) -> Record:
        made = Record(self.kind, [(n, c.kept()) for n, c in self.parts], self.optional)
        # to start one again with each batch might change it
        made._started = not self.own_start
        return made

    def with_parts(self, names: Collection[str]) -> Record:
        """The same dataclass made from some of its fields: the others take their defaults."""
        return Record(self.kind, [(n, c) for n, c in self.parts if n in names], self.optional)

    def make(self, columns: Sequence[list[Any]], size: int) -> list[Any]:
        names = [name for name, _ in self.parts]
        fields = [f.name for f in dataclasses.fields(self.kind) if f.init]
        if not self._started:
            rows = zip(*columns, strict=True) if columns else repeat((), size)
            return [self.of(dict(zip(names, values, strict=True))) for values in rows]
        if self._plain and fields[: len(names)] == names:
            return list(map(self.kind, *columns)) if columns else [self.kind() for _ in range(size)]
        inits = set(fields)
        found = []
        for values in zip(*columns, strict=True):
            given = dict(zip(names, values, strict=True))
            made = self.kind(**{n: v for n, v in given.items() if n in inits})
            for name in given.keys() - inits:
                object.__setattr__(made, name, given[name])
            found.append(made)
        return found

    def decode(self, column: pa.Array) -> list[Any]:
        columns = self._columns(column)
        if column.null_count and self.own_start and self._started:
            there = column.is_valid().to_pylist()
            kept = [[v for v, is_there in zip(c, there, strict=True) if is_there] for c in columns]
            made = iter(self.make(kept, sum(there)))
            return [next(made) if is_there else None for is_there in there]
        return with_nulls(self.make(columns, len(column)), column)

    def each(self, column: pa.Array) -> Iterator[Any]:
        return _Each(self, column) if self.own_start else iter(self.decode(column))

    def _columns(self, column: pa.Array) -> list[list[Any]]:
        columns = super()._columns(column)
        for (name, _), values in zip(self.parts, columns, strict=True):
            # what was stored before a field was added has null there, and never was None
            if name in self._filled and None in values:
                fill = self.defaults[name]
                values[:] = [fill() if value is None else value for value in values]
        return columns

    def part(self, number: int) -> Callable[[Any], Any]:
        return attrgetter(self.parts[number][0])

    def normal(self, value: Any, at: str) -> Any:
        if not isinstance(value, self.kind):
            raise TypeMistake(at, f"{self.name}", value)
        parts = {
            name: part_of(codec, getattr(value, name), f"{at}.{name}") for name, codec in self.parts
        }
        for name in self._filled:
            if parts[name] is None:
                parts[name] = self.defaults[name]()
        if all(parts[name] is getattr(value, name) for name in parts):
            return value
        return self.of(parts)

    def copy(self, value: Any) -> Any:
        if value is None or not self.changeable:
            return value
        return self.of({n: c.copy(getattr(value, n)) for n, c in self.parts})

    def of(self, parts: dict[str, Any]) -> Any:
        """A value of these parts, made without calling its constructor."""
        made: Any = object.__new__(self.kind)
        for name, value in parts.items():
            object.__setattr__(made, name, value)
        return made

    def test(self, value: str, names: dict[str, Any]) -> str:
        tests = [f"{value}.__class__ is {named(names, self.kind)}"]
        for name, codec in self.parts:
            test = codec.test(f"{value}.{name}", names)
            none = "" if name in self._filled else f" or {value}.{name} is None"
            tests.append(f"({test}{none})")
        return "(" + " and ".join(tests) + ")"


def started(record: Record, row: Any) -> Any:
    """A row that has only its fields as its class makes it, or the BadRow that came of it."""
    if not record.own_start:
        return row
    parts = {name: getattr(row, name) for name, _ in record.parts}
    try:
        return record.make([[value] for value in parts.values()], 1)[0]
    except Exception as error:
        return BadRow(parts, error)


class BadRow(Exception):
    """A row of which no dataclass could be made: its own start raised."""

    def __init__(self, row: dict[str, Any], error: Exception) -> None:
        super().__init__(str(error))
        self.row, self.error = row, error


class _Each:
    """Rows of a dataclass with a start of its own, each made on first use."""

    def __init__(self, record: Record, column: pa.Array) -> None:
        self._record = record
        self._names = [name for name, _ in record.parts]
        self._rows = zip(*record._columns(column), strict=True)

    def __iter__(self) -> _Each:
        return self

    def __next__(self) -> Any:
        parts = zip(self._names, next(self._rows), strict=True)
        row = started(self._record, self._record.of(dict(parts)))
        if isinstance(row, BadRow):
            raise row from row.error
        return row


class RowOf(Struct):
    """A row as Spark's Row, for inputs whose handler names no dataclass, and for keys."""

    def __init__(self, parts: Sequence[tuple[str, Codec]]) -> None:
        super().__init__(parts)
        self.name = "Row"
        self.kind = row_class([name for name, _ in parts])

    def make(self, columns: Sequence[list[Any]], size: int) -> list[Any]:
        new, kind = tuple.__new__, self.kind
        if not columns:
            return [new(kind, ()) for _ in range(size)]
        return [new(kind, values) for values in zip(*columns, strict=True)]

    def part(self, number: int) -> Callable[[Any], Any]:
        return itemgetter(number)

    def normal(self, value: Any, at: str) -> Any:
        if isinstance(value, dict):
            value = [value.get(name) for name, _ in self.parts]
        if not isinstance(value, tuple | list) or len(value) != len(self.parts):
            raise TypeMistake(at, "a row of " + ", ".join(n for n, _ in self.parts), value)
        pairs = zip(value, self.parts, strict=True)
        return tuple.__new__(self.kind, [part_of(c, v, f"{at}.{n}") for v, (n, c) in pairs])


def row_class(names: Sequence[str]) -> type[Row]:
    """A kind of Row whose instances need not each get the names of their fields.

    >>> row_class(["a", "b"])._of(1, 2).b
    2
    """

    class NamedRow(Row):
        __fields__: ClassVar[list[str]] = list(names)

        @classmethod
        def _of(cls, *values: Any) -> Any:
            return tuple.__new__(cls, values)

    return NamedRow


def _default(field: dataclasses.Field[Any]) -> Callable[[], Any] | None:
    if field.default is not dataclasses.MISSING:
        value = field.default
        return lambda: value
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return None
