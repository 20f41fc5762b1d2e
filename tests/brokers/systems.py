"""What a contract needs of a system's topics, the same for Kafka and Pulsar."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import headgate as hg
from headgate.connectors.pulsar.names import PulsarTopicName
from tests.kafka.client import Kafka
from tests.kafka.client import Send as KafkaSend
from tests.pulsar.client import Pulsar, until
from tests.pulsar.client import Send as PulsarSend

NAMES = ("kafka", "pulsar")


@dataclass(frozen=True)
class Message:
    """A record or message; `labels` are Kafka's headers and Pulsar's properties."""

    value: str | None
    """None is a deletion."""
    key: str | None = None
    partition: int | None = None
    """Only of one that was read: what is sent goes where its key belongs."""
    time_ms: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


class System(ABC):
    """Makes, fills and reads topics of one broker, and the connectors of jobs to them."""

    name: ClassVar[str]

    @abstractmethod
    def topic(self, partitions: int = 1) -> str:
        """A new topic under a name that no other test has."""

    @abstractmethod
    def narrow(self) -> tuple[str, int]:
        """A new topic, and a number of bytes that it does not take in one record."""

    @abstractmethod
    def again(self, topic: str, partitions: int) -> None:
        """Delete a topic, and make it again under the same name."""

    @abstractmethod
    def grow(self, topic: str, partitions: int) -> None: ...

    @abstractmethod
    def send(self, topic: str, messages: Iterable[Message]) -> None: ...

    @abstractmethod
    def read(self, topic: str) -> list[Message]:
        """What a reader of committed records finds, partition by partition."""

    @abstractmethod
    def ends(self, topic: str) -> Mapping[str, Any]:
        """Where a job that has read all of the topic stands, as its checkpoints say it."""

    @abstractmethod
    def address(self, topic: str) -> str: ...

    @abstractmethod
    def source(self, topic: str, schema: str, **parts: Any) -> hg.Source: ...

    @abstractmethod
    def sink(self, topic: str, *, labels: str = "", time: str = "", **parts: Any) -> hg.Sink: ...


class KafkaSystem(System):
    """Topics of a Kafka broker."""

    name = "kafka"

    def __init__(self, servers: str) -> None:
        self.servers, self._client = servers, Kafka(servers, calm=True)

    def topic(self, partitions: int = 1) -> str:
        return self._client.topic(partitions)

    def narrow(self) -> tuple[str, int]:
        return self._client.topic(1, max_message_bytes="2000"), 10_000

    def again(self, topic: str, partitions: int) -> None:
        self._client.delete(topic)
        self._client.create(topic, partitions)

    def grow(self, topic: str, partitions: int) -> None:
        self._client.grow(topic, partitions)

    def send(self, topic: str, messages: Iterable[Message]) -> None:
        self._client.send(topic, [KafkaSend(m.value, m.key) for m in messages])

    def read(self, topic: str) -> list[Message]:
        return [
            Message(r.value, r.key, r.partition, r.timestamp_ms,
                    {name: (value or b"").decode() for name, value in r.headers})
            for r in self._client.read(topic)
        ]  # fmt: skip

    def ends(self, topic: str) -> Mapping[str, Any]:
        return {str(partition): end for partition, end in self._client.ends(topic).items()}

    def address(self, topic: str) -> str:
        return f"kafka://{self.servers}/{topic}"

    def source(self, topic: str, schema: str, **parts: Any) -> hg.Source:
        return hg.KafkaSource(self.servers, topic, schema, **parts)

    def sink(self, topic: str, *, labels: str = "", time: str = "", **parts: Any) -> hg.Sink:
        own = {"headers": labels or None, "timestamp": time or None}
        return hg.KafkaSink(self.servers, topic, **given(own), **parts)


class PulsarSystem(System):
    """Topics of a Pulsar broker."""

    name = "pulsar"

    def __init__(self, url: str) -> None:
        self.url, self._client = url, Pulsar(url)

    def topic(self, partitions: int = 1) -> str:
        return self._client.topic(partitions)

    def narrow(self) -> tuple[str, int]:
        return self._client.topic(1), 6_000_000  # its broker takes 5 MB

    def again(self, topic: str, partitions: int) -> None:
        self._client.delete(topic)
        name = PulsarTopicName.parse(topic)
        until(lambda: self._client.admin.partitions(name) is None)
        self._client.create(topic, partitions)

    def grow(self, topic: str, partitions: int) -> None:
        self._client.grow(topic, partitions)

    def send(self, topic: str, messages: Iterable[Message]) -> None:
        # an empty message is a deletion
        self._client.send(topic, [PulsarSend(m.value or b"", m.key) for m in messages])

    def read(self, topic: str) -> list[Message]:
        return [
            Message(m.value, m.key, m.partition, m.event_ms, dict(m.properties))
            for m in self._client.read(topic)
        ]

    def ends(self, topic: str) -> Mapping[str, Any]:
        return {str(m.partition): m.id for m in self._client.read(topic)}

    def address(self, topic: str) -> str:
        return self._client.address(topic)

    def source(self, topic: str, schema: str, **parts: Any) -> hg.Source:
        return hg.PulsarSource(self.url, topic, schema, **parts)

    def sink(self, topic: str, *, labels: str = "", time: str = "", **parts: Any) -> hg.Sink:
        own = {"properties": labels or None, "event_time": time or None}
        return hg.PulsarSink(self.url, topic, **given(own), **parts)

    def close(self) -> None:
        self._client.close()


def given(parts: Mapping[str, str | None]) -> dict[str, str]:
    return {name: value for name, value in parts.items() if value is not None}
