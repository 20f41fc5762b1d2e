"""Top-N: the first rows of each key in an order, as changes, or of each key and window."""

from headgate.steps.top.in_windows import RowWindows, WindowTopStep, add_window_top
from headgate.steps.top.step import TopStep, add_top

__all__ = ["RowWindows", "TopStep", "WindowTopStep", "add_top", "add_window_top"]
