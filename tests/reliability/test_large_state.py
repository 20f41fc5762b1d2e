"""The store with many users, thirty checkpoints: any of them restored, rescaled, is exact."""

from __future__ import annotations

import dataclasses
import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headgate as hg
from headgate.cli.app import load_app
from headgate.connectors.log.files import Record
from headgate.home.layout import Home
from headgate.snapshots.snapshot import find_snapshot
from headgate.state import StateReader
from headgate.testing import JobDriver
from tests.reliability.test_driver_kills import STORE

Make = Callable[..., JobDriver]
# a million in `make soak-state`
USERS = int(os.environ.get("HEADGATE_USERS", "200000"))
STEP, CHECKPOINTS = 7, 30
Order = tuple[int, int, int]
"""A line item, its user and its item."""


class Truth:
    """The tables as they must be: a user's version, -1 for no user; an item's price."""

    def __init__(self, t: JobDriver) -> None:
        self._t = t
        self.users = np.full(USERS, -1, dtype=np.int64)
        self.items: dict[int, float] = {}

    def copy(self) -> Truth:
        other = Truth(self._t)
        other.users, other.items = self.users.copy(), dict(self.items)
        return other

    def write_users(self, places: Any, version: int) -> None:
        self.users[places] = version
        self._t.topic("users").append(
            [Record(f'{{"id":{at * STEP},"createdAt":{version}}}', str(at * STEP)) for at in places]
        )

    def delete_users(self, places: Any) -> None:
        self.users[places] = -1
        self._t.topic("users").append([Record(None, str(at * STEP)) for at in places])

    def write_items(self, prices: dict[int, float]) -> None:
        self.items |= prices
        self._t.send("items", *({"id": id, "price": price} for id, price in prices.items()))

    def rows(self, orders: list[Order]) -> list[tuple[int, int | None, float | None]]:
        """Line item, version of its user, price of its item; an unknown user has no item."""
        found = []
        for line, user, item in orders:
            version = int(self.users[user // STEP]) if user % STEP == 0 else -1
            known = None if version < 0 else version
            found.append((line, known, None if known is None else self.items.get(item)))
        return found

    def assert_state(self, snapshot: str) -> None:
        """Compare every row of both tables' state."""
        reader = StateReader(self._t.spark, find_snapshot(Home(self._t.home), snapshot, "store"))
        frame = reader.frame("users_lookup").selectExpr("key.id", "row.id AS same", "row.createdAt")
        rows = frame.toArrow()
        ids = rows["id"].to_numpy()
        assert (ids == rows["same"].to_numpy()).all() and not (ids % STEP).any()
        assert len(np.unique(ids)) == len(ids)
        users = np.full(USERS, -1, dtype=np.int64)
        users[ids // STEP] = rows["createdAt"].to_numpy()
        assert (users == self.users).all()
        items = {row["key"]["id"]: row["row"]["price"] for row in reader.view("items_lookup").all()}
        assert items == self.items


def written(t: JobDriver) -> list[tuple[int, int | None, float | None]]:
    """The rows of the three outputs since the last call, by line item."""
    rows = [
        (r["lineItemId"], r["user"]["createdAt"], r["item"]["price"]) for r in t.rows("enriched")
    ]
    rows += [(r["lineItemId"], None, None) for r in t.rows("missing_users")]
    rows += [(r["lineItemId"], r["user"]["createdAt"], None) for r in t.rows("missing_items")]
    return sorted(rows)


@pytest.mark.long
def test_five_of_thirty_checkpoints_of_many_users(job_driver: Make) -> None:
    pick = random.Random(17)
    store = load_app(f"{STORE}:store").job
    t = job_driver(dataclasses.replace(store, checkpoints=hg.Checkpoints(retain=CHECKPOINTS)))
    truth = Truth(t)
    truth.write_users(range(USERS), 0)
    truth.write_items({id: id / 4 for id in range(0, 60, 3)})
    states: list[Truth] = []
    lines = 0

    def send(count: int) -> list[Order]:
        nonlocal lines
        orders = []
        for _ in range(count):
            place = pick.randrange(USERS) * STEP
            orders.append((lines, place + (lines % 5 == 0), pick.randrange(0, 66, 3)))
            lines += 1
        t.send("orders", *({"lineItemId": n, "invoiceId": n, "userId": user, "itemId": item}
                           for n, user, item in orders))  # fmt: skip
        return orders

    for checkpoint in range(CHECKPOINTS):
        changed = pick.sample(range(USERS), 500)
        truth.write_users(changed[:450], checkpoint)
        truth.delete_users(changed[450:])
        truth.write_items({id: pick.random() for id in pick.sample(range(0, 60, 3), 2)})
        orders = send(200)
        t.run()
        assert written(t) == truth.rows(orders)
        states.append(truth.copy())
    for at, parallelism in zip(pick.sample(range(CHECKPOINTS), 5), (2, 3, 1, 3, 2), strict=True):
        t.restore(f"r1/ck:{at}", parallelism=parallelism)
        orders = send(100)
        t.run()
        run = t.checkpoint().split("/")[0]
        states[at].assert_state(f"{run}/ck:{at}")
        truth.assert_state("latest")
        # what came after the checkpoint comes out again, in one batch, with the tables as they are
        again = written(t)
        assert again[-100:] == truth.rows(orders)
        assert [row[0] for row in again] == list(range(200 * (at + 1), lines))
        print(f"restored ck:{at} with {parallelism} partitions")
