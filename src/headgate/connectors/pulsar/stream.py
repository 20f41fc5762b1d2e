"""A Pulsar topic as a Spark Python data source: where each batch ends, and what is acknowledged."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pulsar
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from headgate.connectors.pulsar.client import ACCESS_OPTIONS, PulsarAccess
from headgate.connectors.pulsar.ids import START, Place
from headgate.connectors.pulsar.made import MadeOnce
from headgate.connectors.pulsar.names import address_of
from headgate.connectors.pulsar.partition import PulsarPartition
from headgate.connectors.pulsar.range import PulsarFailure, Range, failure, read_range

FORMAT = "headgate_pulsar"
TYPES = {
    "key": "STRING", "value": "BINARY", "partition": "INT", "offset": "BIGINT",
    "position": "BIGINT", "timestamp": "TIMESTAMP", "topic": "STRING", "message_id": "STRING",
    "properties": "MAP<STRING, STRING>", "event_time": "TIMESTAMP",
}  # fmt: skip
"""All columns of a message; those from `topic` on only if requested."""
ALWAYS = tuple(TYPES)[:6]
_FIRST = "first"

Offset = dict[str, Any]
"""`{"0": "12:3:1"}`, the last message that was read of each partition.

The offset of the first batch also has `first`: where reading began. It is in Spark's offset log
then, so that a replay of that batch begins there, too, whatever "latest" means by then.
"""


@dataclass(frozen=True)
class ReaderOptions:
    """The options of the source."""

    access: PulsarAccess
    topic: str
    columns: Sequence[str]
    start: str | Mapping[str, str]
    max_records: int | None
    subscription: str | None
    compacted: bool
    lossy: bool

    @staticmethod
    def of(options: Mapping[str, str]) -> ReaderOptions:
        """Read the options."""
        access = {name: options[name] for name in ACCESS_OPTIONS if name in options}
        limit = options.get("max_records")
        return ReaderOptions(
            PulsarAccess(options["url"], access),
            options["topic"],
            options["columns"].split(","),
            json.loads(options["start"]),
            int(limit) if limit else None,
            options.get("subscription"),
            options.get("compacted") == "true",
            options.get("on_data_loss") == "continue",
        )


class PulsarDataSource(DataSource):
    """Messages of a topic as rows."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return ", ".join(f"{name} {TYPES[name]}" for name in ReaderOptions.of(self.options).columns)

    def streamReader(self, schema: StructType) -> PulsarStreamReader:
        return PulsarStreamReader(ReaderOptions.of(self.options))


class RangeToRead(InputPartition):
    """A task's part of a batch."""

    def __init__(self, wanted: Range) -> None:
        self.wanted = wanted


class PulsarStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Lives in a process beside the driver for as long as the query runs."""

    def __init__(self, options: ReaderOptions) -> None:
        self._options = options
        self._client: pulsar.Client | None = None
        self._partitions: dict[int, PulsarPartition] = {}
        self._until: dict[int, Place] | None = None
        self._kept: set[int] = set()
        self._made = MadeOnce(options.access, options.topic)

    def initialOffset(self) -> Offset:
        # the first batch says where it began
        return {}

    def getDefaultReadLimit(self) -> ReadLimit:
        limit = self._options.max_records
        return ReadAllAvailable() if limit is None else ReadMaxRows(limit)

    def prepareForTriggerAvailableNow(self) -> None:
        with self._asking():
            self._until = {n: p.last() for n, p in self._find_partitions().items()}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        with self._asking():
            partitions = self._find_partitions()
            self._keep(partitions, start, begins=not start)
            places = self._begin(partitions) if not start else _places(start)
            if start:
                # Spark asks for a next batch when it has committed the one that ended here
                self._acknowledge(places)
            lasts = {number: partition.last() for number, partition in partitions.items()}
            self._made.check(places, lasts)
            rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
            share = None if rows is None else max(1, rows // len(partitions))
            ends = {
                number: self._end(
                    partition, places.get(number, START), lasts[number], share, is_first=not start
                )
                for number, partition in partitions.items()
            }
        offset: Offset = {
            str(n): str(end) for n, end in sorted(ends.items()) if n in places or end != START
        }
        if not start:
            return {**offset, _FIRST: {str(n): str(place) for n, place in sorted(places.items())}}
        if any(start.get(n) != end for n, end in offset.items()):
            return offset
        if self._until is not None:
            # all is read, and this process is about to be killed: it must owe the broker nothing
            for partition in partitions.values():
                partition.close()
        return start

    def partitions(self, start: Offset, end: Offset) -> Sequence[RangeToRead]:
        after = _places(start or end[_FIRST])
        with self._asking():
            self._keep(self._find_partitions(), start)
            return [
                RangeToRead(
                    Range(
                        self._options.access,
                        self._partition(number).topic,
                        number,
                        after.get(number, START),
                        place,
                        self._options.compacted,
                        self._partition(number).prefetch,
                    )
                )
                for number, place in _places(end).items()
                if after.get(number, START) < place
            ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        assert isinstance(partition, RangeToRead)
        return read_range(partition.wanted, self._options.columns)

    def commit(self, end: Offset) -> None:
        with self._asking():
            self._acknowledge(_places(end))

    def stop(self) -> None:
        for partition in self._partitions.values():
            partition.close()
        if self._client is not None:
            self._client.shutdown()

    def __getstate__(self) -> dict[str, Any]:
        """For executors, which only read."""
        return {**self.__dict__, "_client": None, "_partitions": {}}

    def _keep(
        self, partitions: Mapping[int, PulsarPartition], start: Offset, *, begins: bool = False
    ) -> None:
        """See, once, that nothing is gone that a run still wants to read, and keep it so."""
        places = {} if self._options.compacted or self._options.lossy else _places(start)
        # a run that goes on wants what came meanwhile, also from partitions that are new to it
        from_the_end = begins and self._options.start == "latest"
        for number, partition in partitions.items():
            if number not in self._kept:
                partition.keep(places.get(number), from_the_end=from_the_end)
                self._kept.add(number)

    def _find_partitions(self) -> dict[int, PulsarPartition]:
        """All partitions that the topic has now."""
        if self._client is None:
            self._client = self._options.access.connect()
        for number, name in enumerate(self._client.get_topic_partitions(self._options.topic)):
            if number not in self._partitions:
                self._partitions[number] = PulsarPartition(
                    self._client,
                    self._options.access,
                    name,
                    number,
                    self._options.subscription,
                )
        return dict(self._partitions)

    def _partition(self, number: int) -> PulsarPartition:
        if number not in self._partitions:
            self._find_partitions()
        if number not in self._partitions:
            raise PulsarFailure(
                "OFFSET_GONE", self._where, f"partition {number} was read, but is not there"
            )
        return self._partitions[number]

    def _begin(self, partitions: Mapping[int, PulsarPartition]) -> dict[int, Place]:
        """Where a new run begins: behind these places."""
        start = self._options.start
        if isinstance(start, Mapping):
            for number in start:
                if int(number) not in partitions:
                    raise PulsarFailure(
                        "TOPIC_MISSING", f"{self._where}-partition-{number}", "it has a start"
                    )
            given = {int(n): Place.parse(text).before() for n, text in start.items()}
            return {number: given.get(number, START) for number in partitions}
        if start == "earliest":
            return dict.fromkeys(partitions, START)
        if start == "latest":
            return {number: partition.last() for number, partition in partitions.items()}
        return {number: partition.at_time(int(start)) for number, partition in partitions.items()}

    def _end(
        self, partition: PulsarPartition, after: Place, last: Place, rows: int | None, *,
        is_first: bool,
    ) -> Place:  # fmt: skip
        if START != last < after and not self._options.lossy:
            raise PulsarFailure(
                "OFFSET_GONE",
                self._where,
                f"the start of partition {partition.number} is behind its end, {last}"
                if is_first
                else f"partition {partition.number} was read up to {after}, but ends at {last}: "
                "was the topic deleted and created again?",
            )
        if self._until is not None:
            last = min(last, self._until.get(partition.number, START))
        if last <= after:
            return after
        return last if rows is None else partition.end(after, last, rows)

    def _acknowledge(self, places: Mapping[int, Place]) -> None:
        if self._options.subscription is not None:
            for number, place in places.items():
                if place != START:
                    self._partition(number).acknowledge(place)

    @property
    def _where(self) -> str:
        return address_of(self._options.access.url, self._options.topic)

    def _asking(self) -> _Asking:
        return _Asking(self._where)


class _Asking:
    """Turns errors of Pulsar's client into ours, which the driver understands."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, pulsar.PulsarException):
            raise failure(error, self._where) from error


def _places(offset: Mapping[str, Any]) -> dict[int, Place]:
    return {int(n): Place.parse(text) for n, text in offset.items() if n != _FIRST}
