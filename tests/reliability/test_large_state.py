"""A million users, thirty checkpoints: any of them restored, with other partitions, is exact."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headgate as hg
from headgate.connectors.log_files import Record
from headgate.snapshots.home import Home
from headgate.snapshots.snapshot import find_snapshot
from headgate.state import StateReader
from headgate.testing import JobDriver

Make = Callable[..., JobDriver]
USERS, STEP, CHECKPOINTS = 1_000_000, 7, 30


@hg.job("large", checkpoints=hg.Checkpoints(retain=CHECKPOINTS))
def large(job: hg.Job) -> None:
    orders = job.source("orders", hg.topic("log:orders", schema="id BIGINT, user_id BIGINT"))
    users = job.table("users", hg.topic("log:users", schema="id BIGINT, level BIGINT"), key="id")
    found = orders.lookup("users_lookup", users, on="user_id", take=["level"], missing="side")
    found.sink("out", hg.topic("log:out"))
    found.missing.sink("missing", hg.topic("log:missing"))


def send_users(t: JobDriver, ids: Any, level: int) -> None:
    topic = t.topic("users")
    topic.append([Record(f'{{"id":{id},"level":{level}}}', str(id)) for id in ids])


def assert_state(t: JobDriver, snapshot: str, levels: np.ndarray[Any, Any]) -> None:
    """Compare every row of the state with the truth; -1 stands for no row."""
    reader = StateReader(t.spark, find_snapshot(Home(t.home), snapshot, "large"))
    rows = reader.frame("users_lookup").selectExpr("key.id AS id", "row.level AS level").toArrow()
    found = np.full(USERS, -1, dtype=np.int64)
    ids = rows["id"].to_numpy()
    assert len(np.unique(ids)) == len(ids) and not (ids % STEP).any()
    found[ids // STEP] = rows["level"].to_numpy()
    assert (found == levels).all()


@pytest.mark.slow
def test_five_of_thirty_checkpoints_of_a_million_users(job_driver: Make) -> None:
    pick = random.Random(17)
    t = job_driver(large)
    levels = np.zeros(USERS, dtype=np.int64)
    send_users(t, range(0, USERS * STEP, STEP), 0)
    states: list[np.ndarray[Any, Any]] = []
    number = 0
    for checkpoint in range(CHECKPOINTS):
        changed = pick.sample(range(USERS), 500)
        send_users(t, [at * STEP for at in changed[:450]], checkpoint)
        levels[changed[:450]] = checkpoint
        t.topic("users").append([Record(None, str(at * STEP)) for at in changed[450:]])
        levels[changed[450:]] = -1
        orders = [(number + n, pick.randrange(USERS * STEP // 3)) for n in range(200)]
        number += len(orders)
        # most orders are for keys that are there: the keys are sparse
        orders = [(id, user - user % STEP if id % 5 else user) for id, user in orders]
        t.send("orders", *({"id": id, "user_id": user} for id, user in orders)).run()
        assert rows_of(t) == expected(orders, levels)
        states.append(levels.copy())
    for at, parallelism in zip(pick.sample(range(CHECKPOINTS), 5), (2, 3, 1, 3, 2), strict=True):
        t.restore(f"r1/ck:{at}", parallelism=parallelism)
        orders = [(number + n, pick.randrange(USERS) * STEP) for n in range(100)]
        number += len(orders)
        t.send("orders", *({"id": id, "user_id": user} for id, user in orders)).run()
        run = t.checkpoint().split("/")[0]
        assert_state(t, f"{run}/ck:{at}", states[at])
        assert_state(t, "latest", levels)
        # what came after the checkpoint comes out again, in one batch, with the tables as they are
        again = rows_of(t)
        assert again[-100:] == expected(orders, levels)
        assert [row["id"] for row in again] == list(range(200 * (at + 1), number))
        print(f"restored ck:{at} with {parallelism} partitions")


def rows_of(t: JobDriver) -> list[dict[str, Any]]:
    rows = t.rows("out") + [{**row, "level": None} for row in t.rows("missing")]
    return sorted(rows, key=lambda row: row["id"])


def expected(orders: list[tuple[int, int]], levels: np.ndarray[Any, Any]) -> list[dict[str, Any]]:
    def level(user: int) -> int | None:
        found = int(levels[user // STEP]) if user % STEP == 0 else -1
        return None if found < 0 else found

    return [{"id": id, "user_id": user, "level": level(user)} for id, user in orders]
