"""Values of every type through Arrow columns and back, and what is said of wrong ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headgate.steps.process.codecs import TypeMistake
from headgate.steps.process.types import UnknownType, codec_of


@dataclass
class Inner:
    name: str | None
    at: datetime


@dataclass
class Outer:
    number: int
    ratio: float
    flag: bool
    raw: bytes
    day: date
    price: Decimal
    many: list[Inner]
    by_name: dict[str, list[int]]
    inner: Inner | None


EAST = timezone(timedelta(hours=2))
_TIMES = st.datetimes(datetime(1900, 1, 1), datetime(2200, 1, 1))
_INNER = st.builds(Inner, st.none() | st.text(max_size=5), _TIMES)
_LONGS = st.integers(-(2**63), 2**63 - 1)
_OUTER = st.builds(
    Outer,
    _LONGS,
    st.floats(allow_nan=False),
    st.booleans(),
    st.binary(max_size=5),
    st.dates(date(1900, 1, 1)),
    st.decimals(-(10**12), 10**12, allow_nan=False, places=6),
    st.lists(_INNER, max_size=3),
    st.dictionaries(st.text(max_size=3), st.lists(_LONGS, max_size=3), max_size=3),
    st.none() | _INNER,
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.none() | _OUTER, max_size=6), st.integers(0, 3))
def test_what_is_written_is_read_also_from_a_part_of_a_column(
    values: list[Outer | None], skipped: int
) -> None:
    codec = codec_of(Outer)
    column = codec.encode(values)
    assert column.type == codec.arrow
    assert codec.decode(column) == values
    assert codec.decode(column.slice(skipped)) == values[skipped:]
    assert all(codec.normal(v, "it") == v for v in values if v is not None)
    assert [codec.copy(v) for v in values] == values


@pytest.mark.parametrize(
    ("kind", "given", "normal"),
    [
        (float, 3, 3.0),
        (int, True, 1),
        (Decimal, 3, Decimal(3)),
        (bytes, bytearray(b"a"), b"a"),
        (list[float], (1, 2.5), [1.0, 2.5]),
        (datetime, datetime(2026, 1, 1, 12, tzinfo=EAST), datetime(2026, 1, 1, 10)),
        (datetime, datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 1, 1, 12)),
    ],
)  # fmt: skip
def test_a_value_that_means_the_same_is_made_normal(kind: Any, given: Any, normal: Any) -> None:
    codec = codec_of(kind)
    made = codec.normal(given, "it")
    assert not codec.is_normal()(given)
    assert made == normal and type(made) is type(normal)


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (int, 2**63, "it must be int that fits BIGINT, got int 9223372036854775808"),
        (Decimal, Decimal(1) / 3, r"it must be Decimal that fits DECIMAL\(38,18\), got Decimal"),
        (int, 1.5, "it must be int, got float 1.5"),
        (str, b"a", "it must be str, got bytes b'a'"),
        (date, datetime(2026, 1, 1), "it must be date, got datetime"),
        (list[Inner], [Inner("a", 1)], r"it\[0\].at must be datetime, got int 1"),  # type: ignore[arg-type]
        (dict[str, int], {"a": 1, 2: 3}, "a key of it must be str, got int 2"),
        (Inner, "a", "it must be Inner, got str 'a'"),
    ],
)
def test_a_wrong_value_is_named_with_its_place(kind: Any, given: Any, said: str) -> None:
    codec = codec_of(kind)
    assert not codec.is_normal()(given)
    with pytest.raises(TypeMistake, match=said):
        codec.normal(given, "it")


def test_a_field_that_was_added_is_its_default_in_what_was_stored_before() -> None:
    @dataclass
    class Before:
        a: int

    @dataclass
    class After:
        b: str | None
        a: int
        n: int = 7
        tags: list[str] = field(default_factory=list)
        note: str | None = "none"

    column = codec_of(Before).encode([Before(1), None])
    assert codec_of(After).decode(column) == [After(None, 1, 7, [], None), None]
    # once written, None of an optional field stays None
    again = codec_of(After).encode([After(None, 1, 7, [], None)])
    assert codec_of(After).decode(again)[0].note is None


def test_dataclasses_of_any_kind_are_made_again() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Frozen:
        a: int
        b: str

    @dataclass
    class Late:
        a: int
        twice: int = field(init=False)

        def __post_init__(self) -> None:
            self.twice = self.a * 2

    for values in ([Frozen(a=1, b="x")], [Late(3)]):
        codec = codec_of(type(values[0]))
        assert codec.decode(codec.encode(values)) == values
        assert [codec.copy(v) for v in values] == values


@dataclass
class Tree:
    children: list[Tree]


@pytest.mark.parametrize("kind", [object, set[int], list, dict[str, object], Tree, int | str])
def test_types_that_no_column_has_are_refused(kind: Any) -> None:
    with pytest.raises(UnknownType):
        codec_of(kind)


def test_narrower_columns_are_read_as_the_declared_type() -> None:
    assert codec_of(int).decode(pa.array([1, None], pa.int16())) == [1, None]
    assert codec_of(float).decode(pa.array([0.5], pa.float32())) == [0.5]
    naive = pa.array([datetime(2026, 1, 1)], pa.timestamp("ms"))
    assert codec_of(datetime).decode(naive) == [datetime(2026, 1, 1)]
