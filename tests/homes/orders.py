"""Orders and users of the contract's job, and what must come of them, computed without Spark."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any, TypeAlias

from headgate.connectors.log.files import Record, TopicFiles

Row: TypeAlias = tuple[int, int, str | None]
BATCH = 60


class Orders:
    """The topics of one job. Keys are sparse: with dense ones a wrong state can hide."""

    def __init__(self, folder: Path, seed: int) -> None:
        self._folder = folder
        self._random = random.Random(seed)
        self.users: dict[int, str] = {}
        self.expected: list[Row] = []
        self._number = 0
        for name in ("orders", "users"):
            TopicFiles(folder / name).create(2)

    @property
    def params(self) -> dict[str, str]:
        return {name: f"log:{self._folder / name}" for name in ("orders", "users", "out")}

    def send(self) -> None:
        """One batch: users that come, change and go, then orders, some of them of nobody."""
        users = []
        for key in self._random.sample(range(0, 3000, 7), 40):
            if key in self.users and self._random.random() < 0.25:
                del self.users[key]
                users.append(Record(None, str(key)))
            else:
                self.users[key] = f"{key}.{self._number}"
                users.append(_record({"id": key, "name": self.users[key]}, str(key)))
        TopicFiles(self._folder / "users").append(users)
        orders = []
        for _ in range(BATCH):
            self._number += 1
            user = self._random.randrange(0, 3000)
            orders.append(_record({"id": self._number, "user_id": user}, None))
            self.expected.append((self._number, user, self.users.get(user)))
        TopicFiles(self._folder / "orders").append(orders)

    def written(self) -> list[Row]:
        """What readers of the output see, in order."""
        topic = TopicFiles(self._folder / "out")
        rows = [json.loads(r.value or "") for r in topic.read()] if topic.exists() else []
        return in_order([(r["id"], r["user_id"], r.get("name")) for r in rows])

    def again(self, after: int) -> list[Row]:
        """The orders after the first ones, looked up in the users of now."""
        return [(id, user, self.users.get(user)) for id, user, _ in self.expected[after:]]


def in_order(rows: list[Row]) -> list[Row]:
    """Rows by order, those of one order by name."""
    return sorted(rows, key=lambda row: (row[0], row[2] or ""))


def _record(row: dict[str, Any], key: str | None) -> Record:
    return Record(json.dumps(row), key)
