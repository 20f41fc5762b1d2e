"""Owns `make soak-kafka`: the store job Kafka to Kafka, with everything killed, then compared.

python -m tests.reliability.soak_kafka --kills 20
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from headgate.brokers import KafkaBroker
from headgate.runtime.session import get_session
from tests.reliability.processes import Cluster, Driver
from tests.reliability.store_data import Producer
from tests.reliability.store_truth import expected
from tests.reliability.test_driver_kills import (
    STORE,
    assert_truth,
    checkpoints,
    finish,
    work_a_while,
)
from tests.reliability.test_kafka import assert_no_open_transaction, kill
from tests.reliability.topics import KafkaTopics


class Soak:
    """A broker, a cluster of two workers, and the store job between them."""

    def __init__(self, folder: Path, *, orders: int, kills: int, seed: int) -> None:
        self.folder, self.orders, self.kills, self.seed = folder, orders, kills, seed
        self.home = folder / "home"
        self.pick = random.Random(seed)
        self.began = time.monotonic()
        self.done = {"driver": 0, "executor": 0, "halt": 0, "broker": 0}

    def run(self) -> None:
        with KafkaBroker(self.folder / "kafka") as broker:
            store = KafkaTopics(broker.servers, "")
            cluster = Cluster(self.folder, workers=2)
            flags = ("--master", cluster.url, "--conf", "spark.executor.memory=1g",
                     "--conf", "spark.driver.host=127.0.0.1",
                     "--conf", "spark.driver.memory=1g")  # fmt: skip
            producer = Producer(
                store, orders=self.orders, chunks=3 * self.kills, seed=self.seed,
                taken=lambda: checkpoints(self.home), ahead=4,
            )  # fmt: skip
            producer.start()
            try:
                for number in range(self.kills):
                    self._round(number, broker, cluster, store, flags)
            finally:
                cluster.stop()
            producer.finish()
            finish(STORE, store, self.home)
            spark = get_session(parallelism=2)
            assert_truth(spark, store, self.home, self.orders)
            assert_no_open_transaction(spark, store)
            batches = expected(self.home, store).batches
            spark.stop()
        print(
            f"{self.done['driver']} kills of the driver, {self.done['executor']} of executors, "
            f"{self.done['halt']} halts between transaction and commit, {self.done['broker']} "
            f"kills of the broker, {batches} batches, {self.orders:,} orders, seed {self.seed}: "
            "rows, state and counters are exact, no transaction is open"
        )

    def _round(
        self, number: int, broker: KafkaBroker, cluster: Cluster, store: KafkaTopics,
        flags: tuple[str, ...],
    ) -> None:  # fmt: skip
        """One driver's life; what dies besides it goes by the round's number."""
        if number % 10 == 4:  # dies when all is in Kafka and nothing in Spark's commit log
            env = {"HEADGATE_HALT": f"after_sink:{checkpoints(self.home) + 1}"}
            halted = Driver(STORE, store, self.home, "--parallelism", "4", spark=flags, env=env)
            assert halted.wait(240) == 1, halted.text()[-3000:]
            self._count("halt")
        driver = Driver(STORE, store, self.home, "--parallelism", "4", spark=flags)
        assert work_a_while(driver, self.home, 1, 0), driver.text()[-3000:]
        if number % 2 == 0:
            os.kill(self.pick.choice(cluster.executors()), signal.SIGKILL)
            self._count("executor")
            assert work_a_while(driver, self.home, 1, 0), driver.text()[-3000:]
        if number % 10 == 7:
            kill(broker)
            self._count("broker")
            time.sleep(self.pick.uniform(1, 6))
            broker.start(quiet=True)
            assert work_a_while(driver, self.home, 1, 0), driver.text()[-3000:]
        time.sleep(self.pick.uniform(0, 4))
        driver.kill()
        self._count("driver")

    def _count(self, what: str) -> None:
        self.done[what] += 1
        print(f"{what} {self.done[what]}: {checkpoints(self.home)} checkpoints, "
              f"{time.monotonic() - self.began:.0f} s", flush=True)  # fmt: skip


def main() -> int:
    """Kill, restart, and compare; 0 if each order is where it must be, once."""
    parser = argparse.ArgumentParser(prog="soak_kafka", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--orders", type=int, default=500_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="headgate-soak-kafka-"))
    Soak(folder, orders=options.orders, kills=options.kills, seed=options.seed).run()
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
