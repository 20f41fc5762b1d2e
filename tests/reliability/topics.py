"""Where the store job's topics are: folders, or a Kafka broker."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from headgate.connectors.log_files import LogRecord, Record, TopicFiles
from tests.kafka.client import Kafka, Send

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
        Kafka(self.servers).send(self.prefix + name, [Send(r.value, r.key) for r in records])

    def read(self, name: str) -> list[LogRecord]:
        return [
            LogRecord(r.partition, r.offset, r.timestamp_ms, r.key, r.value)
            for r in Kafka(self.servers).read(self.prefix + name)
        ]


def topics_of(place: Path | Topics) -> Topics:
    """The topics in a folder, or those that were given."""
    return LogTopics(place) if isinstance(place, Path) else place
