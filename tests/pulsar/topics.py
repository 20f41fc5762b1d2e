"""A plain Pulsar client for tests: what is in a topic, seen from outside."""

from __future__ import annotations

import json
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pulsar

from headgate.connectors.pulsar_admin import PulsarAdmin
from headgate.connectors.pulsar_client import PulsarAccess
from headgate.connectors.pulsar_names import PulsarTopicName


@dataclass(frozen=True)
class Read:
    """One message as a reader sees it."""

    partition: int
    key: str | None
    value: str | None
    properties: tuple[tuple[str, str], ...]
    event_time_ms: int
    producer: str


class Pulsar:
    """Makes and reads topics of one broker, under names that no other test has."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.access = PulsarAccess(url)
        self.admin = PulsarAdmin(self.access)

    def topic(self, partitions: int = 1, *, deduplication: bool | None = True) -> str:
        """A new topic's name; it drops duplicates unless told otherwise."""
        name = PulsarTopicName.parse(f"t-{uuid.uuid4().hex[:12]}")
        self.admin.create(name, partitions)
        if deduplication is not None:
            self.admin.set_deduplication(name, deduplication)
            self._until_deduplicated(name, partitions, deduplication)
        return name.name

    def _until_deduplicated(self, name: PulsarTopicName, partitions: int, on: bool) -> None:
        def stands(part: PulsarTopicName) -> bool:
            return ("pulsar.dedup" in self.admin.internal(part)["cursors"]) is on

        for number in range(partitions):
            while not stands(name.partition(number)):
                pass

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions."""
        self.ask("POST", f"{PulsarTopicName.parse(topic).path}/partitions", partitions)

    def limit(self, topic: str, most_bytes: int | None) -> None:
        """Let the topic refuse entries that are larger, as its owner may."""
        path = f"{PulsarTopicName.parse(topic).path}/maxMessageSize"
        self.ask("DELETE" if most_bytes is None else "POST", path, most_bytes)

    def publishers(self, topic: str) -> list[str]:
        """The names of the producers that are connected."""
        name = PulsarTopicName.parse(topic)
        parts = [name.partition(n) for n in range(self.admin.partitions(name) or 0)]
        return [p["producerName"] for part in parts for p in self.admin.stats(part)["publishers"]]

    def ask(self, method: str, path: str, body: object = None) -> None:
        """A request of the REST interface that Headgate itself has no use for."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"{self.access.admin_url}/admin/v2/{path}", data=data, method=method,
            headers={"Content-Type": "application/json"},
        )  # fmt: skip
        urllib.request.urlopen(request, timeout=30).close()

    @contextmanager
    def client(self) -> Iterator[pulsar.Client]:
        """A client that is closed."""
        made = self.access.connect()
        try:
            yield made
        finally:
            made.close()

    def read(self, topic: str) -> list[Read]:
        """Every message, partition by partition in the order of the topic."""
        count = self.admin.partitions(PulsarTopicName.parse(topic))
        parts = [f"{topic}-partition-{number}" for number in range(count)] if count else [topic]
        with self.client() as client:
            return [
                r for number, part in enumerate(parts) for r in _partition(client, part, number)
            ]

    def ids(self, topic: str) -> list[int]:
        """The field `id` of all values, sorted."""
        return sorted(json.loads(m.value or "")["id"] for m in self.read(topic))


def _partition(client: pulsar.Client, topic: str, number: int) -> Iterator[Read]:
    reader = client.create_reader(topic, pulsar.MessageId.earliest)
    try:
        while reader.has_message_available():
            message: Any = reader.read_next(10_000)
            yield Read(
                number,
                message.partition_key() or None,
                None if message.has_null_value() else message.data().decode(),
                tuple(sorted(message.properties().items())),
                message.event_timestamp(),
                message.producer_name(),
            )
    finally:
        reader.close()
