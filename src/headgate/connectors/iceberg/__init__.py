"""Iceberg tables: rows appended or merged through pyiceberg, a snapshot a batch."""

from headgate.connectors.iceberg.sink import IcebergSink

__all__ = ["IcebergSink"]
