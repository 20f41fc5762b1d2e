"""Where rows come from and go to: one module a system, source and sink each."""

from headgate.connectors.address import Topic, topic
from headgate.connectors.base import Sink, Source, Start
from headgate.connectors.console import ConsoleSink
from headgate.connectors.files import FilesSink
from headgate.connectors.kafka_sink import KafkaSink
from headgate.connectors.kafka_source import KafkaSource
from headgate.connectors.log import LogSink, LogSource
from headgate.connectors.pulsar_sink import PulsarSink
from headgate.connectors.pulsar_source import PulsarSource

__all__ = [
    "ConsoleSink",
    "FilesSink",
    "KafkaSink",
    "KafkaSource",
    "LogSink",
    "LogSource",
    "PulsarSink",
    "PulsarSource",
    "Sink",
    "Source",
    "Start",
    "Topic",
    "topic",
]
