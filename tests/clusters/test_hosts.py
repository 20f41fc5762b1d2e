"""The store on machines of their own, without a shared disk or Headgate; one of them dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headgate
from headgate.home.layout import Home
from tests.clusters.bare_python import bare_python
from tests.clusters.hosts import Network
from tests.clusters.store import kafka_at, members, quick_store, wait_for_freeze, wait_until_read
from tests.homes.s3 import KEYS, S3Server
from tests.reliability.processes import Cluster, Driver
from tests.reliability.small_disk import needs_mounts
from tests.reliability.store_data import Producer
from tests.reliability.test_driver_kills import assert_truth, checkpoints
from tests.reliability.topics import KafkaTopics

ORDERS = 12_000


@pytest.fixture
def network() -> Iterator[Network]:
    made = Network()
    try:
        yield made
    finally:
        made.close()


# In part: executors that die (reliability/test_cluster.py), that do not see the home
# (reliability/test_unseen_home.py), a home in S3 (homes/test_contract.py).
@needs_mounts
@pytest.mark.long
def test_the_store_is_exact_on_two_machines_of_which_one_dies_in_a_batch(
    spark: SparkSession, network: Network, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "python").mkdir()
    python = bare_python(tmp_path / "python", copied=True)
    broker, servers = kafka_at(network.address, tmp_path / "kafka")
    s3 = S3Server(tmp_path, network.address)
    cluster = Cluster(tmp_path, 0, network)
    try:
        home = s3.url(s3.bucket("homes"), "store")
        hosts = [network.host(keeps=[python.parents[1]]) for _ in range(2)]
        cluster.add_worker(host=hosts[0])
        # an executor of this one stops itself while its transactions are open
        dying = cluster.add_worker(host=hosts[1], HEADGATE_FREEZE="in_transaction:2")

        store = KafkaTopics(servers, "")
        producer = Producer(store, orders=ORDERS, chunks=10, seed=4,
                            taken=lambda: checkpoints(home))  # fmt: skip
        producer.start()
        driver = Driver(quick_store(tmp_path), store, home, "--parallelism", "4",
                        spark=cluster.flags(fail_every=0), log=tmp_path / "driver.log",
                        env={"PYSPARK_PYTHON": str(python)})  # fmt: skip
        wait_for_freeze(dying, driver)
        killed = members(dying)
        assert len(killed) >= 2, "the worker, and an executor at least"
        for pid in killed:  # as they see it, nothing of ours is there
            seen = Path(f"/proc/{pid}/root")
            assert (seen / python.relative_to("/")).exists()
            for ours in (Path(headgate.__file__), tmp_path / "driver.log"):
                assert not (seen / ours.relative_to("/")).exists(), ours
        os.killpg(dying, signal.SIGKILL)
        before = checkpoints(home)
        producer.finish()
        wait_until_read(home, ORDERS, driver)
        driver.process.send_signal(signal.SIGTERM)
        assert driver.wait(120) == 0, driver.text()[-3000:]
        assert checkpoints(home) > before >= 2

        assert_truth(spark, store, home, ORDERS)
        (started,) = [e for e in Home(home).job("store").current().events() if e.kind == "started"]
        assert started.details["master"] == cluster.url
    finally:
        cluster.stop()
        s3.stop()
        broker.stop()
