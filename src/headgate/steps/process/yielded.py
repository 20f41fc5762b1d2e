"""What handlers yield, taken apart when it is yielded: what is changed later changes no row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import pyarrow as pa

from headgate.steps.process.codecs import Codec, named
from headgate.steps.process.records import Record, Struct


class Yielded:
    """The values of one output as rows of their parts; a value without parts is a row of one.

    >>> from headgate.steps.process.types import codec_of
    >>> words = Yielded(codec_of(list[str]))
    >>> mine = ["a"]
    >>> row = words.take(mine)
    >>> mine.append("b")
    >>> words.values([row])
    [['a']]
    """

    def __init__(self, codec: Codec) -> None:
        self.codec = codec

    @cached_property
    def take(self) -> Callable[[Any], tuple[Any, ...] | None]:
        """Makes a row of a value; None of one that is not as it is stored."""
        names: dict[str, Any] = {}
        test = self.codec.test("v", names)
        made: Callable[[Any], tuple[Any, ...] | None] = eval(
            f"lambda v: {self._parts(names)} if {test} else None", names
        )
        return made

    @cached_property
    def row(self) -> Callable[[Any], tuple[Any, ...]]:
        """Makes a row of a value that is as it is stored."""
        names: dict[str, Any] = {}
        made: Callable[[Any], tuple[Any, ...]] = eval(f"lambda v: {self._parts(names)}", names)
        return made

    def _parts(self, names: dict[str, Any]) -> str:
        """Python that makes the row of `v`."""
        if isinstance(self.codec, Struct):
            parts = [(f"v.{name}", part) for name, part in self.codec.parts]
        else:
            parts = [("v", self.codec)]
        copies = [f"{named(names, c.copy)}({v})" if c.changeable else v for v, c in parts]
        return "(" + "".join(f"{copy}, " for copy in copies) + ")"

    def values(self, rows: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The values again."""
        codec = self.codec
        if not isinstance(codec, Struct):
            return [row[0] for row in rows]
        assert isinstance(codec, Record)
        names = [name for name, _ in codec.parts]
        return [codec.of(dict(zip(names, row, strict=True))) for row in rows]

    @property
    def arrow(self) -> pa.DataType:
        """The type of their column."""
        codec = self.codec
        return codec.arrow if isinstance(codec, Struct) else pa.struct([("value", codec.arrow)])

    def encode(self, rows: Sequence[tuple[Any, ...]]) -> pa.Array:
        """A column of rows."""
        codec = self.codec
        parts = [c for _, c in codec.parts] if isinstance(codec, Struct) else [codec]
        if not parts:
            return pa.array([{}] * len(rows), self.arrow)
        columns = zip(*rows, strict=True)
        return pa.StructArray.from_arrays(
            [part.encode(column) for part, column in zip(parts, columns, strict=True)],
            fields=list(self.arrow),
        )
