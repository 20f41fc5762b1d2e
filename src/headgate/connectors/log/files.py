"""A log topic's folder, read and appended to without Spark, beside running jobs.

<topic>/topic.json                                   {"version":1,"partitions":N,"id":...}
<topic>/partition-00000/<base>-<count>-<millis>.jsonl         a line is a value
<topic>/partition-00000/<base>-<count>-<millis>.keyed.jsonl   a line is a key, TAB, a value
<topic>/_writers/<id>.json                           the last batch of an exactly-once writer
<topic>/_staging/                                    files that are not visible yet
<topic>/append.lock                                  held while offsets are given out
"""

from __future__ import annotations

import json
import os
import time
import uuid
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

from headgate.base.errors import HeadgateError, NotFoundError, UsageError
from headgate.base.locks import file_lock
from headgate.connectors.log.format import LogRecord, Segment, from_line, partition_of, to_line
from headgate.connectors.records import Record

_SEGMENT_RECORDS = 500_000
_ATTEMPTS = 12

# A POSIX lock belongs to the process, so the threads of this one exclude each other here.


__all__ = ["LogRecord", "Record", "Segment", "TopicFiles", "partition_of"]


@dataclass
class _Staged:
    """A file that is being written aside, for one partition."""

    path: Path
    partition: int
    keyed: bool
    file: BinaryIO
    count: int = 0

    def close(self) -> None:
        """Make what was written durable."""
        if not self.file.closed:
            self.file.flush()
            os.fsync(self.file.fileno())
            self.file.close()


@dataclass(frozen=True)
class TopicFiles:
    """A log topic in a folder.

    >>> topic = TopicFiles("data/orders")  # doctest: +SKIP
    >>> topic.create(partitions=2)  # doctest: +SKIP
    >>> topic.append([Record('{"id": 1}', key="1")])  # doctest: +SKIP
    {0: 1}
    """

    path: Path
    _root: Path = field(init=False, repr=False, compare=False)

    def __init__(self, path: str | os.PathLike[str]) -> None:
        object.__setattr__(self, "path", Path(path))
        object.__setattr__(self, "_root", Path(path).absolute())

    def exists(self) -> bool:
        """Whether there is a topic in the folder."""
        return (self._root / "topic.json").is_file()

    def create(self, partitions: int = 1) -> None:
        """Make the topic, empty; refuse if it is there."""
        if partitions < 1:
            raise UsageError(
                "a topic must have at least one partition",
                got=str(partitions),
                remedy="give 1 or more",
            )
        self._root.mkdir(parents=True, exist_ok=True)
        with self._locked():
            if self.exists():
                raise UsageError(
                    f"a topic already exists at log:{self.path}",
                    remedy="choose another path, or append to this one",
                )
            for partition in range(partitions):
                self._folder(partition).mkdir(exist_ok=True)
            (self._root / "_staging").mkdir(exist_ok=True)
            # a topic that is deleted and made again has another one
            settings = {"version": 1, "partitions": partitions, "id": str(uuid.uuid4())}
            aside = self._root / f".topic.json.{uuid.uuid4()}"
            with open(aside, "w", encoding="utf-8") as file:
                json.dump(settings, file, separators=(",", ":"))
                file.flush()
                os.fsync(file.fileno())
            aside.rename(self._root / "topic.json")
            _sync_folder(self._root)

    def ensure(self) -> bool:
        """Make the topic with one partition unless it is there; whether it was made."""
        if self.exists():
            return False
        try:
            self.create()
        except UsageError:  # somebody else was faster
            return False
        return True

    def partitions(self) -> int:
        """How many partitions the topic has."""
        return int(self._settings()["partitions"])

    def id(self) -> str:
        """What tells the topic from another one in the same folder; empty for an old one."""
        return str(self._settings().get("id", ""))

    def _settings(self) -> dict[str, Any]:
        try:
            text = (self._root / "topic.json").read_text(encoding="utf-8")
        except (FileNotFoundError, NotADirectoryError):
            raise NotFoundError(
                f"there is no topic at log:{self.path}",
                remedy=f"create it with `headgate topic create log:{self.path}`",
            ) from None
        found: dict[str, Any] = json.loads(text)
        return found

    def segments(self, partition: int) -> list[Segment]:
        """The partition's segments in offset order, without holes."""
        self._check(partition)
        # A listing that runs while files are renamed in may show a later one and miss an earlier
        # one; the next listing shows both. Only a hole that stays is an error.
        missing: list[int] = []
        for attempt in range(_ATTEMPTS):
            if attempt > 1:
                time.sleep(attempt * 0.005)
            names = self._names(self._folder(partition))
            found = sorted(s for s in map(Segment.parse, names) if s is not None)
            missing = [a.end for a, b in pairwise(found) if a.end != b.base]
            if not missing:
                return found
        raise HeadgateError(
            f"partition {partition} of log:{self.path} has a hole: no segment starts at offset"
            f" {missing[0]}",
            code="TOPIC_DAMAGED",
            remedy="put the missing file back",
        )

    def start_offsets(self) -> dict[int, int]:
        """Partition -> the first offset that can be read."""
        return {p: s[0].base if s else 0 for p, s in self._all().items()}

    def end_offsets(self) -> dict[int, int]:
        """Partition -> the offset behind the last record."""
        return {p: s[-1].end if s else 0 for p, s in self._all().items()}

    def offsets_at(self, when: datetime | int) -> dict[int, int]:
        """Partition -> the offset of the first record appended at or after a time.

        A time is a datetime or milliseconds since 1970.
        """
        millis = _millis(when)
        found = {}
        for partition, segments in self._all().items():
            at = bisect_left(segments, millis, key=lambda s: s.millis)
            later = segments[at:]
            found[partition] = later[0].base if later else segments[-1].end if segments else 0
        return found

    def append(self, records: Iterable[Record], partition: int | None = None) -> dict[int, int]:
        """Append records durably and give back the new end offset of each partition written to.

        1. Without `partition`, a record with a key goes to its key's partition, others in turn.
        2. The records are written aside, and synced to the disk.
        3. Under the topic's lock they get their offsets and are renamed in.
        """
        count = self.partitions()
        if partition is not None:
            self._check(partition)
        staged: list[_Staged] = []
        try:
            self._stage(records, partition, count, staged)
            return self._publish(staged)
        finally:
            for s in staged:
                s.file.close()
                s.path.unlink(missing_ok=True)

    def read(
        self, start: Mapping[int, int] | None = None, from_time: datetime | int | None = None
    ) -> Iterator[LogRecord]:
        """The records up to the end as it is now, partition by partition, in offset order.

        `start` maps partitions to first offsets; a partition that it leaves out is read from
        `from_time`, or from its beginning.
        """
        segments = self._all()
        first = self.start_offsets() if from_time is None else self.offsets_at(from_time)
        for partition, offset in (start or {}).items():
            self._check(partition)
            known = segments[partition]
            if offset < (known[0].base if known else 0):
                raise NotFoundError(
                    f"offset {offset} of partition {partition} is no longer in log:{self.path}",
                    remedy=f"start at {known[0].base if known else 0} or later",
                )
            first[partition] = offset
        return self._read(segments, first)

    def _read(
        self, segments: Mapping[int, list[Segment]], first: Mapping[int, int]
    ) -> Iterator[LogRecord]:
        for partition, known in segments.items():
            for segment in known:
                if segment.end <= first[partition]:
                    continue
                with open(self._folder(partition) / segment.name, "rb") as file:
                    for number, line in enumerate(file):
                        offset = segment.base + number
                        if offset >= first[partition]:
                            key, value = from_line(line.removesuffix(b"\n"), keyed=segment.keyed)
                            yield LogRecord(partition, offset, segment.millis, key, value)

    def _stage(
        self,
        records: Iterable[Record],
        partition: int | None,
        partitions: int,
        staged: list[_Staged],
    ) -> None:
        staging = self._root / "_staging"
        staging.mkdir(exist_ok=True)
        name = f"append-{os.getpid()}-{uuid.uuid4()}"
        current: dict[int, _Staged] = {}
        turn = 0
        for record in records:
            line = to_line(record)
            if partition is not None:
                target = partition
            elif record.key is not None:
                target = partition_of(record.key, partitions)
            else:
                target = turn % partitions
                turn += 1
            keyed = record.key is not None
            out = current.get(target)
            if out is None or out.keyed != keyed or out.count >= _SEGMENT_RECORDS:
                if out is not None:
                    out.close()
                path = staging / f"{name}-{len(staged)}.part"
                out = _Staged(path, target, keyed, path.open("wb"))
                staged.append(out)
                current[target] = out
            out.file.write(line)
            out.count += 1
        for out in current.values():
            out.close()

    def _publish(self, staged: list[_Staged]) -> dict[int, int]:
        if not staged:
            return {}
        ends: dict[int, int] = {}
        with self._locked():
            last: dict[int, Segment] = {}
            for partition in {s.partition for s in staged}:
                self._folder(partition).mkdir(exist_ok=True)
                known = self.segments(partition)
                last[partition] = known[-1] if known else Segment(0, 0, 0)
            for s in staged:
                before = last[s.partition]
                # Times never go back within a partition, so that a time can be bisected.
                millis = max(time.time_ns() // 1_000_000, before.millis)
                segment = Segment(before.end, s.count, millis, s.keyed)
                s.path.rename(self._folder(s.partition) / segment.name)
                last[s.partition] = segment
                ends[s.partition] = segment.end
            for partition in ends:
                _sync_folder(self._folder(partition))
        return dict(sorted(ends.items()))

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Be the only one who appends, after finishing what a crashed writer had committed."""
        with file_lock(self._root / "append.lock", with_java=True):
            self._finish_pending()
            yield

    def _finish_pending(self) -> None:
        """Rename in what a writer's file says is committed: those offsets are taken already."""
        writers = self._root / "_writers"
        if not self._names(self._root / "_staging"):
            return
        for name in sorted(self._names(writers)):
            if name.startswith(".") or not name.endswith(".json"):
                continue
            for segment in json.loads((writers / name).read_text(encoding="utf-8"))["segments"]:
                target = self._root / segment["final"]
                target.parent.mkdir(exist_ok=True)
                try:
                    (self._root / segment["staged"]).rename(target)
                except FileNotFoundError:
                    continue
                _sync_folder(target.parent)

    def _all(self) -> dict[int, list[Segment]]:
        return {p: self.segments(p) for p in range(self.partitions())}

    def _check(self, partition: int) -> None:
        count = self.partitions()
        if not 0 <= partition < count:
            raise UsageError(
                f"log:{self.path} has no partition {partition}",
                expected=f"0 to {count - 1}",
                got=str(partition),
                remedy="choose one of its partitions",
            )

    def _folder(self, partition: int) -> Path:
        return self._root / f"partition-{partition:05d}"

    @staticmethod
    def _names(folder: Path) -> list[str]:
        try:
            return os.listdir(folder)
        except FileNotFoundError:
            return []


def _millis(when: datetime | int) -> int:
    if isinstance(when, datetime):
        aware = when if when.tzinfo else when.replace(tzinfo=UTC)
        return int(aware.timestamp() * 1000)
    return when


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
