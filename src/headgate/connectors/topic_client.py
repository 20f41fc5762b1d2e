"""What can be done with a topic wherever it lives, and which client an address gets."""

from __future__ import annotations

import base64
import time
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Literal, Protocol, TypeAlias

from headgate.base.durations import spell_duration
from headgate.base.errors import HeadgateError, UsageError
from headgate.connectors.records import Record

Place: TypeAlias = Literal["earliest", "latest"] | datetime
"""Where reading begins; a time means the first record at or after it."""

Offset: TypeAlias = int | str
"""A record's place in its partition: a number, or Pulsar's `ledger:entry:batch`."""


AppendAll: TypeAlias = Callable[[Sequence[Record]], None]


@dataclass(frozen=True)
class TopicRecord:
    """A record as a topic holds it; bytes that are not text read `base64:...`."""

    partition: int
    offset: Offset
    timestamp_ms: int | None
    key: str | None
    value: str | None
    headers: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True)
class Retention:
    """How long records stay.

    >>> str(Retention(timedelta(days=7))), str(Retention(None)), str(Retention(compacted=True))
    ('7 days', 'infinite', 'compacted')
    """

    kept: timedelta | None = None
    """None is for ever."""
    compacted: bool = False
    """Only the newest record of each key stays."""
    most_bytes: int | None = None
    """What a partition holds at most."""

    def __str__(self) -> str:
        limits = [spell_duration(self.kept)] if self.kept is not None else []
        if self.most_bytes is not None:
            limits.append(f"{self.most_bytes:,} bytes a partition")
        parts = ["compacted"] if self.compacted else []
        if limits:
            parts.append(" or ".join(limits))
        return ", ".join(parts) or "infinite"

    def words(self) -> str:
        """The same in a sentence.

        >>> Retention(None).words(), Retention(timedelta(days=7)).words()
        ('kept for ever', 'kept for 7 days')
        """
        if self == Retention():
            return "kept for ever"
        if self.kept == timedelta(0):
            return "kept until it is acknowledged"
        return str(self) if self.compacted else f"kept for {self}"


@dataclass(frozen=True)
class NewTopic:
    """A topic that is wanted; what is None is left to the system that holds it."""

    partitions: int
    retention: Retention = field(default_factory=Retention)
    replication: int | None = None


@dataclass(frozen=True)
class PartitionFacts:
    """A partition's offsets; the end offset is the one behind the last record."""

    partition: int
    first_offset: int
    end_offset: int
    records: int


@dataclass(frozen=True)
class EntryFacts:
    """A partition where nobody counts records, but entries: one may hold a batch of them."""

    partition: int
    first_id: str | None
    last_id: str | None
    entries: int
    bytes: int


@dataclass(frozen=True)
class TopicFacts:
    """A topic as it is."""

    partitions: tuple[PartitionFacts, ...] | tuple[EntryFacts, ...]
    retention: Retention | None
    """None if one may not look."""
    replication: int | None = None
    leaders: int | None = None
    """How many partitions have a leader, which takes their records."""


@dataclass(frozen=True)
class TopicTail:
    """The newest records of a topic, the newest last."""

    records: tuple[TopicRecord, ...]
    total: int | None = None
    """How many records the topic holds, where that is known."""
    cut: bool = False
    """Whether there was not enough time to read to the end."""


class NotAcknowledgedError(HeadgateError):
    """Some of the records were not accepted; the message says how many were.

    >>> print(NotAcknowledgedError("the topic is full", acknowledged=2))
    the topic is full; 2 records were acknowledged
    """

    code = "NOT_ACKNOWLEDGED"

    def __init__(self, why: str, *, acknowledged: int, remedy: str | None = None) -> None:
        self.why = why
        self.acknowledged = acknowledged
        noun = "record was" if acknowledged == 1 else "records were"
        super().__init__(f"{why}; {acknowledged:,} {noun} acknowledged", remedy=remedy)

    def after(self, acknowledged: int) -> NotAcknowledgedError:
        """The same error, when other records had been acknowledged before."""
        return NotAcknowledgedError(
            self.why, acknowledged=acknowledged + self.acknowledged, remedy=self.remedy
        )


class TopicClient(Protocol):
    """One topic, for commands. A topic that is not there is a NotFoundError."""

    def exists(self) -> bool:
        """Whether the topic is there."""

    def create(self, wanted: NewTopic) -> bool:
        """Make the topic; False if it was there already, and is left as it is."""

    def neighbours(self) -> Sequence[str]:
        """Addresses of the topics beside it: those of the same folder, cluster or namespace."""

    def partitions(self) -> int:
        """How many partitions it has."""

    def facts(self) -> TopicFacts:
        """Partitions, what is in them, and retention."""

    def append(self, records: Sequence[Record], *, partition: int | None = None) -> None:
        """Append records, and return when all of them are acknowledged."""

    def alone(self) -> AbstractContextManager[AppendAll]:
        """Append as the only one who does it so: what is given at once is there as one, or not.

        When it begins, nothing of one who was killed in the middle is still on its way.
        """
        raise UsageError(
            "a Pulsar topic cannot be appended to so that nothing comes twice",
            remedy="use a topic of Kafka, or a log",
        )

    def read(
        self, start: Place, *, committed: bool = True, follow: bool = False
    ) -> Generator[TopicRecord | None, None, None]:
        """The records up to the end as it is now, or for good; None when it has to wait.

        The end of committed records leaves open transactions out.
        """

    def tail(self, limit: int, *, since: datetime | None, seconds: float) -> TopicTail:
        """The last records, of those that came `since` then, read for at most so many seconds.

        A topic that finds its end without reading up to it needs neither of the two; others give
        nothing if `since` is not known.
        """
        if since is None:
            return TopicTail(())
        kept: deque[TopicRecord] = deque(maxlen=limit)
        ends = time.monotonic() + seconds
        with closing(self.read(since)) as records:
            for record in records:
                if record is not None:
                    kept.append(record)
                if time.monotonic() >= ends:
                    return TopicTail(tuple(kept), cut=True)
        return TopicTail(tuple(kept))


def as_text(data: bytes | str | None) -> str | None:
    """Bytes as text, or in base64 if they are none.

    A text that begins like base64 is written so as well: the bytes can be had back from any.

    >>> as_text("é".encode()), as_text(bytes([255])), as_text(b"base64:")
    ('é', 'base64:/w==', 'base64:YmFzZTY0Og==')
    """
    if data is None or isinstance(data, str):
        return data
    if not data.startswith(_ENCODED):
        with suppress(UnicodeDecodeError):
            return data.decode()
    return (_ENCODED + base64.b64encode(data)).decode()


_ENCODED = b"base64:"
