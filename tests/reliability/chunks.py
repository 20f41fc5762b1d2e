"""Input that keeps coming while a job is killed, a chunk at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Chunk = TypeVar("Chunk")


class Chunks(threading.Thread, Generic[Chunk]):
    """Writes chunks, not far ahead of the job.

    A job that starts slowly, or is down, still gets its input in many batches: a chunk is written
    when the job has taken those before it, up to `ahead`, or when `finish` was called.
    """

    def __init__(self, chunks: list[Chunk], taken: Callable[[], int], ahead: int = 3) -> None:
        super().__init__(daemon=True)
        self._chunks = chunks
        self._taken, self._ahead = taken, ahead
        self._hurry = threading.Event()
        self._round = 0

    def write(self, chunk: Chunk) -> None:
        """Put a chunk where the job reads it."""
        raise NotImplementedError

    def run(self) -> None:
        for chunk in self._chunks:
            while self._round >= self._taken() + self._ahead and not self._hurry.wait(0.2):
                pass
            self._send(chunk)

    def chunk(self) -> None:
        """Write the next chunk in the caller's thread, instead of a run."""
        self._send(self._chunks.pop(0))

    def _send(self, chunk: Chunk) -> None:
        self._round += 1
        self.write(chunk)

    def finish(self) -> None:
        """Write the rest at once, and wait until it is written."""
        self._hurry.set()
        self.join()
