"""The head of a changelog of Spark's RocksDB state: from which files its version is rebuilt."""

from __future__ import annotations

import json
import struct
from typing import BinaryIO

# LZ4BlockOutputStream: magic, method and level, compressed and plain length, checksum
_FRAME = struct.Struct("<8sBiii")
_MAGIC = b"LZ4Block"
_RAW, _LZ4 = 0x10, 0x20
_MIN_MATCH = 4
_FIRST_BYTES = 1 << 12


def read_lineage(file: BinaryIO) -> list[tuple[int, str]]:
    """The (version, unique id) pairs before this changelog's own, back to a snapshot.

    The file begins, compressed, with two texts as Java's writeUTF gives them: the changelog's
    format and the lineage as JSON. Only as much as they need is read. ValueError if it is
    not so.
    """
    plain = b""
    while True:
        method, data = _next_block(file)
        # a lineage is mostly short: the rest of a block costs milliseconds to unpack
        for limit in (_FIRST_BYTES, None):
            block = data if method == _RAW else _decompress(data, limit)
            if (head := _text_end(plain + block, 2)) is not None:
                return _lineage(plain + block, *head)
        plain += block


def _lineage(plain: bytes, starts: list[int], end: int) -> list[tuple[int, str]]:
    text = plain[starts[1] : end].decode("utf-8")
    form = plain[starts[0] : starts[1] - 2].decode("utf-8")
    if form not in ("v3", "v4"):
        raise ValueError(f"changelog format {form!r} has no lineage")
    return [(int(item["version"]), str(item["checkpointUniqueId"])) for item in json.loads(text)]


def _text_end(plain: bytes, texts: int) -> tuple[list[int], int] | None:
    """Where each of the first texts begins and the last one ends, if all are there."""
    starts, at = [], 0
    for _ in range(texts):
        if len(plain) < at + 2:
            return None
        starts.append(at + 2)
        at += 2 + int.from_bytes(plain[at : at + 2], "big")
    return (starts, at) if len(plain) >= at else None


def _next_block(file: BinaryIO) -> tuple[int, bytes]:
    head = file.read(_FRAME.size)
    if len(head) < _FRAME.size:
        raise ValueError("the file ends in the head of a block")
    magic, token, packed, length, _ = _FRAME.unpack(head)
    if magic != _MAGIC or packed < 0 or length <= 0:
        raise ValueError("not a block of an LZ4 stream")
    data = file.read(packed)
    if len(data) < packed:
        raise ValueError("the file ends in a block")
    method = token & 0xF0
    if method not in (_RAW, _LZ4):
        raise ValueError(f"unknown compression method {method:#x}")
    return method, data


def _decompress(data: bytes, limit: int | None) -> bytes:
    """LZ4's block format: runs of literals, each followed by a copy of what came before."""
    out = bytearray()
    at = 0

    def length(nibble: int) -> int:
        nonlocal at
        total = nibble
        if nibble == 15:
            while True:
                total += data[at]
                at += 1
                if data[at - 1] != 255:
                    break
        return total

    try:
        while at < len(data) and (limit is None or len(out) < limit):
            token = data[at]
            at += 1
            literals = length(token >> 4)
            out += data[at : at + literals]
            at += literals
            if at >= len(data):
                break  # the last run has no copy
            offset = data[at] | data[at + 1] << 8
            at += 2
            size = length(token & 15) + _MIN_MATCH
            if not 0 < offset <= len(out):
                raise ValueError("a copy from before the block's beginning")
            start = len(out) - offset
            for i in range(start, start + size):  # may overlap what it writes
                out.append(out[i])
    except IndexError:
        raise ValueError("the block ends too early") from None
    return bytes(out)
