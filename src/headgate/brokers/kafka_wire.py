"""The one request that tells whether a Kafka broker serves: who is in the cluster?"""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

# Version 4 is old enough to have plain lengths, and is still understood by Kafka 4.
_METADATA, _VERSION = 3, 4
_CLIENT = b"headgate"
_MOST_BYTES = 1 << 20


@dataclass(frozen=True)
class Cluster:
    """What a broker says about its cluster; `ports` are those of brokers that take requests."""

    id: str | None
    ports: tuple[int, ...]


def ask_cluster(host: str, port: int, *, timeout: float = 5.0) -> Cluster | None:
    """The cluster at an address; nothing if nobody answers there, or somebody else than Kafka."""
    header = struct.pack(">hhih", _METADATA, _VERSION, 1, len(_CLIENT)) + _CLIENT
    request = header + struct.pack(">i?", 0, False)  # no topics, and make none
    try:
        with socket.create_connection((host, port), timeout=timeout) as connection:
            connection.settimeout(timeout)
            connection.sendall(struct.pack(">i", len(request)) + request)
            (size,) = struct.unpack(">i", _read(connection, 4))
            if not 0 < size <= _MOST_BYTES:
                return None
            return _cluster(_Reader(_read(connection, size)))
    except (OSError, struct.error, UnicodeDecodeError):
        return None


def _read(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise ConnectionError("the connection was closed")
        data += more
    return data


def _cluster(answer: _Reader) -> Cluster:
    answer.take(">ii")  # the request's number, and how long we were held back
    ports = []
    for _ in range(answer.take(">i")[0]):
        answer.take(">i")
        answer.text()
        ports.append(answer.take(">i")[0])
        answer.text()
    return Cluster(answer.text(), tuple(ports))


class _Reader:
    """Numbers and texts one after the other; struct.error if there are too few bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, form: str) -> tuple[int, ...]:
        values = struct.unpack_from(form, self._data, self._at)
        self._at += struct.calcsize(form)
        return values

    def text(self) -> str | None:
        (size,) = self.take(">h")
        if size < 0:
            return None
        if self._at + size > len(self._data):
            raise struct.error("the text is cut short")
        self._at += size
        return self._data[self._at - size : self._at].decode("utf-8")
