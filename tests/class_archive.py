"""An archive of the classes that Spark loads: with it a JVM of a test starts in half the time.

`make test` makes it once (python -m tests.class_archive). A JVM that does not fit it, because its
jars or its Java are others, starts without it, as do tests where there is none.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import headgate as hg

ARCHIVE = Path(__file__).parents[1] / "build" / "tests" / "spark-classes.jsa"
_QUICK = "-XX:TieredStopAtLevel=1"


def java_options() -> str:
    """What the JVMs of tests are started with.

    They live for seconds: the second compiler costs them more than it gains.
    """
    archive = f' -XX:SharedArchiveFile="{ARCHIVE}" -Xlog:cds*=off'
    return _QUICK + (archive if ARCHIVE.exists() else "")


@hg.job("small")
def small(job: hg.Job) -> None:
    users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
    orders = job.source("orders", hg.topic("log:orders", schema="n BIGINT, user BIGINT"))
    found = orders.lookup("users_lookup", users, on="user", into="who", missing="side")
    found.select("n", "who.name AS name").sink("enriched", hg.topic("log:enriched"))
    found.missing.sink("missing", hg.topic("log:missing"))


def make() -> None:
    """Run a job, whose JVM writes down what it has loaded when it ends."""
    from headgate.testing import JobDriver

    ARCHIVE.parent.mkdir(parents=True, exist_ok=True)
    new = ARCHIVE.with_suffix(".new")
    new.unlink(missing_ok=True)
    os.environ["SPARK_SUBMIT_OPTS"] = f'{_QUICK} -XX:ArchiveClassesAtExit="{new}" -Xlog:cds*=off'
    with JobDriver(small) as t:
        t.send("users", {"id": 1, "name": "Ann"}).send("orders", {"n": 1, "user": 1}).run()
        t.send("orders", {"n": 2, "user": 2}).run()
        assert t.state("users_lookup").all()
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
