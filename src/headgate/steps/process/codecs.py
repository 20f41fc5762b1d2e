"""Python values of declared types as Arrow columns and back, many at a time, and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
from pyspark.sql.types import ArrayType, DataType, MapType

_LEAST, _MOST = -(2**63), 2**63 - 1


class TypeMistake(Exception):
    """A value that is not of its declared type: where in it, what was expected, what came."""

    def __init__(self, at: str, expected: str, got: object) -> None:
        self.at, self.expected = at, expected
        self.got = f"{type(got).__name__} {shortened(got)}"
        super().__init__(f"{at} must be {expected}, got {self.got}")


def shortened(value: object, most: int = 200) -> str:
    """A value as text that fits into a message."""
    text = repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."


class Codec:
    """One type: its Spark and Arrow types, and values of it in and out of columns."""

    spark: DataType
    arrow: pa.DataType
    name: str
    changeable = False
    """Whether who has a value can change it, or a part of it."""

    def decode(self, column: pa.Array) -> list[Any]:
        """The values of a column; null is None."""
        return list(column.to_pylist())

    def each(self, column: pa.Array) -> Iterator[Any]:
        """The same one by one; one that cannot be made raises, and the next one follows."""
        return iter(self.decode(column))

    def encode(self, values: Sequence[Any]) -> pa.Array:
        """A column of values that are normal, or None."""
        return pa.array(values, self.arrow)

    def normal(self, value: Any, at: str) -> Any:
        """The value as it is stored, or a TypeMistake that says where it is wrong."""
        raise NotImplementedError

    def copy(self, value: Any) -> Any:
        """The same value, of which nobody else has a part that can be changed."""
        return value

    def kept(self) -> Codec:
        """The same type as it is in states: what is read is made of its fields and nothing else."""
        return self

    def test(self, value: str, names: dict[str, Any]) -> str:
        """Python that is true if the expression `value` is normal already; may add to `names`."""
        raise NotImplementedError

    def is_normal(self) -> Callable[[Any], bool]:
        """The same as a function, which is what makes checks cheap."""
        names: dict[str, Any] = {}
        made: Callable[[Any], bool] = eval(f"lambda v: {self.test('v', names)}", names)
        return made


def named(names: dict[str, Any], thing: Any) -> str:
    """A name for something that a test uses."""
    name = f"T{len(names)}"
    names[name] = thing
    return name


def is_text(value: str) -> bool:
    r"""Whether a str can be written: half of a pair of UTF-16, as JSON may have it, cannot.

    >>> is_text("ü"), is_text("\ud800")
    (True, False)
    """
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


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
        elif self.kind is str and isinstance(value, str):
            value = str.__str__(value)  # an enum's own would be its name
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
        if self.kind is Decimal:
            return "False"  # only Arrow knows whether its digits fit
        test = f"{value}.__class__ is {named(names, self.kind)}"
        if self.kind is str:
            return f"{test} and ({value}.isascii() or {named(names, is_text)}({value}))"
        return f"{test} and {_LEAST} <= {value} <= {_MOST}" if self.kind is int else test


class Exact(Scalar):
    """Decimal numbers; all have as many digits behind the point as they have when stored."""

    def normal(self, value: Any, at: str) -> Any:
        value = super().normal(value, at)
        places = Decimal((0, (1,), -self.arrow.scale))
        return value.quantize(places, context=_MANY_DIGITS)


_MANY_DIGITS = Context(prec=100)


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
        self.changeable = True

    def decode(self, column: pa.Array) -> list[Any]:
        ends = column.offsets.to_pylist()
        first = ends[0] if ends else 0
        items = self.item.decode(column.values.slice(first, ends[-1] - first if ends else 0))
        found: list[Any] = [items[a - first : b - first] for a, b in pairwise(ends)]
        return with_nulls(found, column)

    def encode(self, values: Sequence[Any]) -> pa.Array:
        items = [item for value in values if value is not None for item in value]
        offsets, mask = _offsets(values)
        return pa.ListArray.from_arrays(offsets, self.item.encode(items), mask=mask)

    def normal(self, value: Any, at: str) -> Any:
        if not isinstance(value, list | tuple):
            raise TypeMistake(at, self.name, value)
        return [part_of(self.item, v, f"{at}[{n}]") for n, v in enumerate(value)]

    def kept(self) -> Codec:
        return ListOf(self.item.kept())

    def copy(self, value: Any) -> Any:
        if value is None:
            return None
        return [self.item.copy(v) for v in value] if self.item.changeable else list(value)

    def test(self, value: str, names: dict[str, Any]) -> str:
        item = f"i{len(names)}"
        test = self.item.test(item, names)
        kind = named(names, list)
        return f"{value}.__class__ is {kind} and all({test} for {item} in {value})"


class DictOf(Codec):
    """A dict with keys of one type and values of another."""

    def __init__(self, key: Codec, value: Codec) -> None:
        self.key, self.value = key, value
        self.spark = MapType(key.spark, value.spark)
        self.arrow = pa.map_(key.arrow, value.arrow)
        self.name = f"dict[{key.name}, {value.name}]"
        self.changeable = True

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
        return with_nulls(found, column)

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
            self.key.normal(k, f"a key of {at}"): part_of(self.value, v, f"{at}[{k!r}]")
            for k, v in value.items()
        }

    def kept(self) -> Codec:
        return DictOf(self.key, self.value.kept())

    def copy(self, value: Any) -> Any:
        if value is None:
            return None
        copy = self.value.copy
        return {k: copy(v) for k, v in value.items()} if self.value.changeable else dict(value)

    def test(self, value: str, names: dict[str, Any]) -> str:
        number = len(names)
        key, item = self.key.test(f"k{number}", names), self.value.test(f"i{number}", names)
        kind = named(names, dict)
        return (
            f"{value}.__class__ is {kind} and "
            f"all({key} and {item} for k{number}, i{number} in {value}.items())"
        )


class AsIs(Codec):
    """A type of Spark that has no declared Python type: values as Arrow gives them."""

    def __init__(self, spark: DataType) -> None:
        self.spark, self.arrow, self.name = spark, pa.null(), spark.simpleString()

    def normal(self, value: Any, at: str) -> Any:
        return value


def part_of(codec: Codec, value: Any, at: str) -> Any:
    """A part of a value as it is stored; any may be None."""
    return None if value is None else codec.normal(value, at)


def with_nulls(values: list[Any], column: pa.Array) -> list[Any]:
    """The values with None where the column has null."""
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
