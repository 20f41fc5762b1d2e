"""Owns the events of the windows bench, and the counts that every engine must give for them."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from bench.compare import Digest, digest_rows
from bench.data import PARTITIONS, Segment

TOPIC = "events"
EVENT = "id BIGINT, user BIGINT, page STRING, score DOUBLE, at BIGINT"
WINDOW_MS = 5 * 60 * 1000
BOUND_MS = 60 * 1000
# a second less than engines are given: where a batch is cut, one partition may be a little ahead
DISORDER_MS = 59 * 1000
START_MS = 1_469_834_917_000
# Keys far apart: dense ones would lie side by side in a sorted store.
_SPARSE = 7_919


@dataclass(frozen=True)
class Events:
    """So many events, a millisecond apart, of so many users, each up to a minute out of order."""

    events: int
    keys: int
    seed: int = 7

    @property
    def folder(self) -> str:
        """The name of the folder that holds these events."""
        return f"events-{self.events}-keys-{self.keys}-seed-{self.seed}"

    @property
    def records(self) -> dict[str, int]:
        """The topics."""
        return {TOPIC: self.events}

    def lines(self, segment: Segment) -> Iterator[str]:
        """The events of a segment.

        >>> segment = Segment(TOPIC, 0, first=0, count=1, partition=0, base=0)
        >>> sorted(json.loads(next(Events(10, 3).lines(segment))))
        ['at', 'id', 'page', 'score', 'user']
        """
        draw = random.Random(f"{self.seed}:events:{segment.index}").random
        # two segments share their time, so that the partitions go forward side by side
        first = segment.first - segment.partition * segment.count
        for i in range(first + segment.partition, first + 2 * segment.count, PARTITIONS):
            yield (
                f'{{"id":{i},"user":{int(draw() * self.keys) * _SPARSE},'
                f'"page":"/products/{int(draw() * 10_000)}","score":{round(draw() * 100, 2)!r},'
                f'"at":{START_MS + i - int(draw() * DISORDER_MS)}}}'
            )

    def as_json(self) -> dict[str, object]:
        """What is written beside the data."""
        return asdict(self)


def expected(data_dir: Path, *, processes: int = 2) -> Digest:
    """The digest of the counts per user and window; kept beside the data.

    >>> expected(data).count  # doctest: +SKIP
    1316480
    """
    kept = data_dir / "_truth.json"
    if kept.exists():
        return Digest(**json.loads(kept.read_text(encoding="utf-8")))
    files = sorted(map(str, (data_dir / TOPIC).glob("partition-*/*.jsonl")))
    counts: Counter[tuple[int, int]] = Counter()
    with ProcessPoolExecutor(processes) as pool:
        for part in pool.map(_counted, files):
            counts.update(part)
    truth = digest_rows(
        {"user": user, "start": start, "end": start + WINDOW_MS, "n": n}
        for (user, start), n in counts.items()
    )
    aside = kept.with_name(f"{kept.name}.{os.getpid()}")
    aside.write_text(json.dumps(asdict(truth)), encoding="utf-8")
    aside.rename(kept)
    return truth


def _counted(path: str) -> Counter[tuple[int, int]]:
    with open(path, "rb") as file:
        rows = map(orjson.loads, file)
        return Counter((row["user"], row["at"] // WINDOW_MS * WINDOW_MS) for row in rows)
