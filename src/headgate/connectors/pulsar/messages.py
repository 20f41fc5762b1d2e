"""Messages as commands show them: their places, and what of them belongs to a range."""

from __future__ import annotations

from datetime import datetime

import pulsar

from headgate.connectors.topic_client import Place, TopicRecord, as_text

MessagePlace = tuple[int, int, int]
"""Ledger, entry and place in the entry's batch (-1 without batch); later ones are larger."""


def next_message(reader: pulsar.Reader, patience: int) -> pulsar.Message | None:
    """The next message; None if none comes in time."""
    try:
        return reader.read_next(patience)
    except pulsar.Timeout:
        return None


def place_of(message: pulsar.Message) -> MessagePlace:
    """Where a message stands."""
    found = message.message_id()
    return found.ledger_id(), found.entry_id(), found.batch_index()


def spell_place(at: MessagePlace) -> str:
    """As people write it."""
    return ":".join(map(str, at))


def millis_of(when: datetime) -> int:
    """A time as a service counts it."""
    return max(0, int(when.timestamp() * 1000))


def is_from(message: pulsar.Message, start: Place) -> bool:
    """Whether it belongs to the requested range: a service finds only about where a time begins."""
    return not isinstance(start, datetime) or message.publish_timestamp() >= millis_of(start)


def topic_record(partition: int, at: MessagePlace, message: pulsar.Message) -> TopicRecord:
    """A message as commands show it."""
    key = message.partition_key() or None
    data = message.data()
    deleted = message.has_null_value() or (not data and key is not None)
    return TopicRecord(
        partition,
        spell_place(at),
        message.publish_timestamp(),
        key,
        None if deleted else as_text(data),
        tuple(message.properties().items()),
    )
