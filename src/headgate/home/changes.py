"""Changing a file with no other process between: under a lock, or by a condition of the store."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from headgate.base.errors import HeadgateError
from headgate.home.files import Files

_TRIES = 20
_PAUSE_SECONDS = 0.05


def change_text(
    files: Files, path: str, lock: str, decide: Callable[[str | None], str | None]
) -> None:
    """Replace a file's text by what ``decide`` makes of it; nothing leaves it as it is.

    ``decide`` is asked again if another process was faster, so it must have no effects but its
    answer. A store with neither locks nor conditions is not guarded: see ``Lease``.

    >>> from headgate.home.files import open_files
    >>> files = open_files("/tmp/headgate_change_doc")
    >>> change_text(files, "count", "count.lock", lambda old: "1")
    >>> change_text(files, "count", "count.lock", lambda old: str(int(old) + 1))
    >>> files.read_text("count")
    '2'
    """
    with files.locked(lock) as held:
        if held or not files.conditional:
            new = decide(files.read_text(path))
            if new is not None:
                files.write_text(path, new)
            return
    for tries in range(_TRIES):
        found = files.read_versioned(path)
        text, version = found if found is not None else (None, None)
        new = decide(text)
        if new is None or files.write_if(path, new, version):
            return
        time.sleep(_PAUSE_SECONDS * (1 + tries) * random.random())
    raise HeadgateError(
        f"{files.location(path)} was changed by others {_TRIES} times while this process tried to",
        code="LOCKED",
        remedy="see which processes use the home, and try again",
    )
