"""The user lookup of the tutorials as a process function gives the rows that the lookup gives."""

from __future__ import annotations

import random
from typing import Any

from pyspark.sql import SparkSession

from examples.store.user_lookup import Order, User, user_lookup
from headgate.testing import JobDriver

USERS = 30


def sent(pick: random.Random, number: int) -> tuple[list[User], list[Order]]:
    """Changes of users, some of them deletions, and orders, some of users who are not there."""
    users = [
        User(id, f"first{number}.{n}", None, f"{id}@example.org", n, n if n % 5 == 0 else None)
        for n, id in enumerate(pick.choices(range(USERS), k=25))
    ]
    orders = [
        Order(number, n, pick.choice([None, *range(USERS + 10)]), f"item{n}", n / 4, n)
        for n in range(40)
    ]
    return users, orders


def truth(users: dict[int, User], orders: list[Order]) -> tuple[list[Any], list[Any]]:
    found = [
        {**vars(o), "user": vars(users[o.userId])}
        for o in orders
        if o.userId is not None and o.userId in users
    ]
    missing = [vars(o) for o in orders if o.userId is None or o.userId not in users]
    return found, missing


def by_line(rows: list[Any]) -> list[Any]:
    return sorted(rows, key=lambda row: row["lineItemId"])


def test_the_lookup_as_a_process_function_gives_the_same_rows(spark: SparkSession) -> None:
    pick, known = random.Random(5), dict[int, User]()
    with JobDriver(user_lookup) as t:
        for number in range(2):
            users, orders = sent(pick, number)
            # a user's changes are in one partition, as a broker keeps those of a key
            for part in (0, 1):
                for source in ("users", "user_changes"):
                    t.send(source, *[u for u in users if u.id % 2 == part], partition=part)
            t.send("orders", *orders).run()
            for user in users:
                known.pop(user.id, None)
                if user.deletedAt is None:
                    known[user.id] = user
            found, missing = truth(known, orders)
            assert found and missing
            assert by_line(t.rows("enriched")) == by_line(t.rows("enriched_too")) == found
            assert by_line(t.rows("missing")) == by_line(t.rows("missing_too")) == missing
