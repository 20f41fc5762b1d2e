"""An embedded topic as commands use it."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from headgate.base.errors import UsageError
from headgate.base.locks import file_lock
from headgate.connectors.log.files import TopicFiles
from headgate.connectors.records import Record
from headgate.connectors.topic_client import (
    AppendAll,
    NewTopic,
    PartitionFacts,
    Place,
    Retention,
    TopicClient,
    TopicFacts,
    TopicRecord,
    TopicTail,
)

_FOLLOW_SECONDS = 0.2


class LogTopic(TopicClient):
    """The client of a log topic's folder.

    >>> LogTopic("data/orders").exists()
    False
    """

    def __init__(self, path: str) -> None:
        self._files = TopicFiles(path)

    def exists(self) -> bool:
        return self._files.exists()

    def create(self, wanted: NewTopic) -> bool:
        if wanted.retention != Retention():
            raise UsageError(
                "a log topic keeps every record",
                remedy="leave out --retention and --compact, which are for brokers",
            )
        if wanted.replication is not None:
            raise UsageError(
                "a log topic is one folder, without copies",
                remedy="leave out --replication, which is for brokers",
            )
        if self.exists():
            return False
        self._files.create(wanted.partitions)
        return True

    def neighbours(self) -> Sequence[str]:
        folder = self._files.path.parent
        if not folder.is_dir():
            return []
        return [f"log:{path}" for path in sorted(folder.iterdir()) if TopicFiles(path).exists()]

    def partitions(self) -> int:
        return self._files.partitions()

    def facts(self) -> TopicFacts:
        first, end = self._files.start_offsets(), self._files.end_offsets()
        return TopicFacts(
            tuple(PartitionFacts(p, first[p], end[p], end[p] - first[p]) for p in sorted(end)),
            Retention(),
        )

    def append(self, records: Sequence[Record], *, partition: int | None = None) -> None:
        self._files.append(records, partition)

    @contextmanager
    def alone(self) -> Iterator[AppendAll]:
        with file_lock(self._files.path / "alone.lock"):
            # one file in one partition: it is renamed in, or it is not
            yield lambda records: self._append_as_one(records)

    def _append_as_one(self, records: Sequence[Record]) -> None:
        self._files.append([Record(r.value) for r in records], partition=0)

    def read(
        self, start: Place, *, committed: bool = True, follow: bool = False
    ) -> Generator[TopicRecord | None, None, None]:
        # A log shows records only when they are committed: there is nothing to leave out.
        offsets = self._at(start)
        while True:
            for r in self._files.read(offsets):
                offsets[r.partition] = r.offset + 1
                yield TopicRecord(r.partition, r.offset, r.timestamp_ms, r.key, r.value)
            if not follow:
                return
            yield None
            time.sleep(_FOLLOW_SECONDS)

    def tail(self, limit: int, *, since: datetime | None, seconds: float) -> TopicTail:
        if not self.exists():
            return TopicTail((), total=0)
        starts, ends = self._files.start_offsets(), self._files.end_offsets()
        begin = {part: max(starts.get(part, 0), end - limit) for part, end in ends.items()}
        found = [
            TopicRecord(r.partition, r.offset, r.timestamp_ms, r.key, r.value)
            for r in self._files.read(begin)
        ]
        found.sort(key=lambda record: (record.timestamp_ms or 0, record.offset))
        return TopicTail(tuple(found[-limit:]), total=sum(ends.values()))

    def _at(self, place: Place) -> dict[int, int]:
        """The offset of a place in each partition."""
        if place == "earliest":
            return self._files.start_offsets()
        if place == "latest":
            return self._files.end_offsets()
        return self._files.offsets_at(place)
