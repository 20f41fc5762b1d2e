"""Python values of declared types as Arrow columns and back, many at a time, and checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, date, datetime
from itertools import pairwise
from operator import attrgetter, itemgetter
from typing import Any, ClassVar

import pyarrow as pa
from pyspark.sql import Row
from pyspark.sql.types import ArrayType, DataType, MapType, StructField, StructType


class TypeMistake(Exception):
    """A value that is not of its declared type: where in it, what was expected, what came."""

    def __init__(self, at: str, expected: str, got: object) -> None:
        self.at, self.expected = at, expected
        self.got = f"{type(got).__name__} {shortened(got)}"
        super().__init__(f"{at} is not {expected}, but {self.got}")


def shortened(value: object, most: int = 200) -> str:
    """A value as text that fits into a message."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."


class Codec:
    """One type: its Spark and Arrow types, and values of it in and out of columns."""

    spark: DataType
    arrow: pa.DataType
    name: str

    def decode(self, column: pa.Array) -> list[Any]:
        """The values of a column; null is None."""
        return list(column.to_pylist())

    def encode(self, values: Sequence[Any]) -> pa.Array:
        """A column of values that are normal, or None."""
        return pa.array(values, self.arrow)

    def normal(self, value: Any, at: str) -> Any:
        """The value as it is stored, or a TypeMistake that says where it is wrong."""
        raise NotImplementedError

    def copy(self, value: Any) -> Any:
        """The same value, of which nobody else has a part that can be changed."""
        return value

    def test(self, value: str, names: dict[str, Any]) -> str:
        """Python that is true if the expression `value` is normal already; may add to `names`."""
        raise NotImplementedError

    def is_normal(self) -> Callable[[Any], bool]:
        """The same as a function, which is what makes checks cheap."""
        names: dict[str, Any] = {}
        made: Callable[[Any], bool] = eval(f"lambda v: {self.test('v', names)}", names)
        return made


def _named(names: dict[str, Any], thing: Any) -> str:
    name = f"T{len(names)}"
    names[name] = thing
    return name


class Scalar(Codec):
    """A type whose values Arrow knows."""

    def __init__(self, kind: type, spark: DataType, arrow: pa.DataType, *also: type) -> None:
        self.kind, self.spark, self.arrow, self.also = kind, spark, arrow, also
        self.name = kind.__name__

    def decode(self, column: pa.Array) -> list[Any]:
        # numpy's tolist is several times as fast where there are no nulls
        if column.null_count == 0 and pa.types.is_primitive(column.type):
            return list(column.to_numpy(zero_copy_only=False).tolist())
        return list(column.to_pylist())

    def normal(self, value: Any, at: str) -> Any:
        if value.__class__ is self.kind:
            pass
        elif isinstance(value, (self.kind, *self.also)):
            value = self.kind(value)
        else:
            raise TypeMistake(at, self.name, value)
        try:
            pa.scalar(value, self.arrow)
        except (pa.ArrowException, ValueError, OverflowError) as error:
            expected = f"{self.name} that fits {self.spark.simpleString().upper()}"
            raise TypeMistake(at, expected, value) from error
        return value

    def test(self, value: str, names: dict[str, Any]) -> str:
        return f"{value}.__class__ is {_named(names, self.kind)}"


class Date(Scalar):
    """Days."""

    def decode(self, column: pa.Array) -> list[Any]:
        return list(column.to_pylist())

    def normal(self, value: Any, at: str) -> Any:
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        raise TypeMistake(at, "date", value)


class Time(Scalar):
    """Times are UTC; handlers see and give them without a zone."""

    def decode(self, column: pa.Array) -> list[Any]:
        plain = column.cast(pa.timestamp("us", column.type.tz)).view(pa.int64())
        found = plain.view(pa.timestamp("us"))
        return list(found.to_numpy(zero_copy_only=False).astype("datetime64[us]").tolist())

    def normal(self, value: Any, at: str) -> Any:
        if not isinstance(value, datetime):
            raise TypeMistake(at, "datetime", value)
        return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)

    def test(self, value: str, names: dict[str, Any]) -> str:
        return f"{super().test(value, names)} and {value}.tzinfo is None"


class ListOf(Codec):
    """A list of values of one type."""

    def __init__(self, item: Codec) -> None:
        self.item = item
        self.spark, self.arrow = ArrayType(item.spark), pa.list_(item.arrow)
        self.name = f"list[{item.name}]"

    def decode(self, column: pa.Array) -> list[Any]:
        ends = column.offsets.to_pylist()
        first = ends[0] if ends else 0
        items = self.item.decode(column.values.slice(first, ends[-1] - first if ends else 0))
        found: list[Any] = [items[a - first : b - first] for a, b in pairwise(ends)]
        return _with_nulls(found, column)

    def encode(self, values: Sequence[Any]) -> pa.Array:
        items = [item for value in values if value is not None for item in value]
        offsets, mask = _offsets(values)
        return pa.ListArray.from_arrays(offsets, self.item.encode(items), mask=mask)

    def normal(self, value: Any, at: str) -> Any:
        if not isinstance(value, list | tuple):
            raise TypeMistake(at, self.name, value)
        return [_part(self.item, v, f"{at}[{n}]") for n, v in enumerate(value)]

    def copy(self, value: Any) -> Any:
        return None if value is None else [self.item.copy(v) for v in value]

    def test(self, value: str, names: dict[str, Any]) -> str:
        item = f"i{len(names)}"
        test = self.item.test(item, names)
        kind = _named(names, list)
        return f"{value}.__class__ is {kind} and all({test} for {item} in {value})"


class DictOf(Codec):
    """A dict with keys of one type and values of another."""

    def __init__(self, key: Codec, value: Codec) -> None:
        self.key, self.value = key, value
        self.spark = MapType(key.spark, value.spark)
        self.arrow = pa.map_(key.arrow, value.arrow)
        self.name = f"dict[{key.name}, {value.name}]"

    def decode(self, column: pa.Array) -> list[Any]:
        ends = column.offsets.to_pylist()
        first = ends[0] if ends else 0
        size = ends[-1] - first if ends else 0
        keys = self.key.decode(column.keys.slice(first, size))
        items = self.value.decode(column.items.slice(first, size))
        found: list[Any] = [
            dict(zip(keys[a - first : b - first], items[a - first : b - first], strict=True))
            for a, b in pairwise(ends)
        ]
        return _with_nulls(found, column)

    def encode(self, values: Sequence[Any]) -> pa.Array:
        there = [value for value in values if value is not None]
        keys = self.key.encode([k for value in there for k in value])
        items = self.value.encode([v for value in there for v in value.values()])
        offsets, mask = _offsets(values)
        if mask is not None:
            # a map's nulls are those of its offsets
            offsets = pa.array(
                [
                    None if gone else end
                    for gone, end in zip(mask.to_pylist(), offsets.to_pylist(), strict=False)
                ]
                + [offsets[-1].as_py()],
                pa.int32(),
            )
        return pa.MapArray.from_arrays(offsets, keys, items)

    def normal(self, value: Any, at: str) -> Any:
        if not isinstance(value, dict):
            raise TypeMistake(at, self.name, value)
        return {
            self.key.normal(k, f"a key of {at}"): _part(self.value, v, f"{at}[{k!r}]")
            for k, v in value.items()
        }

    def copy(self, value: Any) -> Any:
        return None if value is None else {k: self.value.copy(v) for k, v in value.items()}

    def test(self, value: str, names: dict[str, Any]) -> str:
        number = len(names)
        key, item = self.key.test(f"k{number}", names), self.value.test(f"i{number}", names)
        kind = _named(names, dict)
        return (
            f"{value}.__class__ is {kind} and "
            f"all({key} and {item} for k{number}, i{number} in {value}.items())"
        )


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
        columns = []
        for name, codec in self.parts:
            at = column.type.get_field_index(name)
            columns.append(codec.decode(column.field(at)) if at >= 0 else [None] * len(column))
        return _with_nulls(self.make(columns, len(column)), column)

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
        self._plain = all(fields[n].init and not fields[n].kw_only for n, _ in parts)
        self.defaults = {n: d for n, _ in parts if (d := _default(fields[n])) is not None}

    def with_parts(self, names: Collection[str]) -> Record:
        """The same dataclass made from some of its fields: the others take their defaults."""
        return Record(self.kind, [(n, c) for n, c in self.parts if n in names], self.optional)

    def make(self, columns: Sequence[list[Any]], size: int) -> list[Any]:
        names = [name for name, _ in self.parts]
        fields = [f.name for f in dataclasses.fields(self.kind) if f.init]
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
        found = super().decode(column)
        # what was stored before a field was added has null there, and never was None
        for name in self.defaults.keys() - self.optional:
            at = column.type.get_field_index(name)
            if at < 0 or column.field(at).null_count:
                for value in found:
                    if value is not None and getattr(value, name) is None:
                        object.__setattr__(value, name, self.defaults[name]())
        return found

    def part(self, number: int) -> Callable[[Any], Any]:
        return attrgetter(self.parts[number][0])

    def normal(self, value: Any, at: str) -> Any:
        if not isinstance(value, self.kind):
            raise TypeMistake(at, f"{self.name}", value)
        parts = {
            name: _part(codec, getattr(value, name), f"{at}.{name}") for name, codec in self.parts
        }
        if all(parts[name] is getattr(value, name) for name in parts):
            return value
        return self.of(parts)

    def copy(self, value: Any) -> Any:
        if value is None:
            return None
        return self.of({n: c.copy(getattr(value, n)) for n, c in self.parts})

    def of(self, parts: dict[str, Any]) -> Any:
        """A value of these parts, made without calling its constructor."""
        made: Any = object.__new__(self.kind)
        for name, value in parts.items():
            object.__setattr__(made, name, value)
        return made

    def test(self, value: str, names: dict[str, Any]) -> str:
        tests = [f"{value}.__class__ is {_named(names, self.kind)}"]
        for name, codec in self.parts:
            tests.append(f"({codec.test(f'{value}.{name}', names)} or {value}.{name} is None)")
        return "(" + " and ".join(tests) + ")"


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
        return tuple.__new__(self.kind, [_part(c, v, f"{at}.{n}") for v, (n, c) in pairs])


class AsIs(Codec):
    """A type of Spark that has no declared Python type: values as Arrow gives them."""

    def __init__(self, spark: DataType) -> None:
        self.spark, self.arrow, self.name = spark, pa.null(), spark.simpleString()

    def normal(self, value: Any, at: str) -> Any:
        return value


def row_class(names: Sequence[str]) -> type[Row]:
    """A kind of Row whose instances need not each be told the names of their fields.

    >>> row_class(["a", "b"])._of(1, 2).b
    2
    """

    class NamedRow(Row):
        __fields__: ClassVar[list[str]] = list(names)

        @classmethod
        def _of(cls, *values: Any) -> Any:
            return tuple.__new__(cls, values)

    return NamedRow


def _part(codec: Codec, value: Any, at: str) -> Any:
    return None if value is None else codec.normal(value, at)


def _with_nulls(values: list[Any], column: pa.Array) -> list[Any]:
    if column.null_count:
        for number, there in enumerate(column.is_valid().to_pylist()):
            if not there:
                values[number] = None
    return values


def _offsets(values: Sequence[Any]) -> tuple[pa.Array, pa.Array | None]:
    ends, end = [0], 0
    for value in values:
        end += 0 if value is None else len(value)
        ends.append(end)
    gone = [value is None for value in values]
    return pa.array(ends, pa.int32()), pa.array(gone) if any(gone) else None


def _default(field: dataclasses.Field[Any]) -> Callable[[], Any] | None:
    if field.default is not dataclasses.MISSING:
        value = field.default
        return lambda: value
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return None
