"""Where the store job's topics are: folders, or a broker."""

from __future__ import annotations

from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headgate.connectors.log.files import LogRecord, Record, TopicFiles
from headgate.connectors.pulsar.ids import to_number
from tests.kafka.client import Kafka
from tests.kafka.client import Send as KafkaSend
from tests.pulsar.client import Pulsar, Send

INPUTS = ("orders", "users", "items")
OUTPUTS = ("enriched", "missing_users", "missing_items", "malformed")


class Topics(Protocol):
    """The topics of one store, by the names of its sources and sinks."""

    def address(self, name: str) -> str: ...

    def create(self, partitions: int) -> None:
        """Make the topics that are read, and the others where a sink does not make them."""

    def append(self, name: str, records: list[Record]) -> None: ...

    def read(self, name: str) -> list[LogRecord]:
        """What a careful reader sees: nothing of transactions that are not committed."""


@dataclass(frozen=True)
class LogTopics:
    """Embedded topics in a folder."""

    folder: Path

    def address(self, name: str) -> str:
        return f"log:{self.folder / name}"

    def create(self, partitions: int) -> None:
        for name in INPUTS:
            TopicFiles(self.folder / name).create(partitions)

    def append(self, name: str, records: list[Record]) -> None:
        TopicFiles(self.folder / name).append(records)

    def read(self, name: str) -> list[LogRecord]:
        topic = TopicFiles(self.folder / name)
        return list(topic.read()) if topic.exists() else []


@dataclass(frozen=True)
class KafkaTopics:
    """Topics of a broker whose names begin with `prefix`."""

    servers: str
    prefix: str

    def address(self, name: str) -> str:
        return f"kafka://{self.servers}/{self.prefix}{name}"

    def create(self, partitions: int) -> None:
        for name in (*INPUTS, *OUTPUTS):
            Kafka(self.servers).create(self.prefix + name, partitions)

    def append(self, name: str, records: list[Record]) -> None:
        Kafka(self.servers).send(self.prefix + name, [KafkaSend(r.value, r.key) for r in records])

    def read(self, name: str) -> list[LogRecord]:
        return [
            LogRecord(r.partition, r.offset, r.timestamp_ms, r.key, r.value)
            for r in Kafka(self.servers).read(self.prefix + name)
        ]


@dataclass(frozen=True)
class PulsarTopics:
    """Topics of a Pulsar broker whose names begin with `prefix`."""

    url: str
    prefix: str

    def address(self, name: str) -> str:
        return f"{self.url}/{self.prefix}{name}"

    def create(self, partitions: int) -> None:
        with self._client() as pulsar:
            for name in (*INPUTS, *OUTPUTS):
                pulsar.create(self.prefix + name, partitions)

    def append(self, name: str, records: list[Record]) -> None:
        """Half of them from a producer that batches, and half from one that does not."""
        sent = [Send(r.value or "", r.key) for r in records]
        half = len(sent) // 2
        with self._client() as pulsar:
            pulsar.send(self.prefix + name, sent[:half], batch=50)
            pulsar.send(self.prefix + name, sent[half:])

    def read(self, name: str) -> list[LogRecord]:
        with self._client() as pulsar:
            return [
                LogRecord(
                    m.partition,
                    to_number(*(int(part) for part in m.id.split(":"))),
                    m.publish_ms,
                    m.key or None,
                    m.value or None,
                )
                for m in pulsar.read(self.prefix + name)
            ]

    def _client(self) -> AbstractContextManager[Pulsar]:
        return closing(Pulsar(self.url))


def topics_of(place: Path | Topics) -> Topics:
    """The topics in a folder, or those that were given."""
    return LogTopics(place) if isinstance(place, Path) else place
