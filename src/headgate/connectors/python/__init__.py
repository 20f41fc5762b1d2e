"""Sinks in Python: a class that writes partitions, or a function that gets a DataFrame."""

from headgate.connectors.python.batch import Batch
from headgate.connectors.python.foreach_batch import ForeachBatchSink
from headgate.connectors.python.sink import PythonSink

__all__ = ["Batch", "ForeachBatchSink", "PythonSink"]
