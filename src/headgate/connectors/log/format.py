"""A log topic's format: records, segment names, lines, and which partition a key belongs to.

The kernel reads and writes the same (its `log` package); docs/format.md says it in full.
"""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass

from headgate.base.errors import UsageError
from headgate.connectors.records import Record

_PLAIN, _KEYED = ".jsonl", ".keyed.jsonl"
_NO_KEY = "\\N"
_ESCAPES = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"}
_UNESCAPES = {escaped: char for char, escaped in _ESCAPES.items()}
_ESCAPE = str.maketrans(_ESCAPES)
_ESCAPED = re.compile(r"\\.")


@dataclass(frozen=True)
class LogRecord:
    """A record as the topic holds it."""

    partition: int
    offset: int
    timestamp_ms: int
    key: str | None
    value: str | None


@dataclass(frozen=True, order=True)
class Segment:
    """One immutable file of a partition: `count` records from offset `base` on."""

    base: int
    count: int
    millis: int
    keyed: bool = False

    @property
    def end(self) -> int:
        """The offset behind the last record."""
        return self.base + self.count

    @property
    def name(self) -> str:
        """The file's name, which says all of this."""
        suffix = _KEYED if self.keyed else _PLAIN
        return f"{self.base:020d}-{self.count}-{self.millis}{suffix}"

    @staticmethod
    def parse(name: str) -> Segment | None:
        """The segment of a file name, or None for a file that is none.

        >>> Segment.parse("00000000000000000100-20-1700000000000.jsonl")
        Segment(base=100, count=20, millis=1700000000000, keyed=False)
        """
        keyed = name.endswith(_KEYED)
        if name.startswith("_") or not name.endswith(_PLAIN):
            return None
        parts = name.removesuffix(_KEYED if keyed else _PLAIN).split("-")
        if len(parts) != 3 or not all(p.isascii() and p.isdigit() for p in parts):
            return None
        return Segment(int(parts[0]), int(parts[1]), int(parts[2]), keyed)


def partition_of(key: str, partitions: int) -> int:
    """The partition of a key: CRC-32, then Murmur3's final mix, the same as in the kernel.

    >>> [partition_of(str(i), 4) for i in range(8)]
    [2, 2, 2, 2, 1, 0, 0, 2]
    """
    h = zlib.crc32(key.encode())
    h = ((h ^ (h >> 16)) * 0x85EBCA6B) & 0xFFFFFFFF
    h = ((h ^ (h >> 13)) * 0xC2B2AE35) & 0xFFFFFFFF
    return (h ^ (h >> 16)) % partitions


def to_line(record: Record) -> bytes:
    """The record as a line of a segment, keyed if the record has a key."""
    value, key = record.value, record.key
    if value is not None and "\n" in value:
        raise UsageError(
            "a value of a log topic must be one line of text",
            got=repr(value[:60]),
            remedy="write the newline as \\n inside the JSON text",
        )
    if key is None:
        if value is None:
            raise UsageError(
                "a record without a value deletes the row of its key, so it must have a key",
                remedy="give the key as well",
            )
        return value.encode() + b"\n"
    if value == "":
        raise UsageError(
            "an empty value with a key means deletion in a log topic",
            got=f"the key {key!r}",
            remedy="use None as the value to delete, or write a value",
        )
    return f"{key.translate(_ESCAPE)}\t{value or ''}\n".encode()


def from_line(line: bytes, *, keyed: bool) -> tuple[str | None, str | None]:
    """Key and value of a line without its newline."""
    text = line.decode(errors="replace")
    if not keyed:
        return None, text
    key, _, value = text.partition("\t")
    return _key(key), value or None


def _key(text: str) -> str | None:
    if "\\" not in text:
        return text
    if text == _NO_KEY:
        return None
    return _ESCAPED.sub(lambda m: _UNESCAPES.get(m[0], m[0][1]), text)
