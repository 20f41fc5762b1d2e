"""Reading one range of a Pulsar partition as Arrow batches, on an executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headgate.base.coded import CodedFailure
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.ids import Place, to_number
from headgate.connectors.pulsar.names import address_of

if TYPE_CHECKING:
    import pulsar
    import pyarrow as pa

ROWS_A_BATCH, BYTES_A_BATCH = 10_000, 8_000_000
_PATIENCE_MS = 20_000
_SILENCES = 6


class PulsarFailure(CodedFailure):
    """What a reader could not do, as one line that names the reason for the driver."""

    def __init__(self, code: str, where: str, message: str) -> None:
        super().__init__(code, {"system": "pulsar", "topic": where, "text": message})


@dataclass(frozen=True)
class Range:
    """The messages behind `after` up to and with `end`, of one partition."""

    access: PulsarAccess
    topic: str
    partition: int
    after: Place
    end: Place
    compacted: bool = False
    prefetch: int = 1000
    """How many messages may wait in the client."""

    @property
    def where(self) -> str:
        """The partition as people recognise it."""
        return address_of(self.access.url, self.topic)


def failure(error: Exception, where: str) -> PulsarFailure:
    """An error of Pulsar's client as one of ours."""
    import _pulsar as p

    said = str(error).removeprefix("Pulsar error: ")
    if isinstance(error, p.TopicNotFound):
        return PulsarFailure("TOPIC_MISSING", where, said)
    if isinstance(error, p.AuthenticationError | p.AuthorizationError):
        return PulsarFailure("NOT_AUTHORISED", where, said)
    lost = (p.Timeout, p.ConnectError, p.NotConnected, p.LookupError, p.ServiceUnitNotReady)
    if isinstance(error, (*lost, p.AlreadyClosed, p.TooManyLookupRequestException)):
        return PulsarFailure("BROKER_UNREACHABLE", where, said)
    return PulsarFailure("PULSAR", where, said)


_clients: dict[tuple[str, tuple[tuple[str, str], ...]], pulsar.Client] = {}


def shared_client(access: PulsarAccess) -> pulsar.Client:
    """The process's own client of a service: Python workers serve many tasks, one at a time."""
    key = (access.url, tuple(sorted(access.options.items())))
    if key not in _clients:
        _clients[key] = access.connect()
    return _clients[key]


def forget_client(access: PulsarAccess) -> None:
    """Let the next task connect anew."""
    client = _clients.pop((access.url, tuple(sorted(access.options.items()))), None)
    if client is not None:
        client.shutdown()


def read_range(wanted: Range, columns: Sequence[str]) -> Iterator[Any]:
    """The messages of a range as Arrow batches with these columns.

    The messages are exactly those of the range, however often it is read; if some of them are
    gone, the reading fails.
    """
    import pulsar

    if wanted.after >= wanted.end:
        return
    try:
        reader = shared_client(wanted.access).create_reader(
            wanted.topic,
            wanted.after.id(wanted.partition),
            receiver_queue_size=wanted.prefetch,
            is_read_compacted=wanted.compacted,
        )
    except pulsar.PulsarException as error:
        forget_client(wanted.access)
        raise failure(error, wanted.where) from error
    try:
        yield from _batches(reader, wanted, columns)
    except pulsar.PulsarException as error:
        forget_client(wanted.access)
        raise failure(error, wanted.where) from error
    finally:
        with suppress(pulsar.PulsarException):  # its connection may be gone
            reader.close()


def _batches(reader: pulsar.Reader, wanted: Range, columns: Sequence[str]) -> Iterator[Any]:
    """The hot path: Pulsar's own objects, and nothing for a message that an entry can tell.

    Every call on a message costs a good part of a microsecond, and so does every wrapper.
    """
    after, end = wanted.after, wanted.end
    next_message: Callable[[int], Any] = reader._reader.read_next
    rows = _Rows(wanted, columns)
    entry: tuple[int, int] | None = None
    at_border = False
    place: tuple[int, int, int] = after
    while place < end:
        message = _wait(reader, next_message, wanted, place)
        if message is None:
            break
        id = message.message_id()
        place = (id.ledger_id(), id.entry_id(), id.batch_index())
        if place[:2] != entry:
            entry = place[:2]
            at_border = entry == after.in_entry or entry >= end.in_entry
        if at_border:
            if place <= after:
                continue  # a batch is sent whole, also if we begin in its middle
            if place > end:
                if entry != end.in_entry and not wanted.compacted:
                    raise _gone(wanted, f"{end} is not there, but {Place(*place)} is")
                break
        if wanted.compacted and not message.partition_key() and not message.length():
            continue  # what compaction took out of a batch is left in it as a blank
        if rows.add(message, place):
            yield rows.take()
    if rows.count:
        yield rows.take()


def _wait(
    reader: pulsar.Reader,
    next_message: Callable[[int], Any],
    wanted: Range,
    at: tuple[int, int, int],
) -> Any:
    """The next message, or None if a compacted topic has no more of the range."""
    import _pulsar

    for _ in range(_SILENCES):
        if wanted.compacted and not reader.has_message_available():
            return None
        try:
            return next_message(_PATIENCE_MS)
        except _pulsar.Timeout:
            # asks the broker: raises if it is not there
            if not reader.has_message_available():
                raise _gone(wanted, f"the topic ends at {Place(*at)}") from None
    raise PulsarFailure(
        "BROKER_UNREACHABLE", wanted.where, f"no message after {Place(*at)} came in time"
    )


def _gone(wanted: Range, why: str) -> PulsarFailure:
    return PulsarFailure(
        "OFFSET_GONE", wanted.where, f"messages up to {wanted.end} were to be read, but {why}"
    )


class _Rows:
    """Columns that grow by one message at a time."""

    def __init__(self, wanted: Range, columns: Sequence[str]) -> None:
        self._partition = wanted.partition
        self._topic = wanted.topic
        self._columns = columns
        self._position = 0
        self._extra = [name for name in columns if name in _PARTS]
        self._start()

    def _start(self) -> None:
        self.count = 0
        self._bytes = 0
        self._values: list[bytes | None] = []
        self._keys: list[str | None] = []
        self._times: list[int] = []
        self._ids: list[tuple[int, int, int]] = []
        self._parts: dict[str, list[Any]] = {name: [] for name in self._extra}

    def add(self, message: Any, id: tuple[int, int, int]) -> bool:
        """One row more; whether the batch is full."""
        key, value = message.partition_key(), message.data()
        # Pulsar's sign for "this key is deleted" is a message without a value
        self._values.append(value if value or not key else None)
        self._keys.append(key or None)
        self._times.append(message.publish_timestamp())
        self._ids.append(id)
        for name in self._extra:
            self._parts[name].append(_PARTS[name](message))
        self.count += 1
        self._bytes += len(value)
        return self.count >= ROWS_A_BATCH or self._bytes >= BYTES_A_BATCH

    def take(self) -> pa.RecordBatch:
        """The rows as a batch; what follows is for the next."""
        import numpy as np
        import pyarrow as pa

        def times(millis: list[Any]) -> Any:
            made = pa.array(np.array(millis, dtype="int64") * 1000)
            return made.cast(pa.timestamp("us", "UTC"))

        first = self._position
        self._position += self.count
        columns: Mapping[str, Callable[[], Any]] = {
            "key": lambda: pa.array(self._keys, pa.string()),
            "value": lambda: pa.array(self._values, pa.binary()),
            "partition": lambda: pa.array(np.full(self.count, self._partition, dtype="int32")),
            "offset": lambda: pa.array([to_number(*id) for id in self._ids], pa.int64()),
            "position": lambda: pa.array(np.arange(first, self._position)),
            "timestamp": lambda: times(self._times),
            "topic": lambda: pa.array([self._topic] * self.count, pa.string()),
            "message_id": lambda: pa.array([str(Place(*id)) for id in self._ids], pa.string()),
            "properties": lambda: pa.array(
                self._parts["properties"], pa.map_(pa.string(), pa.string())
            ),
            "event_time": lambda: pa.array(
                [t * 1000 if t else None for t in self._parts["event_time"]], pa.int64()
            ).cast(pa.timestamp("us", "UTC")),
        }
        batch = pa.RecordBatch.from_arrays([columns[n]() for n in self._columns], self._columns)
        self._start()
        return batch


_PARTS: Mapping[str, Callable[[Any], Any]] = {
    "properties": lambda message: list(message.properties().items()),
    "event_time": lambda message: message.event_timestamp(),
}
