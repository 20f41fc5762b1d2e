"""Operations of a job that runs on real Spark: savepoint, checkpoint, stop, restart, cancel."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.base.errors import HeadgateError
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home, JobHome, RunHome
from headgate.home.operations import OperationRecord, Operations
from headgate.runtime.run import run
from headgate.runtime.status import job_status
from headgate.snapshots.spark_log import pending_batch

pytestmark = pytest.mark.slow

USERS = 7


class Shop:
    """Orders with the names of their users, in a folder."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark, self.sent = folder, spark, 0
        self.orders, self.users = TopicFiles(folder / "orders"), TopicFiles(folder / "users")
        self.orders.create(2)
        self.users.create(1)
        self.users.append([Record(json.dumps({"id": i, "name": f"u{i}"})) for i in range(USERS)])
        self.handles: list[hg.RunHandle] = []

    def send(self, count: int) -> None:
        numbers = range(self.sent, self.sent + count)
        self.orders.append([Record(json.dumps({"n": n, "user": n % USERS})) for n in numbers])
        self.sent += count

    def job(self, **checkpoints: Any) -> hg.JobDef:
        folder, slow = self.folder, self.folder / "slow"

        def lazily(n):  # type: ignore[no-untyped-def]
            while slow.exists():
                time.sleep(0.05)
            return n

        def through(df: DataFrame) -> DataFrame:
            return df.withColumn("n", F.udf(lazily, "bigint")("n"))

        @hg.job("shop", checkpoints=hg.Checkpoints(**{"every": "100 ms", **checkpoints}))
        def shop(job: hg.Job) -> None:
            order, user = "n BIGINT, user BIGINT", "id BIGINT, name STRING"
            orders = job.source("orders", hg.topic(f"log:{folder / 'orders'}", schema=order))
            users = job.table("users", hg.topic(f"log:{folder / 'users'}", schema=user), key="id")
            found = orders.transform("lazily", through).lookup(
                "users_lookup", users, on="user", into="who"
            )
            found.select("n", "who.name AS name").sink("out", hg.topic(f"log:{folder / 'out'}"))

        return shop

    def start(self, *, restore: str | None = None, **checkpoints: Any) -> hg.RunHandle:
        handle = hg.start(
            self.job(**checkpoints), spark=self.spark, home=str(self.folder / "home"),
            restore=restore,
        )  # fmt: skip
        self.handles.append(handle)
        return handle

    @property
    def home(self) -> JobHome:
        return Home(self.folder / "home").job("shop")

    @property
    def current(self) -> RunHome:
        run = self.home.current()
        assert run is not None
        return run

    def kinds(self, run: str) -> list[str]:
        return [event.kind for event in self.home.run(run).events()]

    def ask(self, kind: str, **args: Any) -> OperationRecord:
        operations = Operations(self.home)
        id = operations.request(kind, args).id
        self.until(lambda: operations.read(id).ended)
        return operations.read(id)

    def until(self, condition: Callable[[], object], seconds: float = 90) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "not in time"
            if self.handles and not self.handles[-1].running:
                self.handles[-1].wait()  # raises what ended it
                if condition():
                    return
                raise AssertionError("the job has ended")
            time.sleep(0.02)

    def processed(self) -> int:
        run = self.home.current()
        record = run.latest_checkpoint() if run else None
        return record.totals.get("out", {}).get("records_out", 0) if record else 0

    def rows(self) -> list[int]:
        read = TopicFiles(self.folder / "out").read()
        rows = [json.loads(record.value or "") for record in read]
        assert all(row["name"] == f"u{row['n'] % USERS}" for row in rows)
        return sorted(row["n"] for row in rows)


@pytest.fixture
def shop(tmp_path: Path, spark: SparkSession) -> Iterator[Shop]:
    made = Shop(tmp_path, spark)
    yield made
    (tmp_path / "slow").unlink(missing_ok=True)
    for handle in made.handles:
        if handle.running:
            handle.stop(savepoint=False)


def test_a_running_job_is_saved_restarted_elsewhere_drained_and_restored(shop: Shop) -> None:
    shop.send(50)
    handle = shop.start()
    shop.until(lambda: shop.processed() == 50)

    # a savepoint of a job that runs
    assert handle.savepoint("first") == "sp:first"
    with pytest.raises(HeadgateError, match="already has a savepoint 'first'"):
        handle.savepoint("first")

    # a checkpoint has all that was there when it was asked for
    shop.send(50)
    made = shop.ask("checkpoint")
    assert made.state == "done" and made.result is not None
    assert made.result["run"] == "r1" and made.result["checkpoint"] in shop.current.checkpoint_ids()
    assert shop.current.checkpoint(made.result["checkpoint"]).totals["out"]["records_out"] == 100
    again = shop.ask("checkpoint")
    assert again.result == made.result, "without new input it is the latest"

    # a restart that cannot be leaves the job as it is
    failed = shop.ask("restart", **{"from": "sp:none"})
    assert failed.state == "failed" and shop.current.id == "r1" and handle.running

    # another parallelism, in the same process
    before = shop.current.read().parallelism
    moved = shop.ask("restart", parallelism=before + 1)
    assert moved.state == "done", moved.message
    assert moved.result is not None and moved.result["run"] == "r2"
    assert shop.current.id == "r2" and shop.current.read().parallelism == before + 1
    assert shop.kinds("r1") == ["started", "stopped"] and shop.kinds("r2") == ["started"]
    shop.send(50)
    shop.until(lambda: shop.processed() == 150)
    assert shop.rows() == list(range(150)), "nothing is lost and nothing comes twice"

    # a stop that first reads all
    shop.send(500)
    label = handle.stop(drain=True)
    assert label is not None and label.startswith("sp:")
    assert shop.rows() == list(range(650))
    assert pending_batch(shop.current) is None
    stopped = shop.current.events()[-1]
    assert stopped.kind == "stopped" and f"sp:{stopped.details['savepoint']}" == label

    # back to the first savepoint: what came after it comes again, from a run of its own
    handle = shop.start(restore="sp:first")
    shop.until(lambda: shop.current.id == "r3" and shop.processed() == 650)
    assert shop.current.read().parallelism == before
    assert handle.stop(savepoint=False) is None
    assert shop.rows() == sorted([*range(650), *range(50, 650)])


def test_a_cancelled_job_leaves_its_batch_and_the_next_start_does_it(shop: Shop) -> None:
    shop.send(20)
    handle = shop.start()
    shop.until(lambda: shop.processed() == 20)
    (shop.folder / "slow").touch()
    shop.send(20)
    shop.until(lambda: pending_batch(shop.current) is not None)
    stop = Operations(shop.home).request("stop")
    shop.until(lambda: Operations(shop.home).read(stop.id).state == "running")
    Operations(shop.home).request("cancel")
    handle.wait("60 seconds")  # its batch cannot end, so this waits for the cancel alone
    assert job_status(shop.home).state == "CANCELED"
    assert "cancelled by op-" in str(Operations(shop.home).read(stop.id).message)
    assert pending_batch(shop.current) is not None
    assert shop.rows() == list(range(20))
    (shop.folder / "slow").unlink()
    home = str(shop.folder / "home")
    assert run(shop.job(), home=home, bounded=True, spark=shop.spark).error is None
    assert shop.current.id == "r1" and shop.rows() == list(range(40))


def test_a_job_can_be_told_to_forget_its_state_when_it_is_cancelled(shop: Shop) -> None:
    shop.send(20)
    handle = shop.start(on_cancel="delete")
    shop.until(lambda: shop.processed() == 20)
    handle.savepoint("kept")
    record = shop.ask("cancel")
    assert record.state == "done"
    handle.wait("30 seconds")
    run = shop.home.run("r1")
    assert not run.files.exists(run.spark_path) and run.checkpoint_ids() == []
    assert shop.home.current() is None
    assert job_status(shop.home).state == "CANCELED"
    # the savepoint is there still, and a run from it has a name that sinks do not know
    handle = shop.start(restore="sp:kept")
    shop.send(5)
    shop.until(lambda: shop.processed() == 25)
    handle.stop()
    assert shop.current.id == "r2" and shop.rows() == list(range(25))
