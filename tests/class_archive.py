"""An archive of the classes that Spark loads: with it a JVM of a test starts in half the time.

`make test` makes it once (python -m tests.class_archive). A JVM that does not fit it, because its
jars or its Java are others, starts without it, as do tests where there is none.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from pyspark.sql import functions as F

import headgate as hg

ARCHIVE = Path(__file__).parents[1] / "build" / "tests" / "spark-classes.jsa"
# With the first compiler alone Java keeps 48 MB for compiled code. Spark needs twice that: it would
# drop and compile the same methods again and again.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"


def java_options() -> str:
    """What the JVMs of tests are started with.

    They live for seconds: the second compiler costs them more than it gains.
    """
    archive = f' -XX:SharedArchiveFile="{ARCHIVE}" -Xlog:cds*=off'
    return _QUICK + (archive if ARCHIVE.exists() else "")


@hg.job("small")
def small(job: hg.Job) -> None:
    users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
    topic = hg.topic("log:orders", schema="n BIGINT, user BIGINT, at TIMESTAMP")
    orders = job.source("orders", topic, event_time=hg.event_time("at"))
    found = orders.lookup("users_lookup", users, on="user", into="who", missing="side")
    found.select("n", "who.name AS name").sink("enriched", hg.topic("log:enriched"))
    found.missing.sink("missing", hg.topic("log:missing"))
    windows = orders.key_by("user").window(
        "counts", hg.tumbling("5 minutes"), F.count("*").alias("n"), F.sum("n").alias("total")
    )
    windows.sink("counted", hg.topic("log:counted"))


def make() -> None:
    """Run a job, whose JVM writes down what it has loaded when it ends."""
    from headgate.testing import JobDriver

    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    new = ARCHIVE.with_suffix(".new")
    new.unlink(missing_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = f'{_QUICK} -XX:ArchiveClassesAtExit="{new}" -Xlog:cds*=off'
    with JobDriver(small) as t:
        at = "2026-01-01T12:00:00Z"
        t.send("users", {"id": 1, "name": "Ann"})
        t.send("orders", {"n": 1, "user": 1, "at": at}).run()
        t.send("orders", {"n": 2, "user": 2, "at": at}).crash().restore().run(drain=True)
        assert t.state("users_lookup").all() and len(t.rows("counted")) == 2
        gateway = t.spark.sparkContext._gateway
        assert gateway is not None
        t.spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(300)
    if new.exists():
        new.replace(ARCHIVE)
    else:
        print("test: this Java made no archive; tests start without it", file=sys.stderr)


if __name__ == "__main__":
    make()
