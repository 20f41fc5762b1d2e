"""Ctrl-C and SIGTERM: the first asks for a stop after the batch, a second Ctrl-C ends at once.

While the job is still starting there is no batch to wait for: the first Ctrl-C interrupts it.

A cluster that sends SIGTERM kills soon after: what is not over within the grace period is left.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from headgate.base.errors import ExitCode
from headgate.runtime.stopping import StopRequest

__all__ = ["Signals", "StopRequest", "shielded_children", "signals"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_AGAIN_SECONDS = 0.02


class Signals:
    """Turns the process's signals into a stop request while it is installed."""

    def __init__(
        self,
        stop: StopRequest,
        *,
        quiet: bool = False,
        savepoint: bool = False,
        grace: float | None = None,
    ) -> None:
        self._stop = stop
        self._quiet = quiet
        self._savepoint = savepoint
        self._grace = grace
        self._interrupted = False
        self._old: dict[int, Any] = {}
        self._old_hook: Any = None

    def install(self) -> None:
        """Take the signals over; again after Spark's start, which takes SIGINT for itself."""
        for number in _SIGNALS:
            old = signal.signal(number, self._handle)
            self._old.setdefault(number, old)
        if self._old_hook is None:
            self._old_hook, sys.unraisablehook = sys.unraisablehook, self._unraisable

    def restore(self) -> None:
        """Give the signals back."""
        for number, old in self._old.items():
            signal.signal(number, old)
        self._old.clear()
        if self._old_hook is not None:
            sys.unraisablehook, self._old_hook = self._old_hook, None

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        name = signal.Signals(number).name
        if (self._stop or self._interrupted) and number == signal.SIGINT:
            self._leave("stopped at once")
        if self._stop.starting and number == signal.SIGINT:
            self._interrupted = True
            raise KeyboardInterrupt
        if not self._stop:
            self._stop.request(name, savepoint=self._savepoint and number == signal.SIGTERM)
            if self._grace is not None and number == signal.SIGTERM:
                late = f"the batch was not over within {self._grace:g} seconds"
                timer = threading.Timer(self._grace, self._leave, [late])
                timer.daemon = True
                timer.start()
            again = "; press Ctrl-C again to stop at once" if number == signal.SIGINT else ""
            self._say(f"finishing the batch{again}")

    def _unraisable(self, swallowed: Any) -> None:
        """Signal again where Python drops an exception: in functions at a fork, in `__del__`."""
        if self._interrupted and issubclass(swallowed.exc_type, KeyboardInterrupt):
            self._interrupted = False
            threading.Timer(_AGAIN_SECONDS, signal.raise_signal, [signal.SIGINT]).start()
        else:
            self._old_hook(swallowed)

    def _leave(self, why: str) -> None:
        self._say(f"{why}; the unfinished batch is run again on the next start")
        # Not sys.exit: Spark's threads and atexit handlers would wait for the batch. Spark's
        # JVM sees its standard input close and ends by itself.
        os._exit(ExitCode.INTERRUPTED)

    def _say(self, text: str) -> None:
        if not self._quiet:
            # Not print: the main thread may be inside its own write to the same buffered stream.
            os.write(2, f"\n{text}\n".encode())


_shielding = False


def _after_fork() -> None:
    if _shielding:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


os.register_at_fork(after_in_child=_after_fork)


@contextmanager
def shielded_children() -> Iterator[None]:
    """Let processes that are started inside the block ignore SIGTERM.

    A service manager sends SIGTERM to all processes of a job at once, and Spark's JVM would stop
    in the middle of the batch that we are about to finish. A JVM keeps ignoring a signal that was
    ignored when it started; it still ends with this process, when its standard input closes.
    """
    global _shielding
    _shielding = True
    try:
        yield
    finally:
        _shielding = False


@contextmanager
def signals(
    stop: StopRequest, *, quiet: bool = False, savepoint: bool = False, grace: float | None = None
) -> Iterator[Signals | None]:
    """Handle signals inside the block; only the main thread can, others get nothing.

    SIGTERM stops with a savepoint if one is wanted, and at once when `grace` seconds are over.
    """
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    handler = Signals(stop, quiet=quiet, savepoint=savepoint, grace=grace)
    handler.install()
    try:
        yield handler
    finally:
        handler.restore()
