"""`headgate run` as people use it: real processes, signals, kill -9, a changed graph."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home, JobHome, RunHome
from headgate.snapshots.spark_log import pending_batch

pytestmark = pytest.mark.slow

APP = """
import headgate as hg

@hg.job("small", checkpoints=hg.Checkpoints(every="200 milliseconds"))
def small(job: hg.Job) -> None:
    users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
    orders = job.source("orders", hg.topic("log:orders", schema="n BIGINT, user BIGINT",
                                           max_records="500"))
    found = orders.lookup("users_lookup", users, on="user", into="who", missing="side")
    found.select("n", "who.name AS name").sink("enriched", hg.topic("log:enriched"))
    found.missing.sink("missing", hg.topic("log:missing"))
"""


class Folder:
    """A working directory with a job, its topics and its home."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.orders, self.users = TopicFiles(path / "orders"), TopicFiles(path / "users")
        self.orders.create(2)
        self.users.create(1)
        self.users.append([Record(json.dumps({"id": i, "name": f"u{i}"})) for i in range(10)])
        self.produced = 0
        self.processes: list[subprocess.Popen[str]] = []
        self.write(APP)

    def write(self, app: str) -> None:
        (self.path / "app.py").write_text(app)

    def produce(self, count: int) -> None:
        """Orders 0, 1, 2, ...; one in eleven has an unknown user."""
        numbers = range(self.produced, self.produced + count)
        self.orders.append([Record(json.dumps({"n": n, "user": n % 11})) for n in numbers])
        self.produced += count

    def headgate(self, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", *arguments],
            cwd=self.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    def wait_for(self, condition: Callable[[], object], *, seconds: float = 180) -> None:
        """Wait until something is true while the last process lives."""
        deadline, process = time.monotonic() + seconds, self.processes[-1]
        while not condition():
            if process.poll() is not None:
                raise AssertionError(f"it ended too early: {process.communicate()[1]}")
            assert time.monotonic() < deadline, "not in time"
            time.sleep(0.05)

    def run(self, *options: str) -> tuple[int, str]:
        """Run to the end; exit code and standard error."""
        process = self.headgate("run", "app.py", *options)
        _, err = process.communicate(timeout=300)
        return process.returncode, err

    @property
    def job(self) -> JobHome:
        return Home(self.path / ".headgate").job("small")

    @property
    def current(self) -> RunHome:
        run = self.job.current()
        assert run is not None
        return run

    def processed(self) -> int:
        """Orders that are in a checkpoint's record."""
        run = self.job.current()
        last = run.latest_checkpoint() if run else None
        return last.totals["orders"]["records_out"] if last else 0

    def values(self, topic: str, field: str) -> list[int]:
        files = TopicFiles(self.path / topic)
        read = files.read() if files.exists() else iter(())
        return sorted(json.loads(record.value or "")[field] for record in read)

    def assert_exact(self) -> None:
        """Every order is out exactly once, and the counts of the last record say the same."""
        known = [n for n in range(self.produced) if n % 11 < 10]
        missing = [n for n in range(self.produced) if n % 11 == 10]
        assert self.values("enriched", "n") == known
        assert self.values("missing", "n") == missing
        last = self.current.latest_checkpoint()
        assert last is not None
        assert last.totals["orders"]["records_out"] == self.produced
        assert last.totals["enriched"]["records_out"] == len(known)
        assert last.totals["missing"]["records_out"] == len(missing)
        assert last.totals["users_lookup"]["records_out_missing"] == len(missing)
        assert last.state["users_lookup"]["rows"] == 10


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path)
    yield made
    for process in made.processes:
        process.kill()


@pytest.fixture
def flow(folder: Folder) -> Iterator[Callable[[], None]]:
    """Orders that keep coming until the function is called."""
    ended = threading.Event()

    def work() -> None:
        while not ended.wait(0.05):
            # Always more than one batch takes, never so much that the rest takes minutes.
            if folder.produced - folder.processed() < 2000:
                folder.produce(500)

    thread = threading.Thread(target=work)
    thread.start()

    def stop() -> None:
        ended.set()
        thread.join()

    yield stop
    stop()


def checkpoints(folder: Folder) -> int:
    run = folder.job.current()
    return len(run.checkpoint_ids()) if run else 0


def test_a_running_job_is_stopped_killed_resumed_and_changed_without_losing_a_row(
    folder: Folder, flow: Callable[[], None]
) -> None:
    # Ctrl-C under load: the batch ends, nothing is pending, exit 0.
    process = folder.headgate("run", "app.py", "--parallelism", "2")
    folder.wait_for(lambda: checkpoints(folder) >= 3)
    second, said = folder.run()
    assert second == 5
    assert f"is driven by process {process.pid} on " in said
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert "finishing the batch; press Ctrl-C again to stop at once" in err
    assert "job small stopped" in err
    assert pending_batch(folder.current) is None
    assert [event.kind for event in folder.current.events()] == ["started", "stopped"]
    assert folder.job.read().lease is None

    # SIGTERM to all processes of the job, as a service manager sends it.
    before = checkpoints(folder)
    process = folder.headgate("run", "app.py")
    folder.wait_for(lambda: checkpoints(folder) >= before + 2)
    os.killpg(process.pid, signal.SIGTERM)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert pending_batch(folder.current) is None

    # kill -9 in the middle, and a resume that reads what is left.
    before = checkpoints(folder)
    process = folder.headgate("run", "app.py")
    folder.wait_for(lambda: checkpoints(folder) >= before + 2)
    process.kill()
    process.communicate()
    flow()
    code, said = folder.run("--bounded")
    assert code == 0, said
    assert folder.current.id == "r1"
    folder.assert_exact()

    # A changed graph goes on in a new run, from the same checkpoint.
    at = folder.current.checkpoint_ids()[-1]
    folder.produce(1000)
    folder.write(APP.replace('"n", "who.name AS name"', '"n", "who.name AS called"'))
    code, said = folder.run("--bounded")
    assert code == 0, said
    assert f"the graph has changed: run r2 goes on from r1/ck:{at}" in said
    folder.assert_exact()

    # State that would not fit is refused.
    folder.write(APP.replace('"users_lookup"', '"people_lookup"'))
    code, said = folder.run("--bounded")
    assert code == 5
    assert "state would be lost: users_lookup" in said
    assert "+ people_lookup" in said

    # Another parallelism is a new run with the same state.
    folder.write(APP)
    folder.produce(1000)
    code, said = folder.run("--bounded", "--parallelism", "3")
    assert code == 0, said
    assert folder.current.read().parallelism == 3
    folder.assert_exact()


def test_a_record_that_does_not_parse_stops_the_job_with_one_sentence(folder: Folder) -> None:
    folder.orders.append([Record("{broken")], partition=0)
    code, err = folder.run("--bounded")
    assert code == 1
    errors = [line for line in err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert "Traceback" not in err
    event = folder.current.events()[-1]
    assert event.kind == "failed"
    assert event.details["reason"] == "MALFORMED_RECORD"
    assert event.details["step"] == "orders"


def test_a_second_ctrl_c_stops_at_once_and_loses_nothing(folder: Folder) -> None:
    slow = APP.replace(
        "    found = orders",
        "    import time\n"
        "    from pyspark.sql import functions as F\n"
        "    @F.udf('bigint')\n"
        "    def lazy(n):\n"
        f"        while __import__('os').path.exists({str(folder.path)!r} + '/slow'):\n"
        "            time.sleep(0.02)\n"
        "        return n\n"
        "    orders = orders.transform('slowly', lambda df: df.withColumn('n', lazy('n')))\n"
        "    found = orders",
    )
    folder.write(slow)
    (folder.path / "slow").touch()
    folder.produce(2000)
    process = folder.headgate("run", "app.py")
    folder.wait_for(lambda: folder.job.current() and pending_batch(folder.current) is not None)
    process.send_signal(signal.SIGINT)
    time.sleep(0.5)
    assert process.poll() is None, "it finishes the batch"
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert pending_batch(folder.current) is not None, "it did not wait for the batch"
    os.remove(folder.path / "slow")
    code, said = folder.run("--bounded")
    assert code == 0, said
    folder.assert_exact()
