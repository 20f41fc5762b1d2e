"""Windows: rows of a key aggregated by event time or by their number."""

from headgate.steps.window.kinds import (
    Trigger,
    Window,
    after_count,
    count_window,
    every,
    session,
    sliding,
    tumbling,
    when,
)
from headgate.steps.window.step import Panes, WindowStep, add_window

__all__ = [
    "Panes",
    "Trigger",
    "Window",
    "WindowStep",
    "add_window",
    "after_count",
    "count_window",
    "every",
    "session",
    "sliding",
    "tumbling",
    "when",
]
