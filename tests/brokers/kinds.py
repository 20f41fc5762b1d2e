"""The kinds of local brokers, and a Java that stands in for theirs where a start must fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pulsar
from confluent_kafka import Producer

from headgate.brokers.base import LocalBroker
from headgate.brokers.kafka import KafkaBroker
from headgate.brokers.pulsar import PulsarBroker
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.names import PulsarTopicName
from tests.kafka.client import Kafka
from tests.pulsar.client import Pulsar

# Kafka's storage is made by a program of its own before the broker starts.
_FORMAT = """case "$*" in *StorageTool*)
  mkdir -p .format/data; echo "cluster.id=an-id" > .format/data/meta.properties;;"""
# Pulsar's bookie makes its own.
_BOOKIE = "mkdir -p data/bookkeeper/current; touch data/bookkeeper/current/VERSION"


@dataclass(frozen=True)
class Kind:
    """A kind of broker, and what differs in the tests of all of them."""

    name: str
    make: type[LocalBroker]
    fixture: str
    """The one of the pytest plugin that gives the address of such a broker."""
    script: Callable[[str], str]
    """What Java does: makes storage, then what a test says."""
    settings: str
    """The file with its settings."""
    setting: Mapping[str, str]
    """One that users may give; the next is always there."""
    always: str
    storage: str
    """A file in `data` that says whose storage it is."""
    write: Callable[[str, str, list[str]], None]
    """Values to a topic that is made if it is not there; all of them or none."""
    read: Callable[[str, str], list[str]]


def behave(program: Path, script: str) -> None:
    """Let the stand-in for Java do this."""
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def _write_kafka(servers: str, topic: str, values: list[str]) -> None:
    client = Kafka(servers)
    if topic not in client.admin.list_topics(timeout=30).topics:
        client.create(topic, 1)
    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in values:
        producer.produce(topic, value)
    producer.commit_transaction(30)


def _read_kafka(servers: str, topic: str) -> list[str]:
    return [value or "" for value in Kafka(servers).values(topic)]


def _write_pulsar(url: str, topic: str, values: list[str]) -> None:
    name = PulsarTopicName.parse(topic)
    client = Pulsar(url)
    if client.admin.partitions(name) is None:
        client.create(topic, 1)
    client.close()
    connection: pulsar.Client = PulsarAccess(url).connect()
    producer = connection.create_producer(str(name))
    for value in values:
        producer.send(value.encode())
    connection.close()


def _read_pulsar(url: str, topic: str) -> list[str]:
    client = Pulsar(url)
    found = [message.value or "" for message in client.read(topic)]
    client.close()
    return found


KAFKA = Kind(
    "kafka", KafkaBroker, "kafka_servers",
    lambda then: f"{_FORMAT} *) {then};; esac", "server.properties",
    {"offsets.retention.minutes": "1"}, "log.dirs=data", "meta.properties",
    _write_kafka, _read_kafka,
)  # fmt: skip
PULSAR = Kind(
    "pulsar", PulsarBroker, "pulsar_url",
    lambda then: f"{_BOOKIE}; {then}", "standalone.conf",
    {"maxMessageSize": "9"}, "brokerDeduplicationEnabled=true", "storage.json",
    _write_pulsar, _read_pulsar,
)  # fmt: skip
KINDS = (KAFKA, PULSAR)


def is_up(pid: int) -> bool:
    """Whether the process lives; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
