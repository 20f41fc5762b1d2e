"""Drivers killed with -9 in the middle of what they do beside batches: savepoints, retention."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.home.layout import Home
from headgate.home.operations import Operations
from headgate.snapshots.savepoints import create_savepoint, savepoints
from tests.reliability.processes import Driver
from tests.reliability.store_data import Producer
from tests.reliability.test_driver_kills import STORE, assert_truth, checkpoints, finish

ORDERS = 15_000


def hasty(folder: Path) -> Path:
    """The store job with many checkpoints, of which few are kept."""
    text = STORE.read_text()
    text = text.replace('every="5 seconds", retain=10', 'every="300 ms", retain=2')
    assert "300 ms" in text
    path = folder / "hasty.py"
    path.write_text(text)
    return path


def until(happens: Callable[[], bool], driver: Driver, pause: float = 0) -> None:
    """Wait while the driver lives; without a pause, so that a kill comes at the very moment."""
    end = time.monotonic() + 120
    while not happens():
        assert time.monotonic() < end and driver.process.poll() is None, driver.text()[-3000:]
        if pause:
            time.sleep(pause)


def made_more(home: Path, before: int) -> bool:
    return checkpoints(home) > before


def is_gone(path: Path) -> bool:
    return not path.exists()


@pytest.mark.slow
def test_a_driver_killed_while_it_makes_a_savepoint(spark: SparkSession, tmp_path: Path) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    producer = Producer(data, orders=ORDERS, chunks=12, seed=11, taken=lambda: checkpoints(home))
    producer.start()
    app = hasty(tmp_path)
    job = Home(str(home)).job("store")
    kills = hits = 0
    while hits == 0 and kills < 6:
        driver = Driver(app, data, home)
        before = checkpoints(home)
        until(partial(made_more, home, before), driver, 0.05)
        lease = job.read().lease
        assert lease is not None
        folder = home / "jobs" / "store" / "savepoints" / f"half{kills}"
        Operations(job).request("savepoint", {"label": folder.name}, driver=lease.owner.token)
        until(folder.exists, driver)
        driver.kill()
        kills += 1
        hits += not (folder / "manifest.json").exists()
    assert hits, "no kill came before a savepoint was whole"
    print(f"{kills} kills, {hits} of them while a savepoint was made")
    assert f"half{kills - 1}" not in [record.label for record in savepoints(job)]
    current = job.current()
    assert current is not None
    create_savepoint(current, label=f"half{kills - 1}")  # the name is free again
    producer.finish()
    finish(app, data, home)
    assert_truth(spark, data, home, ORDERS)


@pytest.mark.slow
def test_a_driver_killed_while_retention_deletes(spark: SparkSession, tmp_path: Path) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    producer = Producer(data, orders=ORDERS, chunks=24, seed=12, taken=lambda: checkpoints(home))
    producer.start()
    app = hasty(tmp_path)
    offsets = home / "jobs" / "store" / "runs" / "r1" / "spark" / "offsets"
    for kill in range(2):
        driver = Driver(app, data, home)
        before = checkpoints(home)
        until(partial(made_more, home, before), driver, 0.05)
        oldest = min(int(name) for name in os.listdir(offsets) if name.isdigit())
        until(partial(is_gone, offsets / str(oldest)), driver)
        driver.kill()
        print(f"kill {kill + 1}: ck:{oldest} had just been deleted")
    producer.finish()
    finish(app, data, home)
    assert_truth(spark, data, home, ORDERS)
