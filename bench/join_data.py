"""Owns the two streams of the join bench, and the pairs that every engine must give for them."""

from __future__ import annotations

import json
import os
import random
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from bench.compare import Digest, digest_rows
from bench.data import PARTITIONS, Segment

LEFT, RIGHT = "orders", "payments"
SCHEMAS = {
    LEFT: "id BIGINT, user BIGINT, item STRING, price DOUBLE, at BIGINT",
    RIGHT: "id BIGINT, user BIGINT, bank STRING, amount DOUBLE, at BIGINT",
}
LOWER_MS, UPPER_MS = -10_000, 50_000
BOUND_MS = 10 * 1000
# a second less than engines are told: where a batch is cut, one partition may be a little ahead
DISORDER_MS = 9 * 1000
START_MS = 1_469_834_917_000
# Keys far apart: dense ones would lie side by side in a sorted store.
_SPARSE = 7_919


@dataclass(frozen=True)
class Sides:
    """So many rows in each stream, a millisecond apart, of so many users, a little out of order."""

    rows: int
    keys: int
    seed: int = 7

    @property
    def folder(self) -> str:
        """The name of the folder that holds these rows."""
        return f"join-{self.rows}-keys-{self.keys}-seed-{self.seed}"

    @property
    def records(self) -> dict[str, int]:
        """The topics."""
        return {LEFT: self.rows, RIGHT: self.rows}

    def lines(self, segment: Segment) -> Iterator[str]:
        """The rows of a segment.

        >>> segment = Segment(RIGHT, 0, first=0, count=1, partition=0, base=0)
        >>> sorted(json.loads(next(Sides(10, 3).lines(segment))))
        ['amount', 'at', 'bank', 'id', 'user']
        """
        draw = random.Random(f"{self.seed}:{segment.topic}:{segment.first}").random
        text, number = ("item", "price") if segment.topic == LEFT else ("bank", "amount")
        # two segments share their time, so that the partitions go forward side by side
        first = segment.first - segment.partition * segment.count
        for i in range(first + segment.partition, first + 2 * segment.count, PARTITIONS):
            yield (
                f'{{"id":{i},"user":{int(draw() * self.keys) * _SPARSE},'
                f'"{text}":"{text} {int(draw() * 10_000)}","{number}":{round(draw() * 100, 2)!r},'
                f'"at":{START_MS + i - int(draw() * DISORDER_MS)}}}'
            )

    def as_json(self) -> dict[str, object]:
        """What is written beside the data."""
        return asdict(self)


def expected(data_dir: Path) -> Digest:
    """The digest of all pairs; kept beside the data."""
    kept = data_dir / "_truth.json"
    if kept.exists():
        return Digest(**json.loads(kept.read_text(encoding="utf-8")))
    truth = digest_rows(_pairs(data_dir))
    aside = kept.with_name(f"{kept.name}.{os.getpid()}")
    aside.write_text(json.dumps(asdict(truth)), encoding="utf-8")
    aside.rename(kept)
    return truth


def _pairs(data_dir: Path) -> Iterator[dict[str, object]]:
    rights: dict[int, list[tuple[int, int, float]]] = defaultdict(list)
    for row in _rows(data_dir / RIGHT):
        rights[row["user"]].append((row["at"], row["id"], row["amount"]))
    for mine in rights.values():
        mine.sort()
    for row in _rows(data_dir / LEFT):
        others = rights.get(row["user"], [])
        first = bisect_left(others, row["at"] + LOWER_MS, key=lambda other: other[0])
        last = bisect_right(others, row["at"] + UPPER_MS, key=lambda other: other[0])
        for _, id, amount in others[first:last]:
            yield {"id": row["id"], "payment": id, "price": row["price"], "amount": amount}


def _rows(topic: Path) -> Iterator[dict[str, int]]:
    for path in sorted(topic.glob("partition-*/*.jsonl")):
        with open(path, "rb") as file:
            yield from map(orjson.loads, file)
