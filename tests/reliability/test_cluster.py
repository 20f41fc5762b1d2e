"""A real Spark standalone cluster: executors killed with -9, tasks failed after their commit."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.reliability.processes import Cluster, Driver
from tests.reliability.store_data import Producer
from tests.reliability.test_driver_kills import ORDERS, STORE, assert_truth, checkpoints, finish

KILLS = 3


@pytest.mark.slow
def test_rows_and_counts_are_exact_when_executors_die(spark: SparkSession, tmp_path: Path) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    cluster = Cluster(tmp_path, workers=2)
    kills = 0
    try:
        producer = Producer(data, orders=ORDERS, chunks=25, seed=5, taken=lambda: checkpoints(home))
        java = "-XX:+UseParallelGC -XX:TieredStopAtLevel=1"
        flags = ("--master", cluster.url, "--conf", "spark.executor.memory=1g",
                 "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.driver.memory=1g",
                 "--conf", f"spark.executor.extraJavaOptions={java}",
                 "--conf", "spark.headgate.test.fail.after.state.commit=2")  # fmt: skip
        producer.start()
        driver = Driver(STORE, data, home, "--parallelism", "4", spark=flags)
        pick = random.Random(6)
        until = time.monotonic() + 240
        while kills < KILLS and time.monotonic() < until:
            time.sleep(pick.uniform(5, 9))
            assert driver.process.poll() is None, driver.text()[-3000:]
            executors = cluster.executors()
            if executors and checkpoints(home) > 0:
                os.kill(pick.choice(executors), signal.SIGKILL)
                kills += 1
        assert kills == KILLS
        producer.finish()
        driver.process.send_signal(signal.SIGTERM)
        assert driver.wait(240) == 0, driver.text()[-3000:]
    finally:
        cluster.stop()
    # what is left is read by a local driver from the same home
    finish(STORE, data, home)
    print(f"{kills} executors killed")
    assert_truth(spark, data, home, ORDERS)
