"""Saying that a long work goes on, so that nobody wonders whether it hangs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

from headgate.base.durations import format_duration

_FIRST_SECONDS = 2.0
_NEXT_SECONDS = 10.0


@contextmanager
def still(
    say: Callable[[str], None], what: str, *, first: float = _FIRST_SECONDS,
    then: float = _NEXT_SECONDS,
) -> Iterator[None]:  # fmt: skip
    """Say what is going on when it takes more than two seconds, and again every ten.

    >>> with still(print, "copying", first=0.0, then=60.0):
    ...     time.sleep(0.2)
    copying ...
    """
    over = threading.Event()
    began = time.monotonic()

    def tell() -> None:
        if over.wait(first):
            return
        say(f"{what} ...")
        while not over.wait(then):
            took = timedelta(seconds=round(time.monotonic() - began))
            say(f"{what} ... {format_duration(took)} so far")

    thread = threading.Thread(target=tell, name="still", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
