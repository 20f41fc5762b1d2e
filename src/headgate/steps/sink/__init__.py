"""Sinks: where rows leave a job."""

from headgate.steps.sink.step import SinkStep, add_sink

__all__ = ["SinkStep", "add_sink"]
