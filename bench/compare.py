"""Owns comparing outputs: how many rows a folder of JSON lines holds, and a hash of them.

The hash does not depend on the order of rows, files or fields, nor on how a number is spelled:
each line is parsed, written again in one canonical form and hashed, and the hashes are added.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import orjson

_CHUNK = 32 * 1024 * 1024
_MASK = 2**64 - 1


@dataclass(frozen=True)
class Digest:
    """The rows of an output: their number and the sum of their hashes."""

    count: int = 0
    hash: int = 0

    def __add__(self, other: Digest) -> Digest:
        return Digest(self.count + other.count, (self.hash + other.hash) & _MASK)

    def __str__(self) -> str:
        return f"{self.count:,} rows {self.hash:016x}"


def canonical(row: object) -> bytes:
    """A row in one form: fields sorted by name, numbers in their shortest spelling.

    >>> canonical({"b": 1.50, "a": {"d": 1, "c": None}})
    b'{"a":{"c":null,"d":1},"b":1.5}'
    """
    return orjson.dumps(row, option=orjson.OPT_SORT_KEYS)


def row_hash(row: object) -> int:
    """64 bits of a row's canonical form."""
    return int.from_bytes(hashlib.blake2b(canonical(row), digest_size=8).digest(), "big")


def digest_rows(rows: Iterable[object]) -> Digest:
    """The digest of rows in memory.

    >>> digest_rows([{"a": 1}, {"a": 2}]) == digest_rows([{"a": 2}, {"a": 1}])
    True
    """
    count = total = 0
    for row in rows:
        count += 1
        total += row_hash(row)
    return Digest(count, total & _MASK)


def digest_folder(folder: Path, *, processes: int = 2) -> Digest:
    """The digest of every data file under a folder; a missing folder has no rows.

    Data files are `*.jsonl`, `*.keyed.jsonl` (the key is left out), `*.json` and `part-*`; names
    that start with `_` or `.` are not data.
    """
    chunks = [(str(f), at) for f in data_files(folder) for at in range(0, _size(f), _CHUNK)]
    with ProcessPoolExecutor(processes) as pool:
        return sum(pool.map(_digest_chunk, chunks), Digest())


def data_files(folder: Path) -> Iterator[Path]:
    """The data files under a folder."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[0] not in "_.")
        for name in sorted(names):
            if name[0] in "_." or name == "topic.json":
                continue
            if name.endswith((".jsonl", ".json")) or name.startswith("part-"):
                yield Path(here) / name


def _size(path: Path) -> int:
    return path.stat().st_size


def _digest_chunk(chunk: tuple[str, int]) -> Digest:
    path, start = chunk
    keyed = path.endswith(".keyed.jsonl")
    lines = (line.partition(b"\t")[2] if keyed else line for line in _lines(path, start))
    return digest_rows(orjson.loads(line) for line in lines if not line.isspace())


def _lines(path: str, start: int) -> Iterator[bytes]:
    """The lines that begin in the chunk at start, wherever they end."""
    with open(path, "rb") as file:
        at = start
        if start:
            # The line that holds the byte before the chunk belongs to the chunk before.
            file.seek(start - 1)
            at = start - 1 + len(file.readline())
        for line in file:
            if at >= start + _CHUNK:
                return
            at += len(line)
            yield line


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        print(f"{argument}: {digest_folder(Path(argument))}")
