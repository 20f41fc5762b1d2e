"""Events for windows that are killed, and what must come out, from the events alone."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from headgate.connectors.log.files import Record, TopicFiles
from tests.reliability.chunks import Chunks

TOPICS = ("events", "counts_out", "counts_late", "sessions_out", "sessions_late")
START = 1_700_000_100_000  # where a window of five minutes begins
MINUTE = 60_000
SIZE, GAP, DISORDER = 5 * MINUTE, 40_000, 59_000
CHUNK_TIME = 10 * MINUTE
HOURS_LATE = 180 * MINUTE
USERS = 90


@dataclass(frozen=True)
class Event:
    id: int
    user: str
    at: int
    late: bool


Final = dict[tuple[str, int, int], frozenset[int]]
"""User, start and end of a window, and the events in it."""


class Events(Chunks[Event]):
    """Ten minutes of events a chunk, out of order by less than a minute, and some hours late."""

    def __init__(
        self, data: Path, *, chunks: int, size: int, seed: int, taken: Callable[[], int]
    ) -> None:
        pick = random.Random(seed)
        made = [self._made(pick, number, size) for number in range(chunks)]
        self.all = [event for chunk in made for event in chunk]
        self.create(data)
        super().__init__(made, taken)

    def create(self, data: Path) -> None:
        """Make the topic that the events go to."""
        self._topic = TopicFiles(data / "events")
        self._topic.create(2)

    @staticmethod
    def _made(pick: random.Random, chunk: int, size: int) -> list[Event]:
        events = []
        for number in range(size):
            time = START + chunk * CHUNK_TIME + number * CHUNK_TIME // size
            late = chunk * CHUNK_TIME > HOURS_LATE and pick.random() < 0.01
            at = time - (HOURS_LATE if late else pick.randrange(DISORDER))
            user = f"user {pick.randrange(USERS)}"
            events.append(Event(chunk * size + number, user, at, late))
        return events

    def write(self, chunk: list[Event]) -> None:
        for partition in (0, 1):
            self._topic.append(
                [Record(event_json(event)) for event in chunk if event.id % 2 == partition],
                partition,
            )

    def tumbling(self) -> Final:
        """The windows of five minutes."""
        windows = defaultdict(set)
        for event in self.all:
            if not event.late:
                start = event.at // SIZE * SIZE
                windows[event.user, start, start + SIZE].add(event.id)
        return {window: frozenset(ids) for window, ids in windows.items()}

    def sessions(self) -> Final:
        """The sessions: rows of a user that are no more than the gap apart."""
        found: Final = {}
        by_user = defaultdict(list)
        for event in self.all:
            if not event.late:
                by_user[event.user].append((event.at, event.id))
        for user, rows in by_user.items():
            rows.sort()
            group = [rows[0]]
            for row in [*rows[1:], (1 << 62, -1)]:
                if row[0] - group[-1][0] > GAP:
                    ids = frozenset(id for _, id in group)
                    found[user, group[0][0], group[-1][0] + GAP] = ids
                    group = []
                group.append(row)
        return found

    def late(self) -> Counter[tuple[int, str, int]]:
        """The rows that no window takes."""
        return Counter((e.id, e.user, e.at) for e in self.all if e.late)


def event_json(event: Event) -> str:
    """An event as the job reads it."""
    return json.dumps({"id": event.id, "user": event.user, "at": event.at})


def rows_of(topic: Path) -> list[dict[str, Any]]:
    """What a job wrote."""
    files = TopicFiles(topic)
    return parsed(r.value for r in files.read()) if files.exists() else []


def parsed(values: Iterable[str | None]) -> list[dict[str, Any]]:
    """The rows of a topic's values."""
    return [json.loads(value or "") for value in values]


def finals(rows: Iterable[dict[str, Any]]) -> list[tuple[tuple[str, int, int], frozenset[int]]]:
    """The on-time rows, as the truth has them."""
    return [(window_of(r), frozenset(r["ids"])) for r in rows if r["fired_by"] == "on_time"]


def window_of(row: dict[str, Any]) -> tuple[str, int, int]:
    def millis(name: str) -> int:
        return round(datetime.fromisoformat(row[name]).timestamp() * 1000)

    return row["user"], millis("window_start"), millis("window_end")
