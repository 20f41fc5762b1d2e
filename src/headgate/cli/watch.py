"""``--watch``: a command's answer again and again, until Ctrl-C."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Annotated

import typer

from headgate.cli.common import Ui

WatchOption = Annotated[
    bool, typer.Option("--watch", "-w", help="Refresh every two seconds until Ctrl-C.")
]
_SECONDS = 2.0
_HOME_AND_CLEAR = "\033[H\033[2J"


def watched(ui: Ui, show: Callable[[], None], *, watch: bool) -> None:
    """Show it once; with `watch` until Ctrl-C, which is how it is meant to end.

    A terminal shows the newest answer alone. Elsewhere each follows on the one before, after an
    empty line, or with --json on a line of its own.
    """
    if not watch:
        show()
        return
    try:
        first = True
        while True:
            if sys.stdout.isatty():
                print(_HOME_AND_CLEAR, end="")
            elif not first and not ui.json:
                print()
            show()
            first = False
            time.sleep(_SECONDS)
    except KeyboardInterrupt:
        return
