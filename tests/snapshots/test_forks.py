"""Forks: the same snapshot under another name, beside the original; and the past run again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from headgate.runtime.run import RunOutcome, run
from headgate.snapshots.savepoints import create_savepoint

Run = Callable[..., RunOutcome]


def selling(n: str) -> hg.JobDef:
    """A shop's orders with their user's number, or what `n` makes of it."""

    @hg.job("shop")
    def shop(job: hg.Job) -> None:
        data, out = job.param("data"), job.param("out")
        order, user = "id BIGINT, user BIGINT", "id BIGINT, n BIGINT"
        orders = job.source("orders", hg.topic(f"log:{data}/orders", schema=order))
        users = job.table("users", hg.topic(f"log:{data}/users", schema=user), key="id")
        found = orders.lookup("users_lookup", users, on="user", take=["n"])
        found.select("id", n).sink("out", hg.topic(f"log:{out}"))

    return shop


shop, doubled = selling("n"), selling("n * 2 AS n")


@pytest.fixture
def bounded(spark: SparkSession, tmp_path: Path) -> Run:
    for name in ("orders", "users"):
        TopicFiles(tmp_path / name).create(2)

    def start(job: hg.JobDef = shop, *, out: str = "out", **options: Any) -> RunOutcome:
        params = {"data": str(tmp_path), "out": str(tmp_path / out)}
        outcome = run(job, home=str(tmp_path / "home"), params=params, bounded=True, spark=spark,
                      **options)  # fmt: skip
        assert outcome.error is None, outcome.error
        return outcome

    return start


def send(folder: Path, first: int) -> None:
    users = [Record(f'{{"id":{k},"n":{k + first}}}', str(k)) for k in range(0, 50, 7)]
    TopicFiles(folder / "users").append(users)
    orders = [Record(f'{{"id":{n},"user":{n % 50}}}', None) for n in range(first, first + 50)]
    TopicFiles(folder / "orders").append(orders)


def rows(folder: Path, name: str) -> dict[int, int | None]:
    import json

    found = [json.loads(r.value or "{}") for r in TopicFiles(folder / name).read()]
    ids = [row["id"] for row in found]
    assert len(set(ids)) == len(ids), "a row is there twice"
    return {row["id"]: row.get("n") for row in found}


def truth(first: int, to: int, factor: int = 1) -> dict[int, int | None]:
    return {
        n: (n % 50 + n - n % 50) * factor if n % 50 % 7 == 0 else None for n in range(first, to)
    }


def test_a_fork_runs_beside_the_original_and_does_not_touch_it(
    bounded: Run, tmp_path: Path
) -> None:
    send(tmp_path, 0)
    bounded()
    home = Home(str(tmp_path / "home"))
    current = home.job("shop").current()
    assert current is not None
    create_savepoint(current, label="half")
    send(tmp_path, 50)
    bounded()
    whole = rows(tmp_path, "out")
    assert whole == truth(0, 100)

    forked = bounded(doubled, name="trial", restore="sp:half", out="trial_out")
    assert (forked.job, forked.run) == ("trial", "r1")
    assert rows(tmp_path, "trial_out") == truth(50, 100, factor=2), "from the savepoint on"
    assert rows(tmp_path, "out") == whole
    parent = home.job("trial").run("r1").read().parent
    assert parent is not None
    assert (parent.job, parent.run, parent.savepoint) == ("shop", "r1", "half")

    send(tmp_path, 100)
    bounded()
    bounded(doubled, name="trial", out="trial_out")
    assert rows(tmp_path, "out") == truth(0, 150)
    assert rows(tmp_path, "trial_out") == truth(50, 150, factor=2)
    # the snapshot of one job by its full name, from another
    bounded(name="third", restore="trial@ck:1", out="third_out")
    assert rows(tmp_path, "third_out") == truth(100, 150)


def test_the_past_can_be_run_again_with_other_code(bounded: Run, tmp_path: Path) -> None:
    for first in (0, 50, 100):
        send(tmp_path, first)
        bounded()
    again = bounded(doubled, name="replay", restore="shop@ck:0", out="replay_out")
    assert again.how == "finished"
    found = rows(tmp_path, "replay_out")
    # one batch with all of the past: its orders see the tables as they are now
    assert set(found) == set(range(50, 150))
    assert found[50] == 2 * 100
    assert rows(tmp_path, "out") == truth(0, 150)
