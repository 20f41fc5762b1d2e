"""Owns the levels of a Kafka cluster's features, such as its transaction version.

confluent-kafka does not read them, so this is one request over a connection of its own.
"""

from __future__ import annotations

import socket
import struct

# The first version whose answer has the features.
_API_VERSIONS, _VERSION = 18, 3
_FINALIZED = 2
_MOST_BYTES = 1 << 20
_TEXT = b"\x09headgate"  # a compact string: its length and one more, then its bytes
TRANSACTION_VERSION = "transaction.version"


def read_features(host: str, port: int, *, timeout: float = 5.0) -> dict[str, int] | None:
    """The level of each feature; nothing if nobody answers, or an older Kafka does.

    A cluster that has never set a feature leaves it out: its level is 0.
    """
    header = struct.pack(">hhih", _API_VERSIONS, _VERSION, 1, 8) + b"headgate\x00"
    request = header + _TEXT + b"\x021" + b"\x00"
    try:
        with socket.create_connection((host, port), timeout=timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(struct.pack(">i", len(request)) + request)
            with connection.makefile("rb") as answer:
                (size,) = struct.unpack(">i", answer.read(4))
                if not 0 < size <= _MOST_BYTES:
                    return None
                return _features(_Compact(answer.read(size)))
    except (OSError, struct.error, IndexError, UnicodeDecodeError):
        return None


def _features(answer: _Compact) -> dict[str, int] | None:
    _, error = answer.take(">ih")  # the request's number
    if error:
        return None  # it does not know this version
    for _ in range(answer.number() - 1):
        answer.take(">hhh")
        answer.skip_tags()
    answer.take(">i")  # how long we were held back
    for _ in range(answer.number()):
        tag, size = answer.number(), answer.number()
        if tag == _FINALIZED:
            return answer.levels()
        answer.skip(size)
    return {}


class _Compact:
    """Numbers and texts as Kafka writes them since its flexible versions."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    def take(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values

    def number(self) -> int:
        """Seven bits a byte, the lowest first."""
        value, shift = 0, 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def skip(self, size: int) -> None:
        self._at += size

    def skip_tags(self) -> None:
        for _ in range(self.number()):
            self.number()
            self.skip(self.number())

    def levels(self) -> dict[str, int]:
        found = {}
        for _ in range(self.number() - 1):
            size = self.number() - 1
            name = self._data[self._at : self._at + size].decode("utf-8")
            self.skip(size)
            found[name], _ = self.take(">hh")
            self.skip_tags()
        return found
