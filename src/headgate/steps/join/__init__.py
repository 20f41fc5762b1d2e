"""Joins of two keyed streams, in time or in windows."""

from headgate.steps.join.step import JoinStep, Unmatched, add_join
from headgate.steps.join.within import Between, SameWindow, Within, between

__all__ = [
    "Between",
    "JoinStep",
    "SameWindow",
    "Unmatched",
    "Within",
    "add_join",
    "between",
]
