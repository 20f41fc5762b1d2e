"""Delta tables: rows appended or merged, a commit a batch."""

from headgate.connectors.delta.sink import DeltaSink

__all__ = ["DeltaSink"]
