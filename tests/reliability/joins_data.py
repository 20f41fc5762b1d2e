"""Orders and payments for the job with a join, and what must come out, from these alone."""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from headgate.connectors.log.files import LogRecord, Record, TopicFiles

OUTPUTS = (
    "paid_out", "first_out", "again_out", "totals_out", "best_out", "soon_out", "late_out",
)  # fmt: skip
TOPICS = ("orders", "payments", *OUTPUTS)
START = 1_700_000_100_000
MINUTE = 60_000
USERS = 300


@dataclass(frozen=True)
class Order:
    id: int
    user: str
    price: int
    at: int


@dataclass(frozen=True)
class Payment:
    order: int
    amount: int
    at: int


class Shop:
    """Orders of two hours, out of order by less than a minute, most of them paid in a minute."""

    def __init__(self, data: Path, count: int, seed: int) -> None:
        dice = random.Random(seed)
        self.orders, self.payments = [], []
        for number in range(count):
            now = START + number * 120 * MINUTE // count
            at = now - dice.randrange(MINUTE)
            user = f"user {dice.randrange(USERS)}"
            order = Order(number * 7919, user, dice.randrange(100), at)
            self.orders.append(order)
            if dice.random() < 0.8:
                # now and then too early, or too late by a little
                after = dice.randrange(-1000, MINUTE + 2000)
                self.payments.append(Payment(order.id, dice.randrange(9), at + after))
        for name, rows in (("orders", self.orders), ("payments", self.payments)):
            topic = TopicFiles(data / name)
            topic.create(2)
            for partition in (0, 1):
                mine = [row for row in rows if _partition(row) == partition]
                topic.append([Record(json.dumps(asdict(row))) for row in mine], partition)

    def truth(self) -> dict[str, Any]:
        """The rows of each plain topic, and the table of each topic with keys."""
        users: dict[str, list[Order]] = defaultdict(list)
        for order in self.orders:
            users[order.user].append(order)
        first, again = self._firsts()
        sums = {user: sum(order.price for order in mine) for user, mine in users.items()}
        return {
            "paid_out": self._paid(),
            "first_out": first,
            "again_out": again,
            "totals_out": {
                user: (sums[user], len(mine)) for user, mine in users.items() if sums[user] % 3
            },
            "best_out": {
                (user, rank): order.id
                for user, mine in users.items()
                for rank, order in enumerate(sorted(mine, key=_best)[:3], 1)
            },
            "soon_out": self._soon(users),
            "late_out": Counter(),
        }

    def _paid(self) -> Counter[tuple[int, int | None]]:
        amounts = defaultdict(list)
        for payment in self.payments:
            amounts[payment.order].append(payment)
        found: Counter[tuple[int, int | None]] = Counter()
        for order in self.orders:
            mine = [p.amount for p in amounts[order.id] if 0 <= p.at - order.at <= MINUTE]
            found.update([(order.id, amount) for amount in mine] or [(order.id, None)])
        return found

    def _firsts(self) -> tuple[Counter[int], Counter[int]]:
        """By the order in the topic: a user's orders are in one partition."""
        seen: set[tuple[str, int]] = set()
        first: Counter[int] = Counter()
        again: Counter[int] = Counter()
        for order in self.orders:
            (again if (order.user, order.price) in seen else first)[order.id] += 1
            seen.add((order.user, order.price))
        return first, again

    @staticmethod
    def _soon(users: dict[str, list[Order]]) -> Counter[tuple[str, int, int, int]]:
        windows: dict[tuple[str, int], list[Order]] = defaultdict(list)
        step = 5 * MINUTE
        for user, mine in users.items():
            for order in mine:
                first = order.at // step * step
                for start in (first, first - step):
                    windows[user, start + 2 * step].append(order)
        return Counter(
            (user, end, rank, order.id)
            for (user, end), mine in windows.items()
            for rank, order in enumerate(sorted(mine, key=_best)[:2], 1)
        )


def _partition(row: Order | Payment) -> int:
    return int(row.user[5:]) % 2 if isinstance(row, Order) else row.order % 2


def _best(order: Order) -> tuple[int, int]:
    return -order.price, order.id


def outcome(read: Callable[[str], list[LogRecord]]) -> dict[str, Any]:
    """What a job wrote, as the truth has it; `read` gives the records of a topic."""
    rows = {name: [json.loads(r.value) for r in read(name) if r.value] for name in OUTPUTS}
    sums = {r.key: r.value for r in read("totals_out")}
    best = {r.key: json.loads(r.value) for r in read("best_out") if r.value}
    return {
        "paid_out": Counter((r["id"], r.get("amount")) for r in rows["paid_out"]),
        "first_out": Counter(r["id"] for r in rows["first_out"]),
        "again_out": Counter(r["id"] for r in rows["again_out"]),
        "totals_out": {
            user: (row["total"], row["n"])
            for user, text in sums.items()
            if text is not None and (row := json.loads(text))
        },
        "best_out": {(row["user"], row["rank"]): row["id"] for row in best.values()},
        "soon_out": Counter(
            (r["user"], _millis(r["window_end"]), r["rank"], r["id"]) for r in rows["soon_out"]
        ),
        "late_out": Counter(r["id"] for r in rows["late_out"]),
    }


def _millis(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)
