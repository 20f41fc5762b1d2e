"""Input of the store job that keeps coming while the job is killed: orders in random order."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headgate.connectors.log_files import Record
from tests.reliability.topics import Topics, topics_of

USERS, ITEMS = 3000, 300


class Producer(threading.Thread):
    """Writes orders and user updates, a chunk at a time, not far ahead of the job.

    A job that starts slowly, or is down, still gets its input in many batches: a chunk is written
    when the job has taken those before it, up to `ahead`, or when `finish` was called.
    """

    def __init__(
        self, data: Path | Topics, *, orders: int, chunks: int, seed: int,
        taken: Callable[[], int] = lambda: 0, ahead: int = 3, fresh: bool = True,
    ) -> None:  # fmt: skip
        super().__init__(daemon=True)
        self._topics = topics_of(data)
        self._random = random.Random(seed)
        self._taken, self._ahead = taken, ahead
        self._hurry = threading.Event()
        ids = list(range(orders))
        self._random.shuffle(ids)
        size = -(-orders // chunks)
        self._chunks = [ids[i : i + size] for i in range(0, orders, size)]
        self._round = 0
        if not fresh:  # more of the same, into topics that are there
            return
        self._topics.create(2)
        # keys are sparse: with dense ones a wrong snapshot can hide behind its replay
        self._write("users", [self._user(k) for k in range(0, USERS * 7, 7)])
        self._write("items", [self._item(k) for k in range(0, ITEMS * 3, 3)])

    def run(self) -> None:
        for chunk in self._chunks:
            while self._round >= self._taken() + self._ahead and not self._hurry.wait(0.2):
                pass
            self._send(chunk)

    def chunk(self) -> None:
        """Write the next chunk in the caller's thread, instead of a run."""
        self._send(self._chunks.pop(0))

    def _send(self, chunk: list[int]) -> None:
        self._round += 1
        changed = self._random.sample(range(0, USERS * 7, 7), 60)
        self._write("users", [self._user(k) for k in changed[:45]])
        self._write("users", [Record(None, str(k)) for k in changed[45:]])
        self._write("items", [self._item(k) for k in self._random.sample(range(0, 900, 3), 5)])
        self._write("orders", [self._order(n) for n in chunk])

    def finish(self) -> None:
        """Write the rest at once, and wait until it is written."""
        self._hurry.set()
        self.join()

    def _write(self, topic: str, records: list[Record]) -> None:
        self._topics.append(topic, records)

    def _user(self, key: int) -> Record:
        row = {"id": key, "firstName": f"F{key}-{self._round}", "lastName": None, "createdAt": key}
        return Record(json.dumps(row), str(key))

    def _item(self, key: int) -> Record:
        row = {"id": key, "name": f"item {key} v{self._round}", "price": key / 4}
        return Record(json.dumps(row), str(key))

    def _order(self, number: int) -> Record:
        if number % 997 == 3:
            return Record(f'{{"invoiceId": {number}, "userId": ', None)
        row: dict[str, Any] = {
            "invoiceId": number // 3,
            "lineItemId": number,
            "userId": self._random.randrange(USERS + 30) * 7 if number % 501 else None,
            "itemId": self._random.randrange(ITEMS + 3) * 3,
            "itemName": f"näme {number % 11}",
            "price": number / 8,
            "createdAt": 1_700_000_000_000 + number,
        }
        return Record(json.dumps(row), None)
