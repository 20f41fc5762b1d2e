"""A Kafka topic as commands use it, through confluent-kafka."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import cached_property
from typing import TypeVar

from confluent_kafka import (
    TIMESTAMP_NOT_AVAILABLE,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    ConfigResource,
    OffsetSpec,
    ResourceType,
    TopicDescription,
)
from confluent_kafka.admin import (
    NewTopic as KafkaNewTopic,
)

from headgate.base.errors import RefusedError
from headgate.connectors.kafka.access import ANSWER_SECONDS, KafkaAccess, KafkaAddress
from headgate.connectors.records import Record
from headgate.connectors.topic_client import (
    AppendAll,
    NewTopic,
    NotAcknowledgedError,
    PartitionFacts,
    Place,
    Retention,
    TopicClient,
    TopicFacts,
    TopicRecord,
    as_text,
)

T = TypeVar("T")

_BATCH = 1000
_POLL_SECONDS = 0.2
# Some say it with the largest number of 64 bits instead of -1.
_FOR_EVER = timedelta.max // timedelta(milliseconds=1)
_FENCED = (KafkaError._FENCED, KafkaError.PRODUCER_FENCED, KafkaError.INVALID_PRODUCER_EPOCH)
# Neither ends a reader: it has no use for a group, and may be slow.
_HARMLESS = (KafkaError.GROUP_AUTHORIZATION_FAILED, KafkaError._MAX_POLL_EXCEEDED)


class KafkaTopic(TopicClient):
    """The client of a topic on Kafka brokers.

    >>> KafkaTopic("kafka://localhost:9092/orders", {}).create(NewTopic(2))  # doctest: +SKIP
    True
    """

    def __init__(self, address: str, options: Mapping[str, str]) -> None:
        self._address = KafkaAddress.parse(address)
        self._topic = self._address.topic
        self._access = KafkaAccess(self._address, options)

    def exists(self) -> bool:
        return self._find() is not None

    def create(self, wanted: NewTopic) -> bool:
        if self.exists():
            return False
        new = KafkaNewTopic(
            self._topic,
            num_partitions=wanted.partitions,
            replication_factor=wanted.replication or -1,
            config=_settings(wanted.retention),
        )
        made = self._access.admin.create_topics(
            [new], operation_timeout=ANSWER_SECONDS, request_timeout=ANSWER_SECONDS
        )
        try:
            self._answer(made[self._topic])
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS:
                return False
            raise self._access.error(error.args[0]) from error
        self._wait_for_leaders()
        return True

    def neighbours(self) -> Sequence[str]:
        try:
            found = self._access.admin.list_topics(timeout=ANSWER_SECONDS).topics
        except KafkaException as error:
            raise self._access.error(error.args[0]) from error
        servers = self._address.servers
        return [f"kafka://{servers}/{name}" for name in sorted(found) if not name.startswith("__")]

    def partitions(self) -> int:
        return len(self._describe().partitions)

    def facts(self) -> TopicFacts:
        described = self._describe()
        first, end = self._at("earliest"), self._at("latest", committed=False)
        return TopicFacts(
            # Compaction and the ends of transactions leave gaps, which nobody counts for us.
            tuple(PartitionFacts(p, first[p], end[p], end[p] - first[p]) for p in sorted(end)),
            self._retention(),
            replication=max((len(p.replicas) for p in described.partitions), default=0),
            leaders=sum(p.leader is not None for p in described.partitions),
        )

    def _at(self, place: Place, *, committed: bool = True) -> dict[int, int]:
        """The offset of a place in each partition."""
        if place == "earliest":
            return self._offsets(OffsetSpec.earliest(), committed=committed)
        ends = self._offsets(OffsetSpec.latest(), committed=committed)
        if not isinstance(place, datetime):
            return ends
        # Kafka has other uses for times before 1970.
        at = OffsetSpec.for_timestamp(max(0, int(place.timestamp() * 1000)))
        found = self._offsets(at, committed=committed)
        # -1 says that no record is as late as that
        return {p: offset if offset >= 0 else ends[p] for p, offset in found.items()}

    def append(self, records: Sequence[Record], *, partition: int | None = None) -> None:
        tally = _Tally()
        target = -1 if partition is None else partition
        try:
            for record in records:
                self._send(record, target, tally)
                if tally.error is not None:
                    break
        except KafkaException as error:
            tally.error = tally.error or error.args[0]
        try:
            while self._producer.flush(_POLL_SECONDS):
                pass  # in small steps, so that Ctrl-C is heard
        except KafkaException as error:  # one after which this producer can send nothing more
            tally.error = tally.error or error.args[0]
        if tally.error is not None:
            raise self._not_acknowledged(tally)

    @contextmanager
    def alone(self) -> Iterator[AppendAll]:
        """A transaction for what is given at once; the broker fences who began before."""
        producer = self._access.producer(transactional_id=f"headgate.alone.{self._topic}")
        with self._explained():
            producer.init_transactions(ANSWER_SECONDS)
        yield lambda records: self._in_transaction(producer, records)

    def _in_transaction(self, producer: Producer, records: Sequence[Record]) -> None:
        with self._explained():
            producer.begin_transaction()
            for record in records:
                value = None if record.value is None else record.value.encode()
                key = None if record.key is None else record.key.encode()
                self._produce(producer, value, key)
            producer.commit_transaction(ANSWER_SECONDS)

    def _produce(self, producer: Producer, value: bytes | None, key: bytes | None) -> None:
        while True:
            try:
                producer.produce(self._topic, value, key, 0)
                return
            except BufferError:
                producer.poll(_POLL_SECONDS)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            cause = error.args[0]
            if cause.code() in _FENCED:
                raise RefusedError(
                    f"another command appends to {self._address}",
                    remedy="wait for it to end, then run this one again",
                ) from error
            raise self._access.error(cause) from error

    def read(
        self, start: Place, *, committed: bool = True, follow: bool = False
    ) -> Generator[TopicRecord | None, None, None]:
        """The records as they come, each partition in its order.

        1. The end is what Kafka says now: for committed reads the last stable offset.
        2. A partition is done when a record or Kafka's own mark of its end is at or past that: the
           offsets of aborted records and of the ends of transactions never show up as records.
        """
        first = self._at(start, committed=committed)
        ends = {} if follow else self._at("latest", committed=committed)
        waiting = {p for p, offset in first.items() if follow or offset < ends[p]}
        if not waiting:
            return
        consumer = self._access.consumer(committed=committed)
        try:
            consumer.assign([TopicPartition(self._topic, p, first[p]) for p in sorted(waiting)])
            heard = time.monotonic()
            while waiting:
                batch = consumer.consume(_BATCH, _POLL_SECONDS)
                for message in batch:
                    part, offset = message.partition(), message.offset()
                    is_mark = self._is_mark(message)
                    if part not in waiting or offset is None:
                        continue
                    if not is_mark and (follow or offset < ends[part]):
                        yield _record(message, part, offset)
                    if not follow and (offset if is_mark else offset + 1) >= ends[part]:
                        waiting.discard(part)
                if batch:
                    heard = time.monotonic()
                elif time.monotonic() - heard > ANSWER_SECONDS:
                    self._describe()  # tells a quiet topic from a broker that is gone
                    heard = time.monotonic()
                if len(batch) < _BATCH:
                    yield None
        finally:
            consumer.close()

    def _is_mark(self, message: Message) -> bool:
        """Whether this is no record but the mark of an end, or an error that Kafka retries."""
        error = message.error()
        if error is None:
            return False
        passing = error.retriable() or error.code() in _HARMLESS
        if error.code() != KafkaError._PARTITION_EOF and not passing:
            raise self._access.error(error)
        return True

    def _find(self) -> TopicDescription | None:
        # Unlike a look into the cluster's metadata this never makes the topic, even where brokers
        # make whatever somebody names.
        answers = self._access.admin.describe_topics(
            TopicCollection([self._topic]), request_timeout=ANSWER_SECONDS
        )
        try:
            found: TopicDescription = self._answer(answers[self._topic])
            return found
        except KafkaException as error:
            if error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
                return None
            raise self._access.error(error.args[0]) from error

    def _describe(self) -> TopicDescription:
        found = self._find()
        if found is None:
            raise self._access.error(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART))
        return found

    def _wait_for_leaders(self) -> None:
        """Until every broker knows the topic: they learn it one by one."""
        until = time.monotonic() + ANSWER_SECONDS
        while time.monotonic() < until:
            found = self._find()
            if found is not None and all(p.leader is not None for p in found.partitions):
                return
            time.sleep(0.1)

    def _offsets(self, spec: OffsetSpec, *, committed: bool) -> dict[int, int]:
        level = IsolationLevel.READ_COMMITTED if committed else IsolationLevel.READ_UNCOMMITTED
        parts = [TopicPartition(self._topic, p.id) for p in self._describe().partitions]
        answers = self._access.admin.list_offsets(
            dict.fromkeys(parts, spec), isolation_level=level, request_timeout=ANSWER_SECONDS
        )
        try:
            return {p.partition: self._answer(answers[p]).offset for p in parts}
        except KafkaException as error:
            raise self._access.error(error.args[0]) from error

    def _retention(self) -> Retention | None:
        resource = ConfigResource(ResourceType.TOPIC, self._topic)
        answers = self._access.admin.describe_configs([resource], request_timeout=ANSWER_SECONDS)
        try:
            entries = self._answer(answers[resource])
        except KafkaException as error:
            if error.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                return None
            raise self._access.error(error.args[0]) from error
        settings = {name: entry.value for name, entry in entries.items()}
        policy = (settings.get("cleanup.policy") or "delete").split(",")
        millis = int(settings.get("retention.ms") or -1)
        size = int(settings.get("retention.bytes") or -1)
        deletes = "delete" in [part.strip() for part in policy]
        return Retention(
            kept=timedelta(milliseconds=millis) if deletes and 0 <= millis < _FOR_EVER else None,
            compacted="compact" in [part.strip() for part in policy],
            most_bytes=size if deletes and size >= 0 else None,
        )

    def _answer(self, future: Future[T]) -> T:
        return self._access.answer(future)

    @cached_property
    def _producer(self) -> Producer:
        return self._access.producer()

    def _send(self, record: Record, partition: int, tally: _Tally) -> None:
        key = record.key.encode() if record.key is not None else None
        value = record.value.encode() if record.value is not None else None
        while True:
            try:
                self._producer.produce(
                    self._topic, value, key, partition, on_delivery=tally.delivered
                )
                return
            except BufferError:  # its queue is full: let it send some
                self._producer.poll(_POLL_SECONDS)

    def _not_acknowledged(self, tally: _Tally) -> NotAcknowledgedError:
        assert tally.error is not None
        reported = self._access.error(tally.error)
        remedy = reported.remedy
        if tally.error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
            remedy = "make the record smaller, or raise --option message.max.bytes and the topic's "
            remedy += "max.message.bytes"
        return NotAcknowledgedError(
            reported.message, acknowledged=tally.acknowledged, remedy=remedy
        )


class _Tally:
    """Counts what the broker acknowledges and keeps the first failure."""

    def __init__(self) -> None:
        self.acknowledged = 0
        self.error: KafkaError | None = None

    def delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.acknowledged += 1
        elif self.error is None:
            self.error = error


def _settings(retention: Retention) -> dict[str, str]:
    """The settings of a topic that keeps its records so.

    >>> _settings(Retention(compacted=True))
    {'cleanup.policy': 'compact', 'retention.ms': '-1'}
    """
    kept = retention.kept
    millis = -1 if kept is None else round(kept.total_seconds() * 1000)
    policy = "delete"
    if retention.compacted:
        policy = "compact" if kept is None else "compact,delete"
    return {"cleanup.policy": policy, "retention.ms": str(millis)}


def _record(message: Message, partition: int, offset: int) -> TopicRecord:
    kind, millis = message.timestamp()
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return TopicRecord(
        partition,
        offset,
        None if kind == TIMESTAMP_NOT_AVAILABLE else millis,
        as_text(message.key()),
        as_text(message.value()),
        tuple((name, as_text(value)) for name, value in pairs),
    )
