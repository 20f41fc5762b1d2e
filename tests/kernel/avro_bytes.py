"""Avro's binary form written by hand: a truth that shares no code with Avro's library."""

from __future__ import annotations

import struct


def long(number: int) -> bytes:
    """An int, long, length, count or index: zigzag, seven bits a byte."""
    left = (number << 1) ^ (number >> 63)
    out = bytearray()
    while left > 0x7F:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def double(number: float) -> bytes:
    return struct.pack("<d", number)


def raw(data: bytes) -> bytes:
    return long(len(data)) + data


def text(words: str) -> bytes:
    return raw(words.encode())


def array(*items: bytes) -> bytes:
    return (long(len(items)) + b"".join(items) if items else b"") + long(0)
