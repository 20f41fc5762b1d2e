"""Sources: streams that come from a topic."""

from headgate.steps.source.step import SourceStep, add_source
from headgate.steps.source.times import EventTime, event_time

__all__ = ["EventTime", "SourceStep", "add_source", "event_time"]
