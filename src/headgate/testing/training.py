"""Making the archive of Spark's classes: a small job runs, and its JVM writes down what it loaded.

A session whose process ends starts this beside it (`python -m headgate.testing.training`), and
`headgate doctor --warm` runs it at once, for images of containers.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import headgate as hg
from headgate.base.errors import HeadgateError
from headgate.base.locks import file_lock
from headgate.jvm.class_archive import QUIET, VARIABLE, Use, archive_path, keep
from headgate.jvm.java import find_java
from headgate.jvm.launch import FIRST_COMPILER
from headgate.jvm.spark_jars import find_spark_jars

_SECONDS = 300.0
"""A JVM that needs longer is ended: the archive is a gift, not a duty."""


@hg.job("training", checkpoints=hg.Checkpoints(every="0 seconds"))
def training(job: hg.Job) -> None:
    """What most jobs have: a lookup, a window, side outputs."""
    users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
    orders = job.source(
        "orders",
        hg.topic("log:orders", schema="n BIGINT, user BIGINT, price DOUBLE, at BIGINT"),
        event_time=hg.event_time("timestamp_millis(at)", out_of_orderness="5 seconds"),
        malformed="side",
    )
    found = orders.lookup("users_lookup", users, on="user", into="who", missing="side")
    found.select("n", "who.name AS name").sink("enriched", hg.topic("log:enriched"))
    found.missing.sink("missing", hg.topic("log:missing"))
    from pyspark.sql import functions as F

    counts = found.key_by("user").window("counts", hg.tumbling("1 minute"), F.count("*").alias("n"))
    counts.sink("counted", hg.topic("log:counted"))


def make() -> bool:
    """Make the archive, unless it is there; True if one is there in the end."""
    jars = find_spark_jars()
    path = archive_path(find_java(), jars)
    path.parent.mkdir(parents=True, exist_ok=True)
    with file_lock(path.parent / ".lock"):  # who waited finds it made
        if path.exists():
            return True
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".new-") as folder:
            new = Path(folder) / "classes.jsa"
            if _in_another_process(new) != 0:
                new.unlink(missing_ok=True)  # it may be half of one
            return keep(new, path)


def _in_another_process(new: Path) -> int:
    options = [*FIRST_COMPILER, f"-XX:ArchiveClassesAtExit={new}", QUIET]
    environment = {
        **os.environ,
        VARIABLE: Use.OFF.value,
        "SPARK_SUBMIT_OPTS": shlex.join(options),
    }
    # what a user has set for their jobs is none of ours
    for name in ("PYSPARK_SUBMIT_ARGS", "HEADGATE_MASTER", "HEADGATE_SPARK_LOG"):
        environment.pop(name, None)
    process = subprocess.Popen(
        [sys.executable, "-c", f"from {__name__} import _train; _train()"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        cwd=new.parent, env=environment, start_new_session=True,
    )  # fmt: skip
    try:
        return process.wait(_SECONDS)
    except subprocess.TimeoutExpired:
        return -1
    finally:
        with suppress(ProcessLookupError):  # with its JVM, if that is left
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _train() -> None:
    """Run the job, and wait until its JVM has ended."""
    from headgate.testing.job_driver import JobDriver

    with JobDriver(training) as t:
        t.send("users", {"id": 1, "name": "Ann"})
        t.send("orders", {"n": 1, "user": 1, "price": 1.5, "at": 1}).run()
        t.send("orders", {"n": 2, "user": 2, "price": 2.5, "at": 900_000}).run()
        t.state("users_lookup").all()
        gateway = t.spark.sparkContext._gateway
        t.spark.stop()
    assert gateway is not None
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(_SECONDS)


def _main() -> None:
    os.nice(19)  # nobody waits for it
    with suppress(OSError, HeadgateError):
        make()


if __name__ == "__main__":
    _main()
