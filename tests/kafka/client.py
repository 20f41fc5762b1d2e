"""A plain Kafka client for tests: what is in a topic, seen from outside."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

_QUIET = {"log_level": 0}


@dataclass(frozen=True)
class Read:
    """One record as a reader sees it."""

    partition: int
    offset: int
    key: str | None
    value: str | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Send:
    """One record to be written; the time is the broker's own unless given."""

    value: str | bytes | None
    key: str | None = None
    partition: int | None = None
    timestamp_ms: int | None = None
    headers: Sequence[tuple[str, bytes | None]] = ()


class Kafka:
    """Makes, fills and reads topics of one broker, under names that no other test has."""

    def __init__(self, servers: str, *, calm: bool = False) -> None:
        """On a broker that nobody breaks (`calm`) each send is half a second shorter."""
        self.servers = servers
        # An idempotent producer waits half a second for its id. Without one a record may be there
        # twice after a lost answer, and out of order if more than one request is on its way.
        safe = {"max.in.flight": 1} if calm else {"enable.idempotence": True}
        self._safe: dict[str, Any] = safe
        self.admin = AdminClient({"bootstrap.servers": servers, **_QUIET})

    def topic(self, partitions: int = 2, **config: str) -> str:
        """A new topic's name; `max_message_bytes="10"` is the setting max.message.bytes."""
        name = f"t-{uuid.uuid4().hex[:12]}"
        self.create(name, partitions, **config)
        return name

    def create(self, name: str, partitions: int = 2, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        made = self.admin.create_topics([NewTopic(name, partitions, 1, config=settings)])
        made[name].result(30)
        self._until_known(name, partitions)

    def grow(self, name: str, partitions: int) -> None:
        """Add partitions."""
        self.admin.create_partitions([NewPartitions(name, partitions)])[name].result(30)
        self._until_known(name, partitions)

    def delete(self, name: str) -> None:
        """Delete a topic, and wait until the broker does not know it any more."""
        self.admin.delete_topics([name])[name].result(30)
        until = time.monotonic() + 30
        while name in self.admin.list_topics(timeout=10).topics:
            assert time.monotonic() < until, f"{name} is still there"
            time.sleep(0.05)

    def delete_before(self, name: str, partition: int, offset: int) -> None:
        """Remove the records before an offset, as retention does."""
        place = TopicPartition(name, partition, offset)
        self.admin.delete_records([place])[place].result(30)

    def _until_known(self, name: str, partitions: int) -> None:
        until = time.monotonic() + 30
        while len(self.admin.list_topics(name, timeout=10).topics[name].partitions) != partitions:
            assert time.monotonic() < until, f"{name} has not {partitions} partitions"
            time.sleep(0.05)

    def send(self, topic: str, records: Iterable[Send | str]) -> None:
        """Write records and wait until the broker has them."""
        producer = Producer(
            {"bootstrap.servers": self.servers, "partitioner": "murmur2_random",
             "linger.ms": 5, "queue.buffering.max.messages": 1_000_000, **self._safe, **_QUIET}
        )  # fmt: skip
        errors: list[Any] = []
        for record in records:
            told = Send(record) if isinstance(record, str) else record
            optional: dict[str, Any] = {}
            if told.partition is not None:
                optional["partition"] = told.partition
            if told.timestamp_ms is not None:
                optional["timestamp"] = told.timestamp_ms
            while True:
                try:
                    producer.produce(
                        topic, told.value, told.key, headers=list(told.headers) or None,
                        on_delivery=lambda e, _: errors.append(e) if e else None, **optional,
                    )  # fmt: skip
                    break
                except BufferError:
                    producer.poll(0.1)
            producer.poll(0)
        assert producer.flush(60) == 0, "the broker did not take all records"
        assert not errors, errors[:3]

    def ends(self, topic: str, *, committed: bool = True) -> dict[int, int]:
        """The end of each partition, for a reader of committed records or of all."""
        with _reader(self.servers, committed) as consumer:
            return {p: high for p, (_, high) in _limits(consumer, topic).items()}

    def read(self, topic: str, *, committed: bool = True) -> list[Read]:
        """Every record up to the end, partition by partition."""
        found: list[Read] = []
        with _reader(self.servers, committed) as consumer:
            limits = _limits(consumer, topic)
            left = {p: high for p, (low, high) in limits.items() if high > low}
            consumer.assign([TopicPartition(topic, p, limits[p][0]) for p in left])
            until = time.monotonic() + 120
            while left:
                assert time.monotonic() < until, f"{topic}: not read up to {left}"
                for message in consumer.consume(10_000, timeout=0.02):
                    error = message.error()
                    assert error is None, error
                    found.append(_record(message))
                # markers of transactions have offsets too, and are never given to a reader
                for place in consumer.position([TopicPartition(topic, p) for p in left]):
                    if place.offset >= left[place.partition]:
                        del left[place.partition]
                        consumer.incremental_unassign([TopicPartition(topic, place.partition)])
        return sorted(found, key=lambda r: (r.partition, r.offset))

    def values(self, topic: str, *, committed: bool = True) -> list[str | None]:
        """The values of `read`."""
        return [record.value for record in self.read(topic, committed=committed)]


class _reader:
    def __init__(self, servers: str, committed: bool) -> None:
        self._consumer = Consumer(
            {"bootstrap.servers": servers, "group.id": f"test-{uuid.uuid4().hex}",
             "enable.auto.commit": False, "auto.offset.reset": "earliest",
             "fetch.wait.max.ms": 10,
             "isolation.level": "read_committed" if committed else "read_uncommitted", **_QUIET}
        )  # fmt: skip

    def __enter__(self) -> Consumer:
        return self._consumer

    def __exit__(self, *ended: object) -> None:
        self._consumer.close()


def _limits(consumer: Consumer, topic: str) -> Mapping[int, tuple[int, int]]:
    known = consumer.list_topics(topic, timeout=30).topics[topic]
    assert known.error is None, known.error
    return {
        p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)
        for p in known.partitions
    }


def _record(message: Any) -> Read:
    def text(data: bytes | None) -> str | None:
        return None if data is None else data.decode("utf-8", "surrogateescape")

    return Read(
        message.partition(),
        message.offset(),
        text(message.key()),
        text(message.value()),
        message.timestamp()[1],
        tuple(message.headers() or ()),
    )
