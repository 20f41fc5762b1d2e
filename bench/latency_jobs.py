"""Owns the process that is measured: Headgate's jobs of the latency bench, until it is ended.

python -m bench.latency_jobs JOB SERVERS EVERY_MS FOLDER

It prints READY when tables are in state. With SIGUSR1 it begins to write Spark's event log, which
is not on before: writing it takes a share of the processor.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import headgate as hg
from bench.latency_orders import ITEMS, USERS
from bench.tws import ITEM, ORDER, USER
from headgate.home.layout import Home

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JOB = "bench_latency"
READY = "READY"
EVENTS = "events"
"""The folder of the event log, in the folder of the run."""


@dataclass
class Order:
    """What the process function reads of an order."""

    invoiceId: int
    userId: int
    createdAt: int


@dataclass
class Total:
    """An order, and how many its user has made until then."""

    invoiceId: int
    userId: int
    n: int
    createdAt: int


class Running(hg.Process):
    """Counts the orders of a user."""

    count = hg.value_state(int)

    def on_orders(self, order: Order, ctx: hg.Context) -> hg.Out[Total]:
        """One more."""
        n = (self.count.get() or 0) + 1
        self.count.set(n)
        yield Total(order.invoiceId, order.userId, n, order.createdAt)


class Topics:
    """The topics of one broker."""

    def __init__(self, servers: str) -> None:
        self._servers = servers

    def read(self, name: str, schema: str) -> hg.Topic:
        return hg.topic(f"kafka://{self._servers}/{name}", schema=schema)

    def write(self, name: str) -> hg.Topic:
        return hg.topic(f"kafka://{self._servers}/{name}", delivery="exactly_once")


def store(job: hg.Job, topics: Topics) -> None:
    """Two lookups, three sinks."""
    orders = job.source("orders", topics.read("orders", ORDER))
    users = job.table("users", topics.read("users", USER), key="id")
    items = job.table("items", topics.read("items", ITEM), key="id")
    with_user = orders.lookup("users_lookup", users, on="userId", into="user", missing="side")
    with_item = with_user.lookup("items_lookup", items, on="itemId", into="item", missing="side")
    enriched = with_item.select("invoiceId", "lineItemId", "user", "item", "createdAt", "paidAt")
    enriched.sink("enriched", topics.write("enriched"))
    with_user.missing.sink("missing_users", topics.write("missing_users"))
    with_item.missing.sink("missing_items", topics.write("missing_items"))


def window(job: hg.Job, topics: Topics) -> None:
    """Orders of a user in a minute, with an early row after each."""
    from pyspark.sql import functions as F

    time_of = hg.event_time("timestamp_micros(createdAt)", out_of_orderness="5 seconds")
    orders = job.source("orders", topics.read("orders", ORDER), event_time=time_of)
    counts = orders.key_by("userId").window(
        "counts", hg.tumbling("1 minute"), F.count("*").alias("n"),
        F.max("invoiceId").alias("invoiceId"), F.max("createdAt").alias("createdAt"),
        early=hg.after_count(1),
    )  # fmt: skip
    early = counts.where("fired_by = 'early'")
    early.select("invoiceId", "userId", "n", "createdAt").sink("totals", topics.write("totals"))


def process(job: hg.Job, topics: Topics) -> None:
    """The same count in a function of its own, in Python."""
    orders = job.source("orders", topics.read("orders", ORDER))
    read = orders.select("invoiceId", "userId", "createdAt").key_by("userId")
    totals = job.process("running", Running(), orders=read)
    totals.sink("totals", topics.write("totals"))


_BUILDERS = {"store": store, "window": window, "process": process}


def _main(name: str, servers: str, every_ms: int, folder: Path) -> None:
    from headgate.runtime.session import get_session

    @hg.job(JOB, checkpoints=hg.Checkpoints(every=f"{every_ms} milliseconds"))
    def definition(job: hg.Job) -> None:
        _BUILDERS[name](job, Topics(servers))

    conf = {"spark.driver.memory": "4g", "spark.local.dir": str(folder / "local")}
    spark = get_session(master="local[2]", conf=conf)
    profile = threading.Event()
    signal.signal(signal.SIGUSR1, lambda *_: profile.set())
    home = str(folder / "home")
    handle = hg.start(definition, spark=spark, home=home)
    if name == "store":
        _wait_for_tables(handle, home)
    print(READY, flush=True)
    while handle.running and not profile.wait(1):
        pass
    if profile.is_set():
        _write_events(spark, folder / EVENTS)
    handle.wait()


def _wait_for_tables(handle: hg.RunHandle, home: str) -> None:
    run = Home(home).job(JOB)
    wanted = {"users": USERS, "items": ITEMS}
    while True:
        current = run.current() if run.exists() else None
        record = current.latest_checkpoint() if current else None
        totals = record.totals if record else {}
        if all(totals.get(t, {}).get("records_out", 0) >= n for t, n in wanted.items()):
            return
        if not handle.running:
            handle.wait()
        time.sleep(0.2)


def _write_events(spark: SparkSession, folder: Path) -> None:
    """Let Spark's own listener write its event log from now on."""
    folder.mkdir(parents=True)
    context = spark.sparkContext
    assert context._jvm is not None
    java = context._jsc.sc()
    conf = java.conf().clone()
    conf.set("spark.eventLog.compress", "false")
    conf.set("spark.eventLog.rolling.enabled", "false")
    listener = context._jvm.org.apache.spark.scheduler.EventLoggingListener(
        context.applicationId, java.applicationAttemptId(),
        context._jvm.java.net.URI(folder.absolute().as_uri()), conf, java.hadoopConfiguration(),
    )  # fmt: skip
    listener.start()
    java.addSparkListener(listener)


if __name__ == "__main__":
    # workers of the process function import its class by the name of this module
    from bench import latency_jobs

    latency_jobs._main(sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))
