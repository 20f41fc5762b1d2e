"""The fence: a driver whose lease another one has taken commits nothing any more."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate import jvm
from headgate.compile.sinks import Writer
from headgate.failures import Reason, explain
from tests.kernel.state_support import Query, files_below, users_job

TOKEN = "mine"


def lease(job_file: Path, token: str | None) -> None:
    owner = {"host": "far", "pid": 77, "started": "", "space": "", "token": token}
    record = {"name": "state", "lease": {"owner": owner} if token else None}
    aside = job_file.with_suffix(".new")
    aside.write_text(json.dumps(record))
    aside.rename(job_file)


def user(id: int) -> dict[str, Any]:
    return {"id": id, "name": f"u{id}"}


@pytest.fixture
def query(spark: SparkSession, tmp_path: Path) -> Iterator[Query]:
    """A fenced query whose Spark folder has a blank in its name."""
    root = tmp_path / "a home"
    root.mkdir()
    lease(root / "job.json", TOKEN)
    made = Query(spark, users_job(), root, root / "spark", 2)
    fence(made)
    yield made
    jvm.unfence(spark, str(made.folder))


def fence(query: Query, token: str = TOKEN, *, lock: bool = True) -> None:
    jvm.fence(
        query.spark, spark_folder=str(query.folder), job_file=str(query.root / "job.json"),
        lock_file=str(query.root / "driver.lock") if lock else None, token=token,
    )  # fmt: skip


def send(query: Query, *ids: int) -> None:
    query.send("users", *[user(i) for i in ids])
    query.send("orders", *[{"id": i, "user_id": i} for i in ids])


def visible(query: Query) -> dict[str, bytes]:
    """All that a batch changes for others: the logs of Spark, the journal and the sinks."""
    found = {f"sink/{k}": v for k, v in files_below(query.root / "sinks").items()}
    for part in ("offsets", "commits", "journal"):
        found |= {f"{part}/{k}": v for k, v in files_below(query.folder / part).items()}
    return {k: v for k, v in found.items() if "_staging" not in k and "append.lock" not in k}


def failure(query: Query) -> str:
    with pytest.raises(Exception) as caught:
        query.run()
    return jvm.failure_text(caught.value)


def test_with_the_lease_everything_is_written(query: Query) -> None:
    send(query, 1, 2)
    query.run()
    assert {r["user_id"]: r["user"] for r in query.rows()} == {1: user(1), 2: user(2)}
    assert (query.root / "driver.lock").exists()


@pytest.mark.parametrize(("token", "lock"), [("other", True), (None, True), ("other", False)])
def test_a_lost_lease_stops_the_next_batch(query: Query, token: str | None, lock: bool) -> None:
    fence(query, lock=lock)
    send(query, 1, 2)
    query.run()
    before = visible(query)
    lease(query.root / "job.json", token)
    send(query, 3)
    text = failure(query)
    assert '"code":"LEASE_LOST"' in text
    assert ("process 77 on far has taken over" if token else "is gone") in text
    assert explain(text).reason is Reason.LEASE_LOST
    assert visible(query) == before


def test_a_running_query_stops_at_its_next_batch(query: Query) -> None:
    running = query._compile().start(
        writer=Writer("state", "spark", "", str(query.folder / "journal")),
        checkpoint=str(query.folder), bounded=False, every=timedelta(0),
    )  # fmt: skip
    send(query, 1, 2)
    running.processAllAvailable()
    before = visible(query)
    lease(query.root / "job.json", "other")
    send(query, 3)
    with pytest.raises(Exception, match='"code":"LEASE_LOST"'):
        running.awaitTermination(60)
    assert not running.isActive
    assert visible(query) == before


@pytest.mark.parametrize("at", ["sinks", "commit"])
def test_a_lease_lost_within_a_batch(query: Query, at: str) -> None:
    """The batch is planned with the lease; then the other driver comes, and it must not end."""
    send(query, 1, 2)
    query.run()
    before = visible(query)
    if at == "commit":
        jvm.arm_crash(query.spark, "spark", "after_sink")  # the sinks are out, then it dies
        send(query, 3)
        failure(query)
        planned = visible(query)
        assert set(planned) - set(before)
        lease(query.root / "job.json", "other")
        assert '"code":"LEASE_LOST"' in failure(query)
        assert visible(query) == planned
        return
    jvm.arm_crash(query.spark, "spark", "before_sink")
    send(query, 3)
    failure(query)
    planned = visible(query)
    assert {k.split("/")[0] for k in set(planned) - set(before)} == {"offsets"}
    lease(query.root / "job.json", "other")
    assert '"code":"LEASE_LOST"' in failure(query)
    assert visible(query) == planned
    # the one who has the lease ends the batch, once
    jvm.unfence(query.spark, str(query.folder))
    assert '"code":"LEASE_LOST"' in failure(query)
    fence(query, "other")
    query.run()
    assert {r["user_id"] for r in query.rows()} == {1, 2, 3}


@pytest.mark.parametrize("log", ["offsets", "commits"])
def test_entries_of_both_logs_are_guarded(query: Query, log: str) -> None:
    jvm: Any = query.spark._jvm
    path = jvm.org.apache.hadoop.fs.Path
    conf = query.spark._jsparkSession.sessionState().newHadoopConf()
    manager = jvm.org.apache.spark.sql.headgate.commit.FencedFileManager(
        path(str(query.folder)), conf
    )

    def write(name: str) -> None:
        (query.folder / name).parent.mkdir(parents=True, exist_ok=True)
        stream = manager.createAtomic(path(str(query.folder / name)), False)
        try:
            stream.close()
        finally:
            stream.cancel()

    write(f"{log}/7")
    lease(query.root / "job.json", "other")
    with pytest.raises(Exception, match='"code":"LEASE_LOST"'):
        write(f"{log}/8")
    write("state/1/0/8_x.zip")  # nobody else has a file of this name
    found = {k for k in files_below(query.folder) if not k.endswith(".crc")}
    assert found == {f"{log}/7", "state/1/0/8_x.zip"}


def test_every_folder_has_a_fence_of_its_own(query: Query, tmp_path: Path) -> None:
    free = Query(query.spark, users_job(), tmp_path / "b", tmp_path / "b" / "spark", 2)
    send(query, 1)
    query.run()
    lease(query.root / "job.json", "other")
    send(free, 5)
    free.run()
    assert {r["user_id"] for r in free.rows()} == {5}
    send(query, 2)
    assert '"code":"LEASE_LOST"' in failure(query)


HOLD = """
import fcntl, sys, time
with open(sys.argv[1], "w") as file:
    fcntl.lockf(file, fcntl.LOCK_EX)
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(query: Query) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """Another process that is in a section of the job."""
    made: list[subprocess.Popen[str]] = []

    def hold() -> subprocess.Popen[str]:
        command = [sys.executable, "-c", HOLD, str(query.root / "driver.lock")]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        made.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        return process

    yield hold
    for process in made:
        process.kill()
        process.wait()


def test_a_section_of_another_process_is_waited_for(
    query: Query, holder: Callable[[], subprocess.Popen[str]]
) -> None:
    path = str(query.root / "driver.lock")
    assert jvm.await_sections(query.spark, path, 1)
    other = holder()
    began = time.monotonic()
    assert not jvm.await_sections(query.spark, path, 0.5)
    assert time.monotonic() - began > 0.4, "it has waited"
    threading.Timer(0.5, other.kill).start()
    assert jvm.await_sections(query.spark, path, 30)


def test_nobody_enters_a_section_while_it_is_held(
    query: Query, holder: Callable[[], subprocess.Popen[str]]
) -> None:
    send(query, 1)
    other = holder()
    running = query.start()
    time.sleep(3)
    assert not list((query.folder / "offsets").glob("[0-9]*"))
    assert running.isActive
    other.kill()
    running.awaitTermination()
    assert {r["user_id"] for r in query.rows()} == {1}
    with (query.root / "driver.lock").open("w") as file:  # and it is given back
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
