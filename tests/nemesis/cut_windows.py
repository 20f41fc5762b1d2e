"""Windows from Kafka to Kafka, exactly once, on a home whose power is cut at random moments."""

from __future__ import annotations

import random
import subprocess
import sys
import time
import uuid
from pathlib import Path

from pyspark.sql import SparkSession

from tests.kafka.client import Kafka, Send
from tests.nemesis.power_cut import CutDisk, assert_kept
from tests.reliability.processes import Cluster, Driver
from tests.reliability.test_driver_kills import checkpoints, work_a_while
from tests.reliability.test_windows import APP, JOB, assert_rows, assert_state_is_empty
from tests.reliability.topics import KafkaTopics
from tests.reliability.window_data import TOPICS, Event, Events, event_json, parsed


class KafkaEvents(Events):
    """The same events in a topic of a broker."""

    def __init__(self, topics: KafkaTopics, *, chunks: int, seed: int, home: Path) -> None:
        self._kafka, self._topics = Kafka(topics.servers), topics
        taken = 0

        def seen() -> int:
            nonlocal taken
            taken = max(taken, checkpoints(home, JOB))  # the home is away while power is
            return taken

        super().__init__(home, chunks=chunks, size=1000, seed=seed, taken=seen)

    def create(self, data: Path) -> None:
        for name in TOPICS:
            self._kafka.create(self._topics.prefix + name, 2)

    def write(self, chunk: list[Event]) -> None:
        sent = [Send(event_json(event), partition=event.id % 2) for event in chunk]
        self._kafka.send(self._topics.prefix + "events", sent)


class CutWindows:
    """One job, cut down and started again; its topics are not on the disk.

    With a cluster the state is written by executors in processes of their own.
    """

    def __init__(
        self, folder: Path, servers: str, *, cuts: int, seed: int, cluster: Cluster | None = None
    ) -> None:
        self._cluster = cluster
        self._folder, self._cuts, self._pick = folder, cuts, random.Random(seed)
        self._topics = KafkaTopics(servers, f"cut-{uuid.uuid4().hex[:8]}-")
        self._disk = CutDisk(folder / "machine")
        self._home = self._disk.path / "home"
        self._kept = folder / "kept"
        self._log = folder / "driver.log"
        self._seed, self._began = seed, time.monotonic()
        chunks = 20 + 6 * cuts
        self._events = KafkaEvents(self._topics, chunks=chunks, seed=seed, home=self._home)

    def run(self) -> None:
        """Cut and start again; then finish, and keep the home where no disk goes away."""
        print(f"seed {self._seed}", flush=True)
        self._events.start()
        with self._disk:
            for number in range(self._cuts):
                self._cut(number)
            self._events.finish()
            driver = self._driver("--bounded", "--drain")
            assert driver.wait(240) == 0, self._tail()
            subprocess.run(["cp", "-a", str(self._home), str(self._kept)], check=True)

    def assert_truth(self, spark: SparkSession) -> None:
        """Every event is in one final row, or in `.late`; nothing is there twice or left."""
        kafka = Kafka(self._topics.servers)
        assert_rows(lambda name: parsed(kafka.values(self._topics.prefix + name)), self._events)
        assert_state_is_empty(spark, self._kept)
        print(
            f"{self._cuts} power cuts, {checkpoints(self._kept, JOB)} checkpoints, "
            f"{len(self._events.all):,} events, seed {self._seed}: exact, "
            f"{time.monotonic() - self._began:.0f} s",
            flush=True,
        )

    def _cut(self, number: int) -> None:
        begun = len(self._text())
        driver = self._driver()
        assert work_a_while(driver, self._home, 2, self._pick.uniform(0, 3), JOB), self._tail()
        if number % 4 == 0:
            self._savepoint(number)
        executors = self._cluster.executors() if self._cluster else []
        self._disk.cut([driver.process.pid, *executors])
        driver.process.wait()
        newest = assert_kept(self._home, JOB, log=self._text()[begun:])
        print(f"cut {number + 1}: ck:{newest} is there and whole, "
              f"{time.monotonic() - self._began:.0f} s", flush=True)  # fmt: skip

    def _savepoint(self, number: int) -> None:
        asked = subprocess.run(
            [sys.executable, "-m", "headgate.cli.main", "savepoint", "create", JOB, "--label",
             f"cut{number}", "--home", str(self._home)], capture_output=True, text=True,
        )  # fmt: skip
        assert asked.returncode == 0, asked.stderr

    def _driver(self, *flags: str) -> Driver:
        spark = self._cluster.flags(fail_every=0) if self._cluster else ()
        return Driver(APP, self._topics, self._home, *flags, job=JOB, names=TOPICS, log=self._log,
                      spark=spark)  # fmt: skip

    def _text(self) -> str:
        return self._log.read_text() if self._log.exists() else ""

    def _tail(self) -> str:
        return self._text()[-3000:]
