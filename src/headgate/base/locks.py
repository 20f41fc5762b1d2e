"""Locks between processes on a file of a local disk: the one place that locks files.

The file stays after the lock is released: deleting it would let two processes lock two different
files of one name.
"""

from __future__ import annotations

import errno
import fcntl
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from headgate.base.errors import HeadgateError

_POLL_SECONDS = 0.02
_monitors: dict[Path, threading.Lock] = {}
_monitors_guard = threading.Lock()


@contextmanager
def file_lock(
    path: Path,
    *,
    timeout: float | None = None,
    mode: int = 0o666,
    with_java: bool = False,
    on_wait: Callable[[], None] | None = None,
) -> Iterator[None]:
    """Hold an exclusive lock on a file, which is made if it is missing.

    Without a `timeout` it waits for as long as it takes. `on_wait` is called once if another
    process has the lock. `with_java` takes the kind of lock that Java's FileChannel takes: the
    system keeps those by process, so threads of this process wait for each other here.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, file_lock(Path(folder) / "a.lock"):
    ...     print("mine")
    mine
    """
    # A lock by process is lost when any handle of its file is closed: one thread at a time opens it
    with _monitor(path) if with_java else nullcontext():
        handle = _open(path, mode)
        try:
            _take(handle, fcntl.lockf if with_java else fcntl.flock, path, timeout, on_wait)
            yield
        finally:
            os.close(handle)


def _take(
    handle: int,
    lock: Callable[[int, int], object],
    path: Path,
    timeout: float | None,
    on_wait: Callable[[], None] | None,
) -> None:
    deadline = None if timeout is None else time.monotonic() + timeout
    waits = False
    while True:
        try:
            lock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except (BlockingIOError, PermissionError):  # POSIX lets lockf say either
            if not waits and on_wait is not None:
                on_wait()
            waits = True
            if deadline is None:
                lock(handle, fcntl.LOCK_EX)
                return
            if time.monotonic() > deadline:
                raise HeadgateError(
                    f"{path} has been locked by another process for {timeout:.0f} s",
                    code="LOCKED",
                    remedy="wait for the other headgate command to finish, then try again",
                ) from None
            time.sleep(_POLL_SECONDS)


def _monitor(path: Path) -> threading.Lock:
    with _monitors_guard:
        return _monitors.setdefault(path, threading.Lock())


def _open(path: Path, mode: int) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, mode)
    except OSError as error:
        if error.errno != errno.EROFS:
            raise
        try:
            return os.open(path, os.O_RDONLY | os.O_CLOEXEC)  # flock takes it as well
        except FileNotFoundError:
            raise error from None
