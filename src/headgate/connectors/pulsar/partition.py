"""One partition of a Pulsar topic as a job's driver sees it: its end, ranges, acknowledgement."""

from __future__ import annotations

import sys
from collections import deque
from contextlib import suppress
from statistics import fmean

import pulsar

from headgate.base.errors import HeadgateError
from headgate.connectors.pulsar.admin import PulsarAdmin
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.ids import START, Place
from headgate.connectors.pulsar.names import PulsarTopicName, address_of
from headgate.connectors.pulsar.range import PulsarFailure, failure
from headgate.failures import Report, explain

_ANSWER_MS = 20_000
_SAMPLES = 16
_TRIES = 3
_PREFETCH_BYTES = 16_000_000
_PREFETCH_MOST = 20_000
_silent: set[str] = set()
"""REST interfaces that did not answer this process: they are not queried for every partition."""


def first_places(access: PulsarAccess, topic: str) -> dict[str, str]:
    """The first message that is there, by partition; where a partition is empty, its end."""
    client = access.connect()
    found = {}
    try:
        for number, name in enumerate(client.get_topic_partitions(topic)):
            reader = client.create_reader(name, pulsar.MessageId.earliest, receiver_queue_size=1)
            first = None
            if has_more(reader):
                first = Place.of(reader.read_next(_ANSWER_MS).message_id())
            reader.close()
            first = first or _end_of_empty(access, name)
            if first is not None:
                found[str(number)] = str(first)
    except pulsar.PulsarException as error:
        raised = failure(error, address_of(access.url, topic))
        explained = explain(Report(raised.code, raised.fields))
        raise HeadgateError(
            explained.sentence, code=explained.reason.name, remedy=explained.remedy
        ) from error
    finally:
        client.shutdown()
    return found


def _end_of_empty(access: PulsarAccess, topic: str) -> Place | None:
    """Where an empty partition begins, if the REST interface tells.

    If it ever had messages, that is a ledger behind theirs.
    """
    try:
        ledgers = PulsarAdmin(access).internal(PulsarTopicName.parse(topic))["ledgers"]
    except HeadgateError:
        return None
    return Place(int(ledgers[0]["ledgerId"]), -1) if ledgers else None


def has_more(reader: pulsar.Reader) -> bool:
    """Whether there is a message behind those that a reader has given.

    The client was once seen to wait for its whole time-out for the answer of a broker that ran, so
    it asks twice. A broker that is gone does not answer the second time either.
    """
    try:
        return bool(reader.has_message_available())
    except pulsar.Timeout:
        return bool(reader.has_message_available())


class PulsarPartition:
    """Asks the broker, by readers that leave nothing behind, and by the durable subscription."""

    def __init__(
        self,
        client: pulsar.Client,
        access: PulsarAccess,
        topic: str,
        number: int,
        subscription: str | None,
    ) -> None:
        self.topic = topic
        self.number = number
        self._client = client
        self._access = access
        self._subscription = subscription
        self._consumer: pulsar.Consumer | None = None
        self._acknowledged = START
        self._tail: pulsar.Reader | None = None
        self._last = START
        self._sizes: deque[int] = deque(maxlen=_SAMPLES)
        self._lengths: deque[int] = deque(maxlen=_SAMPLES)

    def keep(self, after: Place | None, *, from_the_end: bool = False) -> None:
        """Let the broker keep what is not read from now on; `after` is where a run goes on.

        A run that begins at the end wants only what comes.
        Raises if messages behind that place may be gone: nobody kept them.
        """
        if after is not None and after != START and not self._was_kept():
            self._check_is_there(after)
        if self._subscription is not None and self._consumer is None:
            self._subscribe(from_the_end=from_the_end)

    def _was_kept(self) -> bool:
        """Whether the subscription is there already; if the REST interface is silent, we trust."""
        if self._subscription is None:
            return False
        if self._access.admin_url in _silent:
            return True
        try:
            stats = PulsarAdmin(self._access).internal(PulsarTopicName.parse(self.topic))
        except HeadgateError:
            _silent.add(self._access.admin_url)
            return True
        return self._subscription in stats.get("cursors", {})

    def last(self) -> Place:
        """The last message; START if there is none."""
        if self._consumer is not None:
            last = Place.of(self._consumer.get_last_message_id())
            return START if last.entry < 0 else last
        if self._tail is not None and not has_more(self._tail):
            return self._last
        self._close_tail()
        reader = self._read(pulsar.MessageId.latest)
        if has_more(reader):
            self._last = self._next(reader)
            self._tail = reader  # it knows when there is something newer
        else:
            reader.close()
        return self._last

    def at_time(self, millis: int) -> Place:
        """The place before the first message that was published at that time or later."""
        reader = self._read(pulsar.MessageId.earliest)
        try:
            reader.seek(millis)
            while has_more(reader):
                message = self._take(reader)
                # a start by time was once seen to begin with the first message: a reader may have
                # one from before the seek
                if message.publish_timestamp() >= millis:
                    return Place.of(message.message_id()).before()
            return self.last()
        finally:
            reader.close()

    def end(self, after: Place, last: Place, rows: int) -> Place:
        """An end, between the two, of about so many rows; always that of an entry.

        Only entries can be counted without reading them, and only within a ledger. How many
        messages an entry has is estimated from those that were looked at.
        """
        self._sizes.append(max(last.batch, 0) + 1)
        if after == START or len(self._sizes) == 1:
            first = self._whole_entry(after)
            if first is None or first >= last:
                return last
            if after == START:
                after = first
            if after.ledger == last.ledger:
                self._whole_entry(Place(after.ledger, (after.entry + last.entry) // 2))
        found: Place | None = None
        for _ in range(_TRIES):
            entries = max(1, int(rows / fmean(self._sizes)))
            if after.ledger == last.ledger and last.entry - after.entry <= entries:
                return last
            found = self._whole_entry(Place(after.ledger, after.entry + entries))
            if found is None or found >= last:
                return last
            # what was found there may tell that entries are larger than those looked at before
            if (found.entry - after.entry) * fmean(self._sizes) <= 1.5 * rows:
                break
        return found or last

    @property
    def prefetch(self) -> int:
        """How many messages a reader may have waiting, by the lengths of those that were seen."""
        if not self._lengths:
            return 1000
        return max(10, min(_PREFETCH_MOST, int(_PREFETCH_BYTES / max(1, fmean(self._lengths)))))

    def _check_is_there(self, place: Place) -> None:
        """Raise if a message that was read is gone: those behind it may be gone, too."""
        reader = self._read(place.id(self.number))
        try:
            first = self._next(reader) if has_more(reader) else None
        finally:
            reader.close()
        first = first or _end_of_empty(self._access, self.topic)
        if first is not None and first.in_entry > place.in_entry:
            raise PulsarFailure(
                "OFFSET_GONE",
                self._where,
                f"{place} was the last message that was read, and the topic begins at {first}: "
                "give the source a subscription, or the topic a longer retention",
            )

    def acknowledge(self, place: Place) -> None:
        """Tell the subscription that all up to the end of this entry is done with."""
        if place <= self._acknowledged:
            return
        if self._consumer is None and not self._subscribe():
            return
        assert self._consumer is not None
        # the entry as a whole: a number within a batch would be the client's own bookkeeping
        whole = pulsar.MessageId(self.number, place.ledger, place.entry, -1)
        self._consumer.acknowledge_cumulative(whole)
        self._acknowledged = place

    def close(self) -> None:
        """Leave the broker; the subscription stays."""
        self._close_tail()
        if self._consumer is not None:
            with suppress(pulsar.PulsarException):  # its connection may be gone
                self._consumer.close()
            self._consumer = None

    @property
    def _where(self) -> str:
        return address_of(self._access.url, self.topic)

    def _subscribe(self, *, from_the_end: bool = False) -> bool:
        position = pulsar.InitialPosition
        try:
            self._consumer = self._client.subscribe(
                self.topic,
                self._subscription,
                receiver_queue_size=1,
                initial_position=position.Latest if from_the_end else position.Earliest,
            )
        except pulsar.ConsumerBusy:
            # the driver before us may not be gone yet; nothing is lost by acknowledging later
            print(
                f"headgate: another consumer has the subscription '{self._subscription}' of "
                f"{self._where}; what is read is not acknowledged until it lets go",
                file=sys.stderr,
            )
            return False
        return True

    def _whole_entry(self, place: Place) -> Place | None:
        """The last message of the first entry that is at this place or behind it."""
        reader = self._read(place.id(self.number), queue=1000)
        try:
            found: Place | None = None
            while has_more(reader):
                at = self._next(reader)
                if found is not None and at.in_entry != found.in_entry:
                    break
                found = at
                if at.batch < 0:
                    break
        finally:
            reader.close()
        if found is not None:
            self._sizes.append(max(found.batch, 0) + 1)
        return found

    def _next(self, reader: pulsar.Reader) -> Place:
        return Place.of(self._take(reader).message_id())

    def _take(self, reader: pulsar.Reader) -> pulsar.Message:
        message = reader.read_next(_ANSWER_MS)
        self._lengths.append(len(message.data()))
        return message

    def _read(self, id: pulsar.MessageId, queue: int = 1) -> pulsar.Reader:
        return self._client.create_reader(
            self.topic, id, receiver_queue_size=queue, start_message_id_inclusive=True
        )

    def _close_tail(self) -> None:
        if self._tail is not None:
            with suppress(pulsar.PulsarException):  # its connection may be gone
                self._tail.close()
            self._tail = None
