"""Files of the home for a driver that outlives their disk: records wait in memory for room.

What only tells of the job (events, records of checkpoints, what became of operations) is put aside
in memory when it cannot be written, and written in order as soon as it can be. The driver reads it
back as if it were there. Everything else, above all the lease and savepoints, is written or fails:
others rely on it.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headgate.base.errors import StorageError

if TYPE_CHECKING:
    from headgate.home.files import Files

_MAY_WAIT = re.compile(
    r"jobs/[^/]+/(?:runs/[^/]+/(?:events|checkpoints|journal)|operations)/[^/]+\.json"
)


def may_wait(path: str) -> bool:
    """Whether a file of the home only tells of the job.

    >>> may_wait("jobs/store/runs/r1/events/0000000001-failed.json")
    True
    >>> may_wait("jobs/store/job.json")
    False
    """
    return _MAY_WAIT.fullmatch(path) is not None


class PatientFiles:
    """A store's files; all that is not here is the store's own."""

    def __init__(self, files: Files, *, ours: Callable[[], bool]) -> None:
        """``ours`` says whether the job is still this driver's: else what waits is dropped."""
        self._files = files
        self._ours = ours
        self._queue: deque[tuple[str, str | None]] = deque()  # no text: delete it
        self._lock = threading.RLock()
        self.trouble: StorageError | None = None
        """Why the last write failed, until one succeeds."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._files, name)

    @property
    def waiting(self) -> list[tuple[str, str]]:
        """What could not be written, in order; without deletions."""
        with self._lock:
            return [(path, text) for path, text in self._queue if text is not None]

    def write_text(self, path: str, text: str) -> None:
        """Write a whole file, or put it aside."""
        if may_wait(path):
            self._change(path, text)
        else:
            self._files.write_text(path, text)

    def delete(self, path: str) -> None:
        """Delete a file, or do so later: a journal must outlive the record that is made of it."""
        if may_wait(path):
            self._change(path, None)
        else:
            self._files.delete(path)

    def delete_tree(self, path: str) -> None:
        """Delete a folder, with what waits to be written there."""
        with self._lock:
            kept = [change for change in self._queue if not change[0].startswith(f"{path}/")]
            self._queue = deque(kept)
        self._files.delete_tree(path)

    def flush(self) -> bool:
        """Write what waits; False if some still does."""
        with self._lock:
            # a disk that was away for long may come back with another driver's lease on it
            if len(self._queue) > 1 and not self._still_ours():
                self._queue.clear()
            while self._queue:
                path, text = self._queue[0]
                try:
                    if text is None:
                        self._files.delete(path)
                    else:
                        self._files.write_text(path, text)
                except StorageError as error:
                    self.trouble = error
                    return False
                self._queue.popleft()
            self.trouble = None
            return True

    def read_text(self, path: str) -> str | None:
        """A file's text as it will be."""
        change = self._pending(path)
        return self._files.read_text(path) if change is None else change[1]

    def exists(self, path: str) -> bool:
        """Whether a file or folder will be there."""
        change = self._pending(path)
        return self._files.exists(path) if change is None else change[1] is not None

    def list(self, path: str) -> list[str]:
        """Names in a folder as they will be."""
        names = set(self._files.list(path))
        with self._lock:
            for changed, text in self._queue:
                folder, _, name = changed.rpartition("/")
                if folder == path:
                    (names.discard if text is None else names.add)(name)
        return sorted(names)

    def _change(self, path: str, text: str | None) -> None:
        with self._lock:
            self._queue.append((path, text))
            self.flush()

    def _pending(self, path: str) -> tuple[str, str | None] | None:
        with self._lock:
            return next((change for change in reversed(self._queue) if change[0] == path), None)

    def _still_ours(self) -> bool:
        try:
            return self._ours()
        except StorageError:
            return True  # nobody can have written what cannot be read
