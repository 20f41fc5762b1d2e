"""A Pulsar topic as commands use it, through pulsar-client and the REST interface."""

from __future__ import annotations

import itertools
import re
import time
import weakref
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import pulsar

from headgate.base.errors import GraphError, HeadgateError, NotFoundError, UsageError
from headgate.connectors.pulsar.admin import PulsarAdmin, PulsarAdminError
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.messages import (
    MessagePlace,
    is_from,
    millis_of,
    next_message,
    place_of,
    spell_place,
    topic_record,
)
from headgate.connectors.pulsar.names import PulsarTopicName, address_of, split_pulsar_address
from headgate.connectors.pulsar.sending import Tally, key_hash
from headgate.connectors.records import Record
from headgate.connectors.topic_client import (
    EntryFacts,
    NewTopic,
    NotAcknowledgedError,
    Place,
    Retention,
    TopicClient,
    TopicFacts,
    TopicRecord,
)
from headgate.failures import Reason

_ANSWER_SECONDS = 10
_POLL_SECONDS = 0.2
# Where a turn over all partitions of a followed topic has to wait for each of them.
_TURN_MILLIS = 50
_TURN_MESSAGES = 1000
_SILENCE_SECONDS = 30.0
# What exceptions and results of the client are called.
_UNREACHABLE = ("Timeout", "ConnectError", "NotConnected", "ServiceUnitNotReady")
_REJECTED = ("AuthenticationError", "AuthorizationError")


class PulsarTopic(TopicClient):
    """The client of a topic of a Pulsar service.

    >>> PulsarTopic("pulsar://localhost:6650/orders", {}).create(NewTopic(2))  # doctest: +SKIP
    True
    """

    def __init__(self, address: str, options: Mapping[str, str]) -> None:
        try:
            url, name = split_pulsar_address(address)
            self._topic = PulsarTopicName.parse(name)
            self._access, _ = PulsarAccess.split(url, options, known=(), what="topic")
            self._access.check()
        except GraphError as error:  # here it is no graph that is wrong, but a command
            raise UsageError(
                error.message, expected=error.expected, got=error.got, remedy=error.remedy
            ) from None
        self._address = address_of(url, self._topic)
        self._admin = PulsarAdmin(self._access, timeout=_ANSWER_SECONDS)
        self._producers: dict[PulsarTopicName, pulsar.Producer] = {}
        self._turn = itertools.count()

    def exists(self) -> bool:
        return self._admin.partitions(self._topic) is not None

    def create(self, wanted: NewTopic) -> bool:
        _check(wanted)
        if re.search(r"-partition-\d+$", self._topic.name):
            raise UsageError(
                f"'{self._topic.name}' is how Pulsar names a partition of a topic",
                remedy="choose another name",
            )
        if not self._admin.create(self._topic, wanted.partitions):
            return False
        kept = wanted.retention.kept
        try:
            # Without a word, most services drop what nobody has subscribed to.
            if self._admin.retention(self._topic) != wanted.retention:
                self._admin.set_retention(self._topic, kept, None)
        except HeadgateError as error:
            raise HeadgateError(
                f"{self._address} was created, but how long it keeps messages cannot be set "
                f"({error.message})",
                code="PULSAR",
                remedy="ask somebody with the right to set it, and check it with headgate topic "
                "describe",
            ) from error
        return True

    def neighbours(self) -> Sequence[str]:
        return [address_of(self._access.url, topic) for topic in self._admin.topics(self._topic)]

    def partitions(self) -> int:
        return len(self._parts())

    def facts(self) -> TopicFacts:
        found = []
        for number, part in enumerate(self._parts()):
            stats = self._admin.internal(part)
            first, last = _ends(stats)
            entries, size = int(stats["numberOfEntries"]), int(stats["totalSize"])
            found.append(EntryFacts(number, first, last, entries, size))
        return TopicFacts(tuple(found), self._retention())

    def append(self, records: Sequence[Record], *, partition: int | None = None) -> None:
        parts = self._parts()
        tally = Tally()
        sent = 0
        try:
            for record in records:
                if tally.failed is not None:
                    break
                number = self._place(record, len(parts)) if partition is None else partition
                # Nothing at all is how Pulsar writes down that a key is deleted.
                value = None if record.value is None else record.value.encode()
                self._producer(parts[number]).send_async(
                    value, tally.hear, partition_key=record.key
                )
                sent += 1
            while tally.done < sent:  # in small steps, so that Ctrl-C is heard
                time.sleep(_POLL_SECONDS / 100)
        except pulsar.PulsarException as error:
            tally.failed = tally.failed or type(error).__name__
        if tally.failed is not None:
            try:
                reported = self._error(tally.failed)
            except HeadgateError as error:  # the service that knows why may be gone as well
                reported = error
            raise NotAcknowledgedError(
                reported.message, acknowledged=tally.acknowledged, remedy=reported.remedy
            )

    def read(
        self, start: Place, *, committed: bool = True, follow: bool = False
    ) -> Generator[TopicRecord | None, None, None]:
        """The messages, each partition in its order.

        Readers leave no subscription behind. Without `follow` the partitions come one after the
        other, and each ends at the message that was its last one when the command began.
        """
        if not committed:
            raise UsageError(
                "a Pulsar service shows committed messages only", remedy="leave out --uncommitted"
            )
        parts = self._parts()
        if follow:
            yield from self._follow(parts, start)
        elif start != "latest":
            ends = [self._last(part) for part in parts]
            for number, (part, end) in enumerate(zip(parts, ends, strict=True)):
                if end is not None:
                    yield from self._range(number, part, start, end)

    def _range(
        self, number: int, part: PulsarTopicName, start: Place, end: MessagePlace
    ) -> Iterator[TopicRecord | None]:
        with self._reader(part, start) as reader:
            heard = time.monotonic()
            while True:
                message = next_message(reader, round(_POLL_SECONDS * 1000))
                if message is None:
                    # The end may be a message that no reader gets, of an aborted transaction.
                    if not reader.has_message_available():
                        return
                    if time.monotonic() - heard > _SILENCE_SECONDS:
                        raise HeadgateError(
                            f"{self._address} gives no more messages of partition {number}, "
                            f"although it has some up to {spell_place(end)}",
                            code="PULSAR",
                            remedy="try again; if it happens again, see the broker's log",
                        )
                    yield None
                    continue
                heard = time.monotonic()
                at = place_of(message)
                if at > end:
                    return
                if is_from(message, start):
                    yield topic_record(number, at, message)
                if at == end:
                    return

    def _follow(self, parts: list[PulsarTopicName], start: Place) -> Iterator[TopicRecord | None]:
        patience = max(1, _TURN_MILLIS // len(parts))
        with ExitStack() as stack:
            readers = [stack.enter_context(self._reader(part, start)) for part in parts]
            queried_at = time.monotonic()
            while True:
                quiet = True
                for number, reader in enumerate(readers):
                    for _ in range(_TURN_MESSAGES):  # and then the next one's turn
                        message = next_message(reader, patience)
                        if message is None:
                            break
                        quiet = False
                        if is_from(message, start):
                            yield topic_record(number, place_of(message), message)
                yield None
                if quiet and time.monotonic() - queried_at > _ANSWER_SECONDS:
                    self._parts()  # tells a quiet topic from a service that is gone
                    queried_at = time.monotonic()

    @contextmanager
    def _reader(self, part: PulsarTopicName, start: Place) -> Iterator[pulsar.Reader]:
        first = pulsar.MessageId.latest if start == "latest" else pulsar.MessageId.earliest
        try:
            reader = self._client.create_reader(str(part), first)
            try:
                if isinstance(start, datetime):
                    reader.seek(millis_of(start))
                yield reader
            finally:
                reader.close()
        except pulsar.PulsarException as error:
            raise self._error(type(error).__name__) from error

    def _last(self, part: PulsarTopicName) -> MessagePlace | None:
        """The last message of a partition; None if there is none."""
        if self._admin.internal(part)["numberOfEntries"] == 0:
            return None
        found = self._admin.last_message(part)
        return found if found[1] >= 0 else None

    def _parts(self) -> list[PulsarTopicName]:
        count = self._admin.partitions(self._topic)
        if count is None:
            raise self._missing()
        return [self._topic.partition(number) for number in range(count)] or [self._topic]

    def _retention(self) -> Retention | None:
        try:
            return self._admin.retention(self._topic)
        except PulsarAdminError as error:
            if error.reason is Reason.NOT_AUTHORISED:
                return None
            raise

    @cached_property
    def _client(self) -> pulsar.Client:
        client = self._access.connect(answer_seconds=_ANSWER_SECONDS)
        weakref.finalize(self, _close, client)
        return client

    def _place(self, record: Record, partitions: int) -> int:
        """The partition of a record: where Java's producers put its key, else each in turn."""
        return (key_hash(record.key) if record.key else next(self._turn)) % partitions

    def _producer(self, part: PulsarTopicName) -> pulsar.Producer:
        # A producer of the whole topic would ask us for each message where to put it, which takes
        # longer than to have one for each partition.
        producer = self._producers.get(part)
        if producer is None:
            producer = self._producers[part] = self._client.create_producer(
                str(part), batching_enabled=True, block_if_queue_full=True
            )
        return producer

    def _missing(self) -> NotFoundError:
        return NotFoundError(
            f"there is no topic at {self._address}",
            remedy=f"create it with headgate topic create {self._address}",
        )

    def _error(self, said: str) -> HeadgateError:
        """An error of Pulsar's client, by its name, as one that a person can act on."""
        if said in _REJECTED:
            return HeadgateError(
                f"not authorised for {self._address} ({said})",
                code="NOT_AUTHORISED",
                remedy="ask for access to the topic, or give another token with --option",
            )
        if said in _UNREACHABLE:
            return HeadgateError(
                f"no Pulsar broker is reachable at {self._access.url} ({said})",
                code="BROKER_UNREACHABLE",
                remedy="check the address, or start one with headgate broker start pulsar",
            )
        if said == "TopicNotFound":
            return self._missing()
        if said == "MessageTooBig":
            return HeadgateError(
                "a message is larger than the broker accepts",
                code="RECORD_TOO_LARGE",
                remedy="make the record smaller, or raise the brokers' maxMessageSize",
            )
        return HeadgateError(
            f"Pulsar failed at {self._address} ({said})",
            code="PULSAR",
            remedy="see the broker's log",
        )


def _check(wanted: NewTopic) -> None:
    """Refuse what a Pulsar topic cannot be."""
    if wanted.retention.compacted:
        raise UsageError(
            "a Pulsar topic keeps every message of a key, and --compact is not supported there",
            remedy="leave out --compact; a compacted view beside the messages is made by Pulsar's "
            "own tools",
        )
    if wanted.replication is not None:
        raise UsageError(
            "the replication of a Pulsar topic is set by its namespace",
            remedy="leave out --replication",
        )
    kept = wanted.retention.kept
    if kept is not None and kept % timedelta(minutes=1):
        raise UsageError(
            "--retention of a Pulsar topic must be whole minutes", remedy="round it to minutes"
        )


_closed: list[pulsar.Client] = []


def _close(client: pulsar.Client) -> None:
    with suppress(pulsar.PulsarException):
        client.close()
    # to take it down while its threads end may abort the process
    _closed.append(client)


def _ends(internal: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The first and the last entry of a partition.

    >>> _ends({"currentLedgerEntries": 0, "ledgers": [{"ledgerId": 7, "entries": 3},
    ...     {"ledgerId": 9, "entries": 0}]})
    ('7:0', '7:2')
    """
    sizes = [(ledger["ledgerId"], ledger["entries"]) for ledger in internal["ledgers"]]
    if sizes:  # of the one that is open, nobody has written down how many there are
        sizes[-1] = (sizes[-1][0], internal["currentLedgerEntries"] or sizes[-1][1])
    full = [(ledger, entries) for ledger, entries in sizes if entries > 0]
    if not full:
        return None, None
    return f"{full[0][0]}:0", f"{full[-1][0]}:{full[-1][1] - 1}"
