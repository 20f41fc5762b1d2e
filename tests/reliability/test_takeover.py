"""One driver at a time: two at once, and one that was frozen past its lease.

The contract of homes (homes/test_contract.py) tries both on a smaller job, with a lease made older.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.home.layout import Home
from tests.reliability.processes import Driver
from tests.reliability.store_data import Producer
from tests.reliability.test_driver_kills import STORE, assert_truth, checkpoints, finish


@pytest.mark.long
def test_of_two_drivers_started_at_once_one_runs(spark: SparkSession, tmp_path: Path) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    Producer(data, orders=5_000, chunks=2, seed=5).write_all()
    both = [Driver(STORE, data, home, "--bounded") for _ in range(2)]
    codes = sorted(driver.wait(180) for driver in both)
    assert codes == [0, 5], both[0].text()[-3000:]
    assert "is driven by process" in both[0].text()
    assert_truth(spark, data, home, 5_000)


@pytest.mark.long
def test_a_driver_that_was_frozen_past_its_lease_writes_nothing_any_more(
    spark: SparkSession, tmp_path: Path
) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    producer = Producer(data, orders=20_000, chunks=4, seed=6, taken=lambda: checkpoints(home))
    producer.start()
    frozen = Driver(STORE, data, home)
    until = time.monotonic() + 120
    while checkpoints(home) < 2:
        assert time.monotonic() < until, frozen.text()[-3000:]
        time.sleep(0.05)
    os.killpg(frozen.process.pid, signal.SIGSTOP)  # its JVM is in the same group
    producer.finish()
    lease = Home(str(home)).job("store").read().lease
    assert lease is not None
    time.sleep(lease.ttl_seconds + 1)
    finish(STORE, data, home)
    assert_truth(spark, data, home, 20_000)

    more = Producer(data, orders=2_000, chunks=1, seed=8, fresh=False)
    more.write_all()  # something that the frozen driver would like to read
    before = _everything(data, home)
    os.killpg(frozen.process.pid, signal.SIGCONT)
    assert frozen.wait(120) == 1, frozen.text()[-3000:]
    assert "lease" in frozen.text()
    assert _everything(data, home) == before, "the woken driver has written"
    finish(STORE, data, home)
    assert_truth(spark, data, home, 22_000)


def _everything(data: Path, home: Path) -> dict[str, bytes]:
    """What counts: the outputs, Spark's logs and our records (state files have unique names)."""
    spark = [p for log in ("offsets", "commits") for p in home.glob(f"jobs/*/runs/*/spark/{log}/*")]
    records = [p for kind in ("checkpoints", "journal", "events")
               for p in home.glob(f"jobs/*/runs/*/{kind}/*")]  # fmt: skip
    outputs = [p for p in data.rglob("*.jsonl") if p.parent.parent.name not in ("orders", "users",
               "items") and "_staging" not in p.parts]  # fmt: skip
    # a hidden file is one that was begun and never finished: it counts as nothing
    counted = [p for p in [*spark, *records, *outputs] if not p.name.startswith(".")]
    return {str(p): p.read_bytes() for p in counted if p.is_file()}
