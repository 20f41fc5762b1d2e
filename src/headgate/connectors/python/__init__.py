"""Sinks in Python: a class that writes partitions, a function, or a data source of PySpark's."""

from headgate.connectors.python.batch import Batch
from headgate.connectors.python.data_source import DataSourceSink
from headgate.connectors.python.foreach_batch import ForeachBatchSink
from headgate.connectors.python.sink import PythonSink

__all__ = ["Batch", "DataSourceSink", "ForeachBatchSink", "PythonSink"]
