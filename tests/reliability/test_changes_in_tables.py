"""A stream of changes into PostgreSQL, Delta and a compacted Kafka topic ends in the same table."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.connectors.log.files import Record, TopicFiles
from tests.jdbc.server import PASSWORD, USER, Postgres
from tests.kafka.client import Kafka
from tests.lakes.tables import read
from tests.reliability.processes import Driver
from tests.reliability.test_driver_kills import work_a_while

ROOT = Path(__file__).parents[2]
JOB = Path(__file__).with_name("changes_job.py")
POINTS = ("in_transaction", "after_transaction", "before_sink", "mid_sink", "after_sink",
          "before_commit", "after_commit")  # fmt: skip
ORDERS, KILLS = 600, 10


@pytest.fixture
def server() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()


@pytest.mark.long
def test_three_tables_are_the_table_of_a_plain_computation(
    tmp_path: Path, kafka_servers: str, server: Postgres
) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    dice, home, lake = random.Random(seed), tmp_path / "home", tmp_path / "lake"
    kafka = Kafka(kafka_servers)
    totals = kafka.topic(3, cleanup_policy="compact")
    orders = TopicFiles(tmp_path / "orders")
    orders.create(2)
    sums: dict[str, list[int]] = {}
    deleted = 0

    def table() -> dict[str, dict[str, Any]]:
        return {
            user: {"user": user, "total": sum(prices), "orders": len(prices)}
            for user, prices in sums.items()
            if 5 <= sum(prices) <= 40
        }

    def send(count: int) -> None:
        nonlocal deleted
        before = table().keys()
        made = [(f"u{dice.randrange(700) * 7919}", dice.randint(-9, 15)) for _ in range(count)]
        for partition in range(2):
            rows = [json.dumps({"user": u, "price": p}) for u, p in made[partition::2]]
            orders.append([Record(row) for row in rows], partition=partition)
        for user, price in made:
            sums.setdefault(user, []).append(price)
        deleted += len(before - table().keys())

    def driver(*flags: str, **env: str) -> Driver:
        sets = {"url": server.url, "user": USER, "password": "env:SHOP_PASSWORD",
                "lake": str(lake), "totals": f"kafka://{kafka_servers}/{totals}"}  # fmt: skip
        words = [word for name, value in sets.items() for word in ("--set", f"{name}={value}")]
        return Driver(JOB, tmp_path, home, *words, *flags, job="changes", names=("orders",),
                      env={"PYTHONPATH": str(ROOT), "SHOP_PASSWORD": PASSWORD, **env})  # fmt: skip

    for batch, point in enumerate(POINTS):
        send(ORDERS)
        halted = driver(HEADGATE_HALT=f"{point}:{batch}")
        assert halted.wait(180) == 1, halted.text()[-3000:]
    for kill in range(KILLS):
        send(ORDERS)
        killed = driver()
        assert work_a_while(killed, home, 1, dice.uniform(0, 1), "changes")
        if kill % 5 == 4:
            server.kill()
            time.sleep(dice.uniform(0.2, 1.5))
            server.start()
            assert work_a_while(killed, home, 1, 0, "changes"), "the job goes on by itself"
        killed.kill()
    finished = driver("--bounded")
    assert finished.wait(300) == 0, finished.text()[-3000:]

    truth = table()
    print(f"{len(POINTS)} halts, {KILLS} kills, 2 of the database, seed {seed}, {len(truth)} users")
    assert 0 < len(truth) < len(sums)
    assert deleted > 50
    assert {row["user"]: row for row in server.records("totals")} == truth
    assert len(server.records("totals")) == len(truth)
    in_lake = read(lake)
    assert {row["user"]: row for row in in_lake} == truth
    assert len(in_lake) == len(truth)
    last = {record.key: record.value for record in kafka.read(totals)}
    assert {user: json.loads(row) for user, row in last.items() if row is not None} == truth
