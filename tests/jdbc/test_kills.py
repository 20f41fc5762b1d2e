"""Tables are exact although drivers and the database are killed with -9, and a driver is frozen."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from tests.jdbc.server import PASSWORD, PRODUCTS, USER, Server, started
from tests.reliability.processes import Driver
from tests.reliability.test_driver_kills import checkpoints, work_a_while

JOB = Path(__file__).with_name("shop_job.py")


class Killed:
    """A folder with orders, a home, and a server that may be killed."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.folder, self.home, self.server = folder, folder / "home", server
        self.topic, self.dice = TopicFiles(folder / "orders"), random.Random(11)
        self.topic.create(2)
        self.sent: list[dict[str, Any]] = []

    def send(self, count: int) -> None:
        first = len(self.sent)
        roll = self.dice
        came = [
            {"id": n * 13, "user": f"u{roll.randrange(900)}", "price": roll.randint(-9, 15)}
            for n in range(first, first + count)
        ]
        for partition in range(2):
            part = [Record(json.dumps(row)) for row in came[partition::2]]
            self.topic.append(part, partition=partition)
        self.sent += came

    def driver(self, *flags: str, **env: str) -> Driver:
        # a password goes to a server of MySQL only with its key
        query = "?allowPublicKeyRetrieval=true" if self.server.product == "mysql" else ""
        sets = ("--set", f"url={self.server.url}{query}", "--set", f"user={USER}", "--set",
                "password=env:SHOP_PASSWORD")  # fmt: skip
        return Driver(JOB, self.folder, self.home, *sets, *flags, job="shop", names=("orders",),
                      env={"SHOP_PASSWORD": PASSWORD, **env})  # fmt: skip

    def finish(self) -> None:
        driver = self.driver("--bounded")
        assert driver.wait(240) == 0, driver.text()[-3000:]

    def halted(self, point: str, batch: int) -> None:
        """A driver that dies at a point of the commit of this batch or a later one."""
        driver = self.driver(HEADGATE_HALT=f"{point}:{batch}")
        assert driver.wait(120) == 1, driver.text()[-3000:]

    def assert_exact(self) -> None:
        every = Counter(str(sorted(row.items())) for row in self.server.records("every_order"))
        assert every == Counter(str(sorted(row.items())) for row in self.sent)
        prices: dict[str, list[int]] = {}
        for row in self.sent:
            prices.setdefault(row["user"], []).append(row["price"])
        truth = [
            {"user": user, "total": sum(all), "orders": len(all)}
            for user, all in sorted(prices.items())
            if 5 <= sum(all) <= 40
        ]
        assert self.server.records("totals", ['"user"']) == truth
        assert 0 < len(truth) < len(prices)


@pytest.fixture
def killed(tmp_path: Path, product: str) -> Iterator[Killed]:
    server = started(product)
    yield Killed(tmp_path, server)
    server.close()


# The short one dies with its transaction open; jdbc/test_exactly_once.py dies at every point, in
# one process.
@pytest.mark.parametrize(
    ("product", "times"),
    [
        pytest.param("postgresql", 1, marks=pytest.mark.slow),
        *(pytest.param(product, 2, marks=pytest.mark.long) for product in PRODUCTS),
    ],
)
def test_tables_are_exact_when_drivers_and_the_database_are_killed(
    killed: Killed, times: int
) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    moments = random.Random(seed)
    killed.send(2500)
    for batch, point in enumerate(("in_transaction", "after_transaction")[:times]):
        killed.halted(point, batch)
    killed.send(2500)
    driver = killed.driver()
    for _ in range(times):
        killed.send(2500)
        assert work_a_while(driver, killed.home, 1, moments.uniform(0, 0.5), "shop")
        killed.server.kill()
        time.sleep(moments.uniform(0.2, 1.5))
        killed.server.start()
    assert work_a_while(driver, killed.home, 1, 0, "shop"), "the job goes on by itself"
    driver.kill()
    killed.finish()
    current = Home(str(killed.home)).job("shop").current()
    assert current is not None
    reasons = {e.details["reason"] for e in current.events() if e.kind == "failed"}
    print(f"{times + 1} deaths of drivers, {times} of the database, seed {seed}: {reasons}")
    assert reasons <= {"DATABASE_UNREACHABLE", "DRIVER_GONE"}
    killed.assert_exact()


@pytest.mark.long
@pytest.mark.parametrize("product", PRODUCTS)
def test_a_driver_that_was_frozen_in_its_transaction_holds_up_nobody(killed: Killed) -> None:
    killed.send(2000)
    frozen = killed.driver(HEADGATE_FREEZE="in_transaction:2")
    until = time.monotonic() + 120
    while checkpoints(killed.home, "shop") < 2 or not killed.server.rows(
        killed.server.in_transaction
    ):
        assert time.monotonic() < until and frozen.process.poll() is None
        time.sleep(0.05)
    lease = Home(str(killed.home)).job("shop").read().lease
    assert lease is not None
    time.sleep(lease.ttl_seconds + 1)
    killed.finish()
    killed.assert_exact()
    os.killpg(frozen.process.pid, signal.SIGCONT)
    assert frozen.wait(120) == 1, frozen.text()[-3000:]
    killed.assert_exact()
