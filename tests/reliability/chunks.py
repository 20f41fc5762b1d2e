"""Input that keeps coming while a job is killed, a chunk at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Row = TypeVar("Row")


class Chunks(threading.Thread, Generic[Row]):
    """Writes chunks, not far ahead of the job, and never all of them before `finish`.

    A job that starts slowly, or is down, still gets its input in many batches: a chunk is written
    when the job has taken those before it, up to `ahead`, or when `finish` was called. A job that
    is fast never waits for input in vain: of the last chunk it gets half of what is left, and half
    again, and its last row with `finish`.
    """

    def __init__(self, chunks: list[list[Row]], taken: Callable[[], int], ahead: int = 3) -> None:
        super().__init__(daemon=True)
        self._chunks = chunks
        self._taken, self._ahead = taken, ahead
        self._hurry = threading.Event()
        self._round = 0

    def write(self, chunk: list[Row]) -> None:
        """Put a chunk where the job reads it."""
        raise NotImplementedError

    def run(self) -> None:
        while self._chunks:
            while self._round >= self._taken() + self._ahead and not self._hurry.wait(0.2):
                pass
            self._send(self._next())

    def chunk(self) -> None:
        """Write the next chunk in the caller's thread, instead of a run."""
        self._send(self._chunks.pop(0))

    def write_all(self) -> None:
        """Write all chunks in the caller's thread, instead of a run."""
        while self._chunks:
            self.chunk()

    def finish(self) -> None:
        """Write the rest at once, and wait until it is written."""
        self._hurry.set()
        self.join()

    def _next(self) -> list[Row]:
        if len(self._chunks) > 1 or self._hurry.is_set():
            return self._chunks.pop(0)
        last = self._chunks[0]
        half = len(last) // 2
        if half == 0:
            self._hurry.wait()
            return self._chunks.pop()
        self._chunks[0] = last[half:]
        return last[:half]

    def _send(self, chunk: list[Row]) -> None:
        self._round += 1
        self.write(chunk)
