"""Top-N: the first rows of each key in an order, as changes."""

from headgate.steps.top.step import TopStep, add_top

__all__ = ["TopStep", "add_top"]
