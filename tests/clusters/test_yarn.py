"""`headgate submit` in cluster mode on a real YARN: the driver runs in its application master."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from headgate.jvm.jars import jar_cache
from headgate.runtime.status import job_status
from tests.clusters.store import quick_store, wait_for_a_batch, wait_until_read
from tests.clusters.yarn import Yarn
from tests.homes.s3 import KEYS, S3Server
from tests.reliability.processes import Driver
from tests.reliability.store_data import Producer
from tests.reliability.test_driver_kills import assert_truth, checkpoints, work_a_while
from tests.reliability.topics import KafkaTopics

APP = """
from dataclasses import dataclass

import headgate as hg
from prices import price

@dataclass
class Order:
    n: int
    user: str

@dataclass
class Total:
    user: str
    total: int

class Totals(hg.Process):
    total = hg.value_state(int)

    def on_orders(self, order: Order, ctx: hg.Context) -> hg.Out[Total]:
        self.total.set((self.total.get() or 0) + price(order.n))
        yield Total(order.user, self.total.get())

@hg.job("totals")
def totals(job: hg.Job) -> None:
    orders = job.source("orders", hg.topic(job.param("orders"), schema=Order))
    summed = job.process("totals", Totals(), orders=orders.key_by("user"))
    summed.sink("out", hg.topic(job.param("out")))
"""

ORDERS = 12_000
MASTER = "org.apache.spark.deploy.yarn.ApplicationMaster"
EXECUTOR = "org.apache.spark.executor.YarnCoarseGrainedExecutorBackend"


@pytest.fixture(scope="module")
def yarn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Yarn]:
    made = Yarn(tmp_path_factory.mktemp("yarn"))
    try:
        yield made
    finally:
        made.stop()


@pytest.mark.long
def test_a_driver_in_yarn_is_exact_and_says_how_it_ended(yarn: Yarn, tmp_path: Path) -> None:
    code = tmp_path / "code"
    code.mkdir()
    (code / "app.py").write_text(APP)
    (code / "prices.py").write_text("def price(n):\n    return 3 * n\n")
    orders = [{"n": n, "user": f"u{n % 7}"} for n in range(300)]
    TopicFiles(tmp_path / "orders").create(2)
    TopicFiles(tmp_path / "orders").append([Record(json.dumps(order)) for order in orders])

    def submit(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "headgate.cli.main", "submit", "app.py", "--home",
             str(tmp_path / "home"), "--bounded", "--parallelism", "2",
             "--set", f"out=log:{tmp_path}/out", *words, "--", *yarn.flags()],
            cwd=code, capture_output=True, text=True, timeout=300,
            env={**os.environ, "HADOOP_CONF_DIR": str(yarn.conf), "PYSPARK_PYTHON": sys.executable},
        )  # fmt: skip

    done = submit("--set", f"orders=log:{tmp_path}/orders")
    assert done.returncode == 0, f"{done.stderr[-3000:]}\n{yarn.logs()[-8000:]}"
    assert "final status: SUCCEEDED" in done.stdout + done.stderr
    status = job_status(Home(str(tmp_path / "home")).job("totals"))
    assert status.state == "FINISHED" and status.started is not None
    assert status.started.details["master"] == "yarn"
    found = [json.loads(r.value) for r in TopicFiles(tmp_path / "out").read()]
    newest: dict[str, int] = {}
    for row in found:
        newest[row["user"]] = max(row["total"], newest.get(row["user"], 0))
    truth = {f"u{user}": sum(3 * n for n in range(300) if n % 7 == user) for user in range(7)}
    assert newest == truth and len(found) == 300

    failed = submit("--set", f"orders=log:{tmp_path}/nothing")
    assert failed.returncode != 0
    assert "final status: FAILED" in failed.stdout + failed.stderr


@pytest.mark.long
def test_the_store_is_exact_when_an_executor_and_then_the_driver_die_in_yarn(
    yarn: Yarn,
    spark: SparkSession,
    kafka_servers: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {**KEYS, "HADOOP_CONF_DIR": str(yarn.conf)}.items():
        monkeypatch.setenv(name, value)
    # the driver would fetch its jars into the container
    there = {**KEYS, "HEADGATE_JAR_CACHE": str(jar_cache())}
    keys = [w for k, v in there.items() for w in ("--conf", f"spark.yarn.appMasterEnv.{k}={v}")]
    s3 = S3Server(tmp_path)
    try:
        home = s3.url(s3.bucket("homes"), "store")
        store = KafkaTopics(kafka_servers, f"{uuid.uuid4().hex[:8]}-")
        producer = Producer(store, orders=ORDERS, chunks=12, seed=12,
                            taken=lambda: checkpoints(home))  # fmt: skip
        producer.start()
        driver = Driver(quick_store(tmp_path), store, home, "--parallelism", "2", verb="submit",
                        spark=(*yarn.flags(attempts=2), *keys), log=tmp_path / "driver.log",
                        env={"PYSPARK_PYTHON": sys.executable})  # fmt: skip
        for main in (EXECUTOR, MASTER):
            before = checkpoints(home)
            assert work_a_while(driver, home, 2, 0), yarn.logs()[-8000:]
            committed = wait_for_a_batch(home, driver)
            yarn.kill(main)
            assert not Home(home).files.exists(committed), "it died in a batch"
            assert checkpoints(home) >= before + 2
        assert work_a_while(driver, home, 1, 0), "the second driver goes on"
        producer.finish()
        wait_until_read(home, ORDERS, driver)
        stopped = subprocess.run(
            [sys.executable, "-m", "headgate.cli.main", "stop", "store", "--home", home],
            capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert stopped.returncode == 0, stopped.stderr
        assert driver.wait(120) == 0, f"{driver.text()[-3000:]}\n{yarn.logs()[-8000:]}"
        assert "final status: SUCCEEDED" in driver.text()

        assert_truth(spark, store, home, ORDERS)
        events = Home(home).job("store").current().events()
        assert sum(event.kind == "started" for event in events) == 2
    finally:
        s3.stop()
