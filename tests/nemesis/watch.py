"""A reader of committed rows that looks on while the job is broken."""

from __future__ import annotations

import contextlib
import threading
import time
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from headgate.base.errors import HeadgateError
from headgate.connectors.log.files import TopicFiles
from tests.kafka.client import Kafka
from tests.nemesis.checker import Finding, Place
from tests.reliability.topics import KafkaTopics, LogTopics, Topics


class Watch(threading.Thread):
    """Remembers each row that it was shown, and where; `seen` is whole after `end`."""

    def __init__(self, topics: Topics, outputs: tuple[str, ...]) -> None:
        super().__init__(daemon=True)
        self._topics, self._outputs = topics, outputs
        self._ends = threading.Event()
        self.seen: dict[Place, str] = {}

    def run(self) -> None:
        match self._topics:
            case KafkaTopics():
                self._kafka(self._topics)
            case LogTopics():
                self._log(self._topics.folder)
            case _:
                pass  # Pulsar shows rows at once: there is nothing that could be taken back

    def end(self) -> None:
        self._ends.set()
        self.join()

    def _kafka(self, topics: KafkaTopics) -> None:
        consumer = Consumer(
            {"bootstrap.servers": topics.servers, "group.id": f"watch-{topics.prefix}",
             "enable.auto.commit": False, "isolation.level": "read_committed", "log_level": 0}
        )  # fmt: skip
        names = {topics.prefix + name: name for name in self._outputs}
        consumer.assign([TopicPartition(name, p, 0) for name in names for p in (0, 1)])
        while not self._ends.is_set():
            for message in consumer.consume(1000, timeout=0.3):
                topic, value = message.topic(), message.value()
                if message.error() or topic is None:
                    continue  # the broker is away; the client asks again by itself
                place = (names[topic], message.partition() or 0, message.offset() or 0)
                self.seen[place] = value.decode() if isinstance(value, bytes) else ""
        consumer.close()

    def _log(self, folder: Path) -> None:
        last: dict[str, dict[int, int]] = {name: {} for name in self._outputs}
        while not self._ends.wait(1.0):
            for name, ends in last.items():
                topic = TopicFiles(folder / name)
                # it may be made at this moment
                with contextlib.suppress(HeadgateError):
                    if topic.exists():
                        for record in topic.read(start=ends):
                            self.seen[name, record.partition, record.offset] = record.value or ""
                            ends[record.partition] = record.offset + 1


def left_open(topics: Topics, outputs: tuple[str, ...], seconds: float = 20) -> list[Finding]:
    """Transactions that nobody has ended: they hold careful readers back."""
    if not isinstance(topics, KafkaTopics):
        return []
    kafka = Kafka(topics.servers)
    found = []
    until = time.monotonic() + seconds
    for name in outputs:
        topic = topics.prefix + name
        while (open_at := kafka.ends(topic)) != (end := kafka.ends(topic, committed=False)):
            if time.monotonic() > until:
                rows = sum(end.values()) - sum(open_at.values())
                found.append(Finding("transaction left open", name, rows))
                break
            time.sleep(0.5)
    return found


def aborted(topics: Topics, outputs: tuple[str, ...]) -> int:
    """Rows that are in the topics, and that no careful reader sees."""
    if not isinstance(topics, KafkaTopics):
        return 0
    kafka = Kafka(topics.servers)
    names = [topics.prefix + name for name in outputs]
    return sum(len(kafka.read(n, committed=False)) - len(kafka.read(n)) for n in names)
