"""A plain Pulsar client for tests: what is in a topic, seen from outside."""

from __future__ import annotations

import json
import os
import time
import urllib.request
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pulsar

from headgate.connectors.pulsar.admin import PulsarAdmin
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.names import web_address
from headgate.connectors.pulsar.partition import has_more


@dataclass(frozen=True)
class Read:
    """One message as a reader sees it."""

    partition: int
    id: str
    key: str | None
    value: str | None
    publish_ms: int
    event_ms: int
    properties: tuple[tuple[str, str], ...]
    producer: str


@dataclass(frozen=True)
class Send:
    """One message to be written."""

    value: str | bytes
    key: str | None = None
    event_ms: int | None = None
    properties: Mapping[str, str] = field(default_factory=dict)


class Pulsar:
    """Makes, fills and reads topics of one broker, under names that no other test has."""

    def __init__(self, url: str, **options: Any) -> None:
        self.url = url
        quiet = pulsar.FileLogger(pulsar.LoggerLevel.Error, os.devnull)
        self.client = pulsar.Client(url, logger=quiet, **options)
        self.admin = PulsarAdmin(PulsarAccess(url))
        self.headers = {"Content-Type": "application/json"}

    def close(self) -> None:
        self.client.close()

    def topic(self, partitions: int = 1, *, deduplication: bool | None = None) -> str:
        """A new topic's name; 0 partitions is a topic that is not partitioned.

        Whether it drops duplicates is left to the broker, which does, unless it is told.
        """
        name = f"t-{uuid.uuid4().hex[:12]}"
        self.create(name, partitions)
        if deduplication is not None:
            self.ask(f"{name}/deduplicationEnabled", "POST", deduplication)
            until(lambda: all(self.drops_duplicates(p) is deduplication for p in self.parts(name)))
        return name

    def drops_duplicates(self, part: str) -> bool:
        """Whether a partition has begun to, or has ended."""
        return "pulsar.dedup" in self.ask(f"{part}/internalStats")["cursors"]

    def create(self, name: str, partitions: int) -> None:
        if partitions:
            self.ask(f"{name}/partitions", "PUT", partitions)
        else:
            self.ask(name, "PUT")

    def delete(self, name: str) -> None:
        self.ask(f"{name}/partitions?force=true", "DELETE")

    def grow(self, name: str, partitions: int) -> None:
        """Add partitions."""
        self.ask(f"{name}/partitions", "POST", partitions)

    def address(self, name: str) -> str:
        return f"{self.url}/{name}"

    def partitions(self, name: str) -> list[str]:
        found: list[str] = self.client.get_topic_partitions(f"persistent://public/default/{name}")
        return found

    def parts(self, name: str) -> list[str]:
        """The partitions, as the REST interface names them."""
        return [topic.rpartition("/")[2] for topic in self.partitions(name)]

    def limit(self, name: str, most_bytes: int | None) -> None:
        """Let the topic refuse entries that are larger, as its owner may."""
        self.ask(f"{name}/maxMessageSize", "DELETE" if most_bytes is None else "POST", most_bytes)

    def publishers(self, name: str) -> list[str]:
        """The names of the producers that are connected."""
        stats = [self.ask(f"{part}/stats") for part in self.parts(name)]
        return [producer["producerName"] for found in stats for producer in found["publishers"]]

    def send(self, name: str, messages: Iterable[Send], *, batch: int = 0) -> None:
        """Send messages, so many in an entry (0: each alone); keys decide the partition."""
        made: dict[str, Any] = {}
        if batch:
            made = {"batching_max_messages": batch, "batching_max_publish_delay_ms": 60_000}
        producer = self.client.create_producer(
            name, batching_enabled=batch > 0, block_if_queue_full=True, **made
        )
        problems: list[Any] = []
        for message in messages:
            value = message.value
            producer.send_async(
                value.encode() if isinstance(value, str) else value,
                lambda result, id: problems.append(result) if result.name != "Ok" else None,
                properties=dict(message.properties),
                partition_key=message.key,
                event_timestamp=message.event_ms,
            )
        producer.flush()
        producer.close()
        assert not problems, problems

    def read(self, name: str) -> list[Read]:
        """All messages, partition by partition."""
        found = []
        for number, topic in enumerate(self.partitions(name)):
            reader = self.client.create_reader(topic, pulsar.MessageId.earliest)
            while has_more(reader):
                m = reader.read_next(10_000)
                id = m.message_id()
                place = f"{id.ledger_id()}:{id.entry_id()}:{id.batch_index()}"
                found.append(
                    Read(number, place, m.partition_key() or None,
                         None if m.has_null_value() else m.data().decode(),
                         m.publish_timestamp(), m.event_timestamp(),
                         tuple(sorted(m.properties().items())), m.producer_name())
                )  # fmt: skip
            reader.close()
        return found

    def ids(self, name: str) -> list[int]:
        """The field `id` of all values, sorted."""
        return sorted(json.loads(m.value or "")["id"] for m in self.read(name))

    def compact(self, name: str) -> None:
        """Compact every partition, and wait until it is done."""
        for part in self.parts(name):
            path = f"{part}/compaction"
            self.ask(path, "PUT")
            until(lambda path=path: self.ask(path)["status"] == "SUCCESS")  # type: ignore[misc]

    def backlog(self, name: str, subscription: str) -> int:
        """Entries that the subscription has not acknowledged."""
        total = 0
        for part in self.parts(name):
            stats = self.ask(f"{part}/stats?getPreciseBacklog=true")
            total += stats["subscriptions"][subscription]["msgBacklog"]
        return total

    def acknowledged(self, name: str, subscription: str) -> dict[int, tuple[int, int]]:
        """The last ledger and entry that the subscription has acknowledged, by partition."""
        found = {}
        for number, part in enumerate(self.parts(name)):
            stats = self.ask(f"{part}/internalStats")
            ledger, entry = stats["cursors"][subscription]["markDeletePosition"].split(":")
            found[number] = (int(ledger), int(entry))
        return found

    def subscriptions(self, name: str) -> list[str]:
        found: list[str] = []
        for part in self.parts(name):
            found += self.ask(f"{part}/subscriptions")
        return sorted(set(found) - {"pulsar.dedup"})

    def ask(self, path: str, method: str = "GET", body: Any = None) -> Any:
        """One request to the REST interface, about a topic or (with a slash) anything."""
        if not path.startswith("/"):
            path = f"/persistent/public/default/{path}"
        request = urllib.request.Request(
            f"{web_address(self.url)}/admin/v2{path}",
            data=None if body is None else json.dumps(body).encode(),
            headers=self.headers,
            method=method,
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            text = answer.read()
        return json.loads(text) if text else None


def until(true: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for something that comes by itself."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.1)
