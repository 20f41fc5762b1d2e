"""Owns `make soak-pulsar`: the store job Pulsar to Pulsar, killed and killed, then compared.

python -m tests.reliability.soak_pulsar --kills 10
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from headgate.brokers import PulsarBroker
from headgate.connectors.log.files import LogRecord
from headgate.runtime.session import get_session
from tests.pulsar.client import Pulsar
from tests.reliability.processes import Driver
from tests.reliability.store_data import Producer
from tests.reliability.store_truth import expected
from tests.reliability.test_driver_kills import (
    STORE,
    assert_truth,
    checkpoints,
    finish,
    work_a_while,
)
from tests.reliability.test_kafka import kill
from tests.reliability.topics import OUTPUTS, PulsarTopics

SUBSCRIPTION = "store"
_IDS = ("message_id", "of_partition")


def tagged(folder: Path) -> Path:
    """The store job with a subscription, and with each order's message id beside its columns."""
    text = STORE.read_text()
    for old, new in (
        (
            'hg.topic(job.param("orders", "log:data/orders"), schema=ORDER)',
            f'hg.topic(job.param("orders"), schema=ORDER, subscription="{SUBSCRIPTION}", '
            'metadata="message_id, partition AS of_partition")',
        ),
        ('"createdAt", "paidAt")', '"createdAt", "paidAt", "message_id", "of_partition")'),
    ):
        assert old in text
        text = text.replace(old, new)
    path = folder / "store.py"
    path.write_text(text)
    return path


@dataclass(frozen=True)
class TaggedTopics(PulsarTopics):
    """Outputs as the store job itself would have written them, without the ids."""

    def read(self, name: str) -> list[LogRecord]:
        if name not in OUTPUTS:
            return super().read(name)
        records = []
        for record in super().read(name):
            row = json.loads(record.value or "")
            kept = {column: value for column, value in row.items() if column not in _IDS}
            records.append(dataclasses.replace(record, value=json.dumps(kept)))
        return records

    def ids_written(self) -> Counter[tuple[int, str]]:
        """The message of each order, as the outputs tell it; malformed ones by their place."""
        found: Counter[tuple[int, str]] = Counter()
        places = {(r.partition, r.offset): r for r in super().read("orders")}
        with closing(Pulsar(self.url)) as pulsar:
            ids = {}
            for m in pulsar.read(self.prefix + "orders"):
                ids[m.partition, m.value] = m.id
            for name in OUTPUTS:
                for m in pulsar.read(self.prefix + name):
                    row = json.loads(m.value or "")
                    if name == "malformed":
                        source = places[row["partition"], row["offset"]]
                        found[source.partition, ids[source.partition, source.value or ""]] += 1
                    else:
                        found[row["of_partition"], row["message_id"]] += 1
        return found

    def ids_sent(self) -> Counter[tuple[int, str]]:
        """The message of each order, as the topic has it."""
        with closing(Pulsar(self.url)) as pulsar:
            return Counter((m.partition, m.id) for m in pulsar.read(self.prefix + "orders"))


class Soak:
    """A broker of its own, and the store job on it."""

    def __init__(self, folder: Path, *, orders: int, kills: int, seed: int) -> None:
        self.folder, self.orders, self.kills, self.seed = folder, orders, kills, seed
        self.home = folder / "home"
        self.app = tagged(folder)
        self.pick = random.Random(seed)
        self.began = time.monotonic()
        self.done = {"driver": 0, "halt": 0, "broker": 0}

    def run(self, spark: SparkSession) -> str:
        """Kill and compare; what was done, in a sentence."""
        with PulsarBroker(self.folder / "pulsar") as broker:
            store = TaggedTopics(broker.servers, "")
            producer = Producer(
                store, orders=self.orders, chunks=3 * self.kills, seed=self.seed,
                taken=lambda: checkpoints(self.home),
            )  # fmt: skip
            producer.start()
            for number in range(self.kills):
                self._round(number, store)
            producer.finish()
            driver = self._driver(store)
            assert work_a_while(driver, self.home, 1, 0), driver.text()[-3000:]
            kill(broker)
            self._count("broker")
            time.sleep(self.pick.uniform(1, 6))
            broker.start(quiet=True)
            driver.kill()
            self._count("driver")
            finish(self.app, store, self.home)
            assert_truth(spark, store, self.home, self.orders)
            assert store.ids_written() == store.ids_sent(), "each message of the topic, once"
            with closing(Pulsar(broker.servers)) as pulsar:
                assert pulsar.backlog("orders", SUBSCRIPTION) == 0
            batches = expected(self.home, store).batches
        return (
            f"{self.done['driver']} kills of the driver, {self.done['halt']} halts in or behind "
            f"the sinks, {self.done['broker']} kill of the broker, {batches} batches, "
            f"{self.orders:,} orders, seed {self.seed}: rows, message ids, state and counters are "
            "exact, the backlog is 0"
        )

    def _driver(self, store: PulsarTopics, **env: str) -> Driver:
        return Driver(self.app, store, self.home, env=env)

    def _round(self, number: int, store: PulsarTopics) -> None:
        """One driver's life; every third dies when its rows are out and its commit is not."""
        if number % 3 == 1:
            point = self.pick.choice(["after_sink", "in_transaction", "before_commit"])
            halted = self._driver(store, HEADGATE_HALT=f"{point}:{checkpoints(self.home) + 1}")
            assert halted.wait(240) == 1, halted.text()[-3000:]
            self._count("halt")
        driver = self._driver(store)
        assert work_a_while(driver, self.home, 1, self.pick.uniform(0, 4)), driver.text()[-3000:]
        driver.kill()
        self._count("driver")

    def _count(self, what: str) -> None:
        self.done[what] += 1
        print(f"{what} {self.done[what]}: {checkpoints(self.home)} checkpoints, "
              f"{time.monotonic() - self.began:.0f} s", flush=True)  # fmt: skip


def main() -> int:
    """Kill, restart, and compare; 0 if each order is where it must be, once."""
    parser = argparse.ArgumentParser(prog="soak_pulsar", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=9, help="one more comes with the broker's")
    parser.add_argument("--orders", type=int, default=200_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="headgate-soak-pulsar-"))
    spark = get_session(parallelism=2)
    print(Soak(folder, orders=options.orders, kills=options.kills, seed=options.seed).run(spark))
    spark.stop()
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
