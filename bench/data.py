"""Owns the bench's input: seeded orders, users and items, or events, written as log topics.

Every segment is drawn from its own seed, so the bytes depend on the sizes and the seed alone,
not on how many processes wrote them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

PARTITIONS = 2
SEGMENT = 100_000
UNKNOWN = 0.01
TABLES = ("users", "items")
DEFAULT_ROOT = Path(__file__).resolve().parent / ".data"
# The append time in a segment's name: fixed, so that the same sizes give the same files.
_APPENDED = 1_470_000_000_000


class Drawn(Protocol):
    """A data set: how many records each topic has, and the lines of each segment."""

    @property
    def folder(self) -> str: ...

    @property
    def records(self) -> dict[str, int]: ...

    def lines(self, segment: Segment) -> Iterator[str]: ...

    def as_json(self) -> dict[str, object]: ...


@dataclass(frozen=True)
class Sizes:
    """How many rows each topic holds; the seed decides the rest."""

    orders: int
    users: int
    items: int
    seed: int = 7

    @property
    def folder(self) -> str:
        """The name of the folder that holds data of these sizes."""
        return f"orders-{self.orders}-users-{self.users}-items-{self.items}-seed-{self.seed}"

    @property
    def records(self) -> dict[str, int]:
        """The topics."""
        return {"orders": self.orders, "users": self.users, "items": self.items}

    def lines(self, segment: Segment) -> Iterator[str]:
        """The records of a segment."""
        if segment.topic == "orders":
            return order_lines(self, segment)
        ids = range(segment.first, segment.first + segment.count)
        return map(user_line if segment.topic == "users" else item_line, ids)

    def as_json(self) -> dict[str, object]:
        """What is written beside the data."""
        return asdict(self)


@dataclass(frozen=True)
class Segment:
    """One file to write: records first to first+count of a topic."""

    topic: str
    index: int
    first: int
    count: int
    partition: int
    base: int

    @property
    def path(self) -> Path:
        """Where it belongs in the data folder."""
        name = f"{self.base:020d}-{self.count}-{_APPENDED + self.index}.jsonl"
        return Path(self.topic) / f"partition-{self.partition:05d}" / name


def user_line(i: int) -> str:
    """User number i as JSON.

    >>> user_line(3)[:45]
    '{"id":3,"firstName":"First3","lastName":"Last'
    """
    return (
        f'{{"id":{i},"firstName":"First{i}","lastName":"Last{i}",'
        f'"emailAddress":"user{i}@example.org","createdAt":{1441790913000 + i * 1000},'
        '"deletedAt":-1,"mergedAt":-1,"parentUserId":-1}'
    )


def item_line(i: int) -> str:
    """Item number i as JSON."""
    return (
        f'{{"id":{i},"createdAt":{1388876010000 + i},"adjective":"fuzzy","category":"module",'
        f'"modifier":"opener","name":"fuzzy module opener {i}","price":{i / 10.0!r}}}'
    )


def order_lines(sizes: Sizes, segment: Segment) -> Iterator[str]:
    """The orders of one segment; 1% name a user, and 1% an item, that no table holds."""
    draw = random.Random(f"{sizes.seed}:orders:{segment.index}").random
    users = sizes.users / (1 - UNKNOWN)
    items = sizes.items / (1 - UNKNOWN)
    for i in range(segment.first, segment.first + segment.count):
        yield (
            f'{{"invoiceId":{i // 3},"lineItemId":{i},"userId":{int(draw() * users)},'
            f'"itemId":{int(draw() * items)},"itemName":"prize-winning instrument",'
            f'"itemCategory":"instrument","price":{round(draw() * 100, 2)!r},'
            f'"createdAt":{1469834917000 + i},"paidAt":{1469934917000 + i}}}'
        )


def segments(topic: str, records: int) -> list[Segment]:
    """How a topic's records are cut: about 100,000 a segment, the partitions in turn."""
    size = min(SEGMENT, max(1, -(-records // PARTITIONS)))
    ends = [0] * PARTITIONS
    cut = []
    for index, first in enumerate(range(0, records, size)):
        partition, count = index % PARTITIONS, min(size, records - first)
        cut.append(Segment(topic, index, first, count, partition, ends[partition]))
        ends[partition] += count
    return cut


def topic_records(topic: Path) -> int:
    """The records of a log topic, counted from its segments' names."""
    return sum(int(file.name.split("-")[1]) for file in topic.glob("partition-*/*.jsonl"))


def first_orders(data_dir: Path, records: int) -> list[Path]:
    """The order segments that hold the first records, in the order in which they were drawn."""
    files = sorted(
        (data_dir / "orders").glob("partition-*/*.jsonl"),
        key=lambda file: int(file.name.removesuffix(".jsonl").split("-")[2]),
    )
    wanted: list[Path] = []
    total = 0
    for file in files:
        if total >= records:
            break
        wanted.append(file)
        total += int(file.name.split("-")[1])
    return wanted


def generate(sizes: Drawn, *, root: Path = DEFAULT_ROOT, processes: int = 2) -> Path:
    """The folder with data of these sizes: the one already there, or a new one.

    It is written aside and renamed, so a folder with the final name is complete.

    >>> generate(Sizes(orders=1000, users=100, items=10)).name  # doctest: +SKIP
    'orders-1000-users-100-items-10-seed-7'
    """
    final = root / sizes.folder
    if (final / "sizes.json").exists():
        return final
    aside = root / f"_writing-{sizes.folder}-{os.getpid()}"
    shutil.rmtree(aside, ignore_errors=True)
    records = sizes.records
    work = [segment for topic, n in records.items() for segment in segments(topic, n)]
    try:
        for topic in records:
            for partition in range(PARTITIONS):
                (aside / topic / f"partition-{partition:05d}").mkdir(parents=True)
            _write_json(aside / topic / "topic.json", {"version": 1, "partitions": PARTITIONS})
        report = _progress(sum(records.values()))
        with ProcessPoolExecutor(processes) as pool:
            done = 0
            for future in as_completed([pool.submit(_write, aside, sizes, s) for s in work]):
                done += future.result()
                report(done)
        _write_json(aside / "sizes.json", sizes.as_json())
        aside.rename(final)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    return final


def _write(root: Path, sizes: Drawn, segment: Segment) -> int:
    with open(root / segment.path, "w", encoding="utf-8", newline="\n") as file:
        file.write("\n".join(sizes.lines(segment)))
        file.write("\n")
    return segment.count


def _write_json(path: Path, value: object) -> None:
    path.write_text(json.dumps(value) + "\n", encoding="utf-8")


def _progress(total: int) -> Callable[[int], None]:
    """A line that is rewritten on a terminal, and printed at every tenth elsewhere."""
    began, shown = time.monotonic(), -1
    live = sys.stderr.isatty()

    def report(done: int) -> None:
        nonlocal shown
        step = done * (100 if live else 10) // max(1, total)
        if step == shown:
            return
        shown = step
        text = f"generating {done:,} of {total:,} records, {time.monotonic() - began:.0f} s"
        end = "\n" if not live or done == total else ""
        print(("\r" if live else "") + text, end=end, file=sys.stderr, flush=True)

    return report
