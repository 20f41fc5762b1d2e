"""A real Spark standalone cluster: executors killed with -9, tasks failed after their commit."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.reliability.processes import Cluster, Driver
from tests.reliability.store_data import Producer
from tests.reliability.test_driver_kills import STORE, assert_truth, checkpoints, finish

ORDERS = 20_000
KILLS = 3


@pytest.mark.slow
def test_rows_and_counts_are_exact_when_executors_die(spark: SparkSession, tmp_path: Path) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    cluster = Cluster(tmp_path, workers=2)
    try:
        producer = Producer(data, orders=ORDERS, chunks=25, seed=5, taken=lambda: checkpoints(home))
        producer.start()
        driver = Driver(STORE, data, home, "--parallelism", "4", spark=cluster.flags(fail_every=2))
        cluster.kill_executors(
            driver, KILLS, pause=(5, 9), ready=lambda kills: checkpoints(home) > 0
        )
        producer.finish()
        driver.process.send_signal(signal.SIGTERM)
        assert driver.wait(240) == 0, driver.text()[-3000:]
    finally:
        cluster.stop()
    # what is left is read by a local driver from the same home
    finish(STORE, data, home)
    assert_truth(spark, data, home, ORDERS)
