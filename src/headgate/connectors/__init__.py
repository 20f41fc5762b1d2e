"""Where rows come from and go to: one module a system, source and sink each."""

from headgate.connectors.address import Topic, topic
from headgate.connectors.base import Sink, Source, StartPosition
from headgate.connectors.console import ConsoleSink
from headgate.connectors.delta import DeltaSink
from headgate.connectors.files import FilesSink
from headgate.connectors.iceberg import IcebergSink
from headgate.connectors.jdbc.sink import JdbcSink
from headgate.connectors.kafka.sink import KafkaSink
from headgate.connectors.kafka.source import KafkaSource
from headgate.connectors.log.connector import LogSink, LogSource
from headgate.connectors.pulsar.sink import PulsarSink
from headgate.connectors.pulsar.source import PulsarSource
from headgate.connectors.python import Batch, DataSourceSink, ForeachBatchSink, PythonSink

__all__ = [
    "Batch",
    "ConsoleSink",
    "DataSourceSink",
    "DeltaSink",
    "FilesSink",
    "ForeachBatchSink",
    "IcebergSink",
    "JdbcSink",
    "KafkaSink",
    "KafkaSource",
    "LogSink",
    "LogSource",
    "PulsarSink",
    "PulsarSource",
    "PythonSink",
    "Sink",
    "Source",
    "StartPosition",
    "Topic",
    "topic",
]
