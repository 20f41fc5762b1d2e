"""Entries of lists and maps that are too large to be sent with their key: requested one by one."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql.types import LongType

from headgate.steps.process.codecs import Codec, Scalar


class Remote:
    """The task's side of the kernel's EntryServer; it connects on the first request."""

    def __init__(self, port: int, secret: int) -> None:
        self._port, self._secret = port, secret
        self._stream: Any = None

    def ask(self, store: int, key: int, part: Codec, value: Codec, wanted: Sequence[Any]) -> Any:
        """The entries of a key: of the names that are wanted (one), or all; names and values."""
        if self._stream is None:
            connection = socket.create_connection(("127.0.0.1", self._port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._stream = connection.makefile("rwb")
            self._stream.write(struct.pack(">q", self._secret))
        request = _written(part.encode(wanted)) if wanted else b""
        self._stream.write(struct.pack(">bqi", store, key, len(request)) + request)
        self._stream.flush()
        parts: list[Any] = []
        values: list[Any] = []
        while size := struct.unpack(">i", self._read(4))[0]:
            for batch in pa.ipc.open_stream(self._read(size)):
                parts += part.decode(batch.column(0))
                values += value.decode(batch.column(1))
        return zip(parts, values, strict=True)

    def _read(self, size: int) -> bytes:
        found: bytes = self._stream.read(size)
        if len(found) < size:
            raise EOFError("the kernel does not answer any more")
        return found

    def close(self) -> None:
        """Let go of the connection."""
        if self._stream is not None:
            self._stream.close()


def _written(column: pa.Array) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch([column], names=["part"])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    written: bytes = sink.getvalue().to_pybytes()
    return written


@dataclass(frozen=True)
class Large:
    """A list or map of which only the number of entries is here."""

    size: int
    ask: Callable[[Sequence[Any]], Any]

    def one(self, name: Any) -> list[Any]:
        """The value of a name in a list, or an empty one if there is none."""
        return [value for _, value in self.ask([name])]

    def all(self) -> Any:
        """All names and values."""
        return self.ask([])


NUMBER = Scalar(int, LongType(), pa.int64())
"""The name of a list's entry is its number."""
