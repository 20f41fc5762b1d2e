"""Input of the store job that keeps coming while the job is killed: orders in random order."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from headgate.connectors.log.files import Record
from tests.reliability.chunks import Chunks
from tests.reliability.topics import Topics, topics_of

USERS, ITEMS = 3000, 300


class Producer(Chunks[int]):
    """Writes orders and user updates, a chunk at a time, not far ahead of the job."""

    def __init__(
        self, data: Path | Topics, *, orders: int, chunks: int, seed: int,
        taken: Callable[[], int] = lambda: 0, ahead: int = 3, fresh: bool = True,
    ) -> None:  # fmt: skip
        self._topics = topics_of(data)
        self._random = random.Random(seed)
        ids = list(range(orders))
        self._random.shuffle(ids)
        size = -(-orders // chunks)
        super().__init__([ids[i : i + size] for i in range(0, orders, size)], taken, ahead)
        if not fresh:  # more of the same, into topics that are there
            return
        self._topics.create(2)
        # keys are sparse: with dense ones a wrong snapshot can hide behind its replay
        self._write("users", [self._user(k) for k in range(0, USERS * 7, 7)])
        self._write("items", [self._item(k) for k in range(0, ITEMS * 3, 3)])

    def write(self, chunk: list[int]) -> None:
        changed = self._random.sample(range(0, USERS * 7, 7), 60)
        self._write("users", [self._user(k) for k in changed[:45]])
        self._write("users", [Record(None, str(k)) for k in changed[45:]])
        self._write("items", [self._item(k) for k in self._random.sample(range(0, 900, 3), 5)])
        self._write("orders", [self._order(n) for n in chunk])

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
