"""Owns the events of the process bench, and the rows that every engine must give for them."""

from __future__ import annotations

import json
import os
import random
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from bench.compare import Digest, digest_rows
from bench.data import PARTITIONS, Segment

TOPIC = "readings"
READING = "id BIGINT, user BIGINT, page STRING, score DOUBLE"
# Keys far apart: dense ones would lie side by side in a sorted store.
_SPARSE = 7_919


@dataclass(frozen=True)
class Readings:
    """So many events of so many users; all events of a user are in one partition, in order."""

    events: int
    keys: int
    seed: int = 7

    @property
    def folder(self) -> str:
        """The name of the folder that holds these events."""
        return f"{TOPIC}-{self.events}-keys-{self.keys}-seed-{self.seed}"

    @property
    def records(self) -> dict[str, int]:
        """The topics."""
        return {TOPIC: self.events}

    def lines(self, segment: Segment) -> Iterator[str]:
        """The events of a segment.

        >>> segment = Segment(TOPIC, 0, first=0, count=1, partition=0, base=0)
        >>> sorted(json.loads(next(Readings(10, 4).lines(segment))))
        ['id', 'page', 'score', 'user']
        """
        draw = random.Random(f"{self.seed}:{TOPIC}:{segment.index}").random
        each = self.keys // PARTITIONS
        for i in range(segment.first, segment.first + segment.count):
            user = int(draw() * each) * PARTITIONS + segment.partition
            yield (
                f'{{"id":{i},"user":{user * _SPARSE},"page":"/products/{int(draw() * 10_000)}",'
                f'"score":{round(draw() * 100, 2)!r}}}'
            )

    def as_json(self) -> dict[str, object]:
        """What is written beside the data."""
        return asdict(self)


def files_in_order(data_dir: Path) -> list[list[Path]]:
    """The files of each partition, in the order of their events."""
    return [sorted(p.glob("*.jsonl")) for p in sorted((data_dir / TOPIC).glob("partition-*"))]


def expected(data_dir: Path) -> Digest:
    """The digest of all running counts and last values; kept beside the data.

    >>> expected(data).count  # doctest: +SKIP
    2000000
    """
    kept = data_dir / "_truth.json"
    if kept.exists():
        return Digest(**json.loads(kept.read_text(encoding="utf-8")))
    partitions = [list(map(str, files)) for files in files_in_order(data_dir)]
    with ProcessPoolExecutor(len(partitions)) as pool:
        truth = sum(pool.map(_digest_partition, partitions), Digest())
    aside = kept.with_name(f"{kept.name}.{os.getpid()}")
    aside.write_text(json.dumps(asdict(truth)), encoding="utf-8")
    aside.rename(kept)
    return truth


def _digest_partition(files: list[str]) -> Digest:
    return digest_rows(_rows(files))


def _rows(files: list[str]) -> Iterator[dict[str, object]]:
    counts: dict[int, int] = {}
    last: dict[int, float] = {}
    for path in files:
        with open(path, "rb") as file:
            for event in map(orjson.loads, file):
                user = event["user"]
                counts[user] = counts.get(user, 0) + 1
                before, score = last.get(user, 0.0), event["score"]
                last[user] = score
                yield {"user": user, "count": counts[user], "before": before, "last": score}
