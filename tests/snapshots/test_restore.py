"""Restores on the real kernel: any checkpoint, savepoints that were moved, other partitions."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headgate as hg
from headgate.base.errors import ExitCode, RefusedError
from headgate.home.layout import Home
from headgate.snapshots.snapshot import find_snapshot
from headgate.state import StateReader
from headgate.testing import Deleted, JobDriver

Make = Callable[..., JobDriver]

USER = "id BIGINT, name STRING"
ORDER = "id BIGINT, user_id BIGINT, item_id STRING"
ITEM = "id STRING, price DOUBLE"


@hg.job("shop", checkpoints=hg.Checkpoints(retain=20))
def shop(job: hg.Job) -> None:
    orders = job.source("orders", hg.topic("log:orders", schema=ORDER))
    users = job.table("users", hg.topic("log:users", schema=USER), key="id")
    items = job.table("items", hg.topic("log:items", schema=ITEM), key="id")
    named = orders.lookup("users_lookup", users, on="user_id", take=["name"])
    priced = named.lookup("items_lookup", items, on="item_id", take=["price"], missing="side")
    priced.sink("out", hg.topic("log:out"))
    priced.missing.sink("unpriced", hg.topic("log:unpriced"))


class Truth:
    """The tables and the orders' rows, computed without Spark."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.users: dict[int, str] = {}
        self.items: dict[str, float] = {}
        self.number = 0

    def copy(self) -> Truth:
        other = Truth(0)
        other.users, other.items, other.number = dict(self.users), dict(self.items), self.number
        return other

    def batch(self, t: JobDriver, version: str) -> list[dict[str, Any]]:
        """Send a batch with sparse updates and deletions; gives the rows that must come out."""
        pick = self.random
        users: list[Any] = []
        for key in pick.sample(range(0, 3000, 7), 60):
            if key in self.users and pick.random() < 0.2:
                del self.users[key]
                users.append(Deleted(key))
            else:
                self.users[key] = f"{version}-{key}"
                users.append({"id": key, "name": self.users[key]})
        new = {item: round(pick.random(), 3) for item in pick.sample("abcdefghijklmnop", 3)}
        self.items |= new
        t.send("users", *users)
        t.send("items", *({"id": item, "price": price} for item, price in new.items()))
        return self.orders(t)

    def orders(self, t: JobDriver, count: int = 80) -> list[dict[str, Any]]:
        sent, rows = [], []
        for _ in range(count):
            self.number += 1
            user, item = self.random.randrange(0, 3000), self.random.choice("abcdefghijklmnopqr")
            sent.append({"id": self.number, "user_id": user, "item_id": item})
            rows.append({**sent[-1], "name": self.users.get(user), "price": self.items.get(item)})
        t.send("orders", *sent)
        return rows

    def assert_state(self, t: JobDriver) -> None:
        users = {row["key"]["id"]: row["row"]["name"] for row in t.state("users_lookup").all()}
        assert users == self.users
        items = {row["key"]["id"]: row["row"]["price"] for row in t.state("items_lookup").all()}
        assert items == self.items


def rows_of(t: JobDriver) -> list[dict[str, Any]]:
    """The rows of both sinks since the last call, by order."""
    out = t.rows("out") + [{**row, "price": None} for row in t.rows("unpriced")]
    return sorted(out, key=lambda row: row["id"])


def test_any_checkpoint_gives_its_own_state_and_goes_on_right_at_any_parallelism(
    job_driver: Make,
) -> None:
    t = job_driver(shop)
    truth = Truth(11)
    points: dict[str, Truth] = {}
    for number in range(7):
        expected = truth.batch(t, f"v{number}")
        t.run()
        assert rows_of(t) == expected
        points[t.checkpoint()] = truth.copy()
    truth.assert_state(t)

    chosen = random.Random(3).sample(sorted(points), 3)
    for at, parallelism in zip(chosen, (2, 3, 1), strict=True):
        then = points[at]
        t.restore(at, parallelism=parallelism).run()
        # all records after the checkpoint are read again: the tables are as they are now
        assert [row["id"] for row in rows_of(t)] == list(range(then.number + 1, truth.number + 1))
        truth.assert_state(t)
        expected = truth.orders(t)
        t.run()
        assert rows_of(t) == expected


def test_the_restored_state_is_that_of_the_checkpoint(job_driver: Make) -> None:
    t = job_driver(shop)
    truth = Truth(5)
    for number in range(4):
        truth.batch(t, f"v{number}")
        t.run()
    then, at, home = truth.copy(), t.checkpoint(), t.home
    for number in range(3):
        truth.batch(t, f"w{number}")
        t.run()
    found = StateReader(t.spark, find_snapshot(Home(home), at, "shop")).view("users_lookup")
    assert {row["key"]["id"]: row["row"]["name"] for row in found.all()} == then.users
    key = next(iter(then.users))
    assert found.get(id=key) == {"name": then.users[key]}


def test_a_savepoint_outlives_its_home_and_can_be_moved(job_driver: Make, tmp_path: Path) -> None:
    t = job_driver(shop)
    truth = Truth(7)
    for number in range(3):
        truth.batch(t, f"v{number}")
        t.run()
    rows_of(t)
    label = t.savepoint("before").removeprefix("sp:")
    folder = Path(t.home) / "jobs" / "shop" / "savepoints" / label
    moved = tmp_path / "elsewhere" / "moved"
    moved.parent.mkdir()
    shutil.move(folder, moved)
    shutil.rmtree(t.home)
    t.restore(str(moved), parallelism=3)
    expected = truth.orders(t)
    t.run()
    assert rows_of(t) == expected
    truth.assert_state(t)
    assert t.metrics("users")["records_out"] == 180, "no table row was read again"
    # another parallelism begins a new run, which can crash as any other
    expected = truth.orders(t)
    t.restore(parallelism=2).crash()
    t.run()
    assert rows_of(t) == expected


def test_a_damaged_file_is_found_before_the_start_and_named(job_driver: Make) -> None:
    t = job_driver(shop)
    truth = Truth(1)
    for number in range(2):
        truth.batch(t, f"v{number}")
        t.run()
    t.savepoint("whole")
    folder = Path(t.home) / "jobs" / "shop" / "savepoints" / "whole"
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    assert len(files) > 30
    random.Random(2).shuffle(files)
    # through a whole start: one file for each kind of damage and kind of file
    seen = set()
    for path in files:
        name = path.relative_to(folder).as_posix()
        whole = path.read_bytes()
        for damage in ("delete", "truncate", "flip"):
            if damage != "delete" and not whole:
                continue
            path.unlink()
            if damage == "truncate":
                path.write_bytes(whole[:-1])
            elif damage == "flip":
                at = len(whole) // 2
                path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
            kind = (damage, path.suffix, path.parent.name.isdigit())
            if kind not in seen:
                seen.add(kind)
                with pytest.raises(RefusedError, match=name) as refused:
                    t.restore("sp:whole").run()
                assert refused.value.exit_code == ExitCode.REFUSED
                assert "the newest usable snapshot is r1/ck:1" in str(refused.value)
            else:
                problems = _problems(t, "sp:whole")
                assert any(name in problem for problem in problems), (name, damage)
            path.unlink(missing_ok=True)
            path.write_bytes(whole)
    expected = truth.orders(t)
    t.restore("sp:whole").run()
    assert [row["id"] for row in rows_of(t)][-80:] == [row["id"] for row in expected]


def _problems(t: JobDriver, text: str) -> list[str]:
    try:
        return [problem.file for problem in find_snapshot(Home(t.home), text, "shop").problems()]
    except hg.HeadgateError as error:
        return [str(error)]


def test_a_retained_checkpoint_with_a_missing_state_file_is_refused(job_driver: Make) -> None:
    t = job_driver(shop)
    truth = Truth(4)
    for number in range(3):
        truth.batch(t, f"v{number}")
        t.run()
    state = Path(t.home) / "jobs" / "shop" / "runs" / "r1" / "spark" / "state"
    lost = next(iter(sorted(state.rglob("3_*.changelog"))))
    whole = lost.read_bytes()
    lost.unlink()
    with pytest.raises(RefusedError, match=lost.name) as refused:
        t.run()
    assert "--from r1/ck:1" in str(refused.value)
    lost.write_bytes(whole[: len(whole) // 2] + b"?" + whole[len(whole) // 2 + 1 :])
    for start in (t, t.restore("ck:2")):  # a plain resume, too
        with pytest.raises(RefusedError, match=lost.name):
            start.run()
    t.restore("ck:1").run()
    truth.assert_state(t)
