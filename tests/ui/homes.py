"""A home made by real jobs: one runs, others stopped, were killed with -9, restored, or failed.

`homes` makes it once; what it should show is computed here from the orders, not read from it.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from headgate.home.operations import Operations
from headgate.home.run_logs import new_log
from headgate.runtime.run import run
from headgate.runtime.signals import StopRequest
from headgate.runtime.status import job_status
from headgate.snapshots.savepoints import create_savepoint
from tests.ui import shop_app

APP = Path(shop_app.__file__)
USERS = 7
SCRIPT = "<script>alert('row')</script>"
SECRET = "very-secret-value"
VARIABLE = "SHOP_API_TOKEN"
"""Where the job that is killed has its secret from."""
_BASE_MS = 1_700_000_000_000


@dataclass(frozen=True)
class Truth:
    """What went through a shop that was sent `orders` orders, from the orders alone."""

    orders: int
    malformed: int
    missing: int
    even: int
    odd: int
    users: int = USERS

    @staticmethod
    def of(count: int) -> Truth:
        """Every 10th order has a user that is not there, every 25th line is no JSON."""
        broken = [n for n in range(count) if n % 25 == 24]
        good = [n for n in range(count) if n % 25 != 24]
        missing = [n for n in good if _user(n) >= USERS]
        found = [n for n in good if _user(n) < USERS]
        even = sum(n % 2 == 0 for n in found)
        return Truth(len(good), len(broken), len(missing), even, len(found) - even)


def _user(n: int) -> int:
    return 1000 + n if n % 10 == 9 else n % USERS


class Data:
    """The topics of one shop."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.sent = folder, 0
        self.orders, self.users = TopicFiles(folder / "orders"), TopicFiles(folder / "users")
        self.orders.create(2)
        self.users.create(1)
        self.users.append([Record(json.dumps({"id": i, "name": f"u{i}"})) for i in range(USERS)])

    def send(self, count: int) -> None:
        """More orders, evenly over both partitions."""
        for n in range(self.sent, self.sent + count):
            order = {"n": n, "user": _user(n), "at": _BASE_MS + n * 1000, "note": SCRIPT}
            text = "{broken" if n % 25 == 24 else json.dumps(order)
            self.orders.append([Record(text)], partition=n % 2)
        self.sent += count

    @property
    def params(self) -> dict[str, str]:
        """The parameters of a shop that reads this."""
        return {
            "data": str(self.folder),
            "out": str(self.folder / "out"),
            "api_token": SECRET,
        }


class Running:
    """A job in a thread of this process, until it is stopped."""

    def __init__(self, name: str, home: Path, data: Data, spark: SparkSession) -> None:
        self.name, self.home, self.data, self._spark = name, home, data, spark
        self._stop = StopRequest()
        self.errors: list[BaseException] = []
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def _work(self) -> None:
        try:
            run(shop_app.shop, name=self.name, home=str(self.home), params=self.data.params,
                spark=self._spark, stop=self._stop, code=_code(), parallelism=2)  # fmt: skip
        except BaseException as error:  # raised again by whoever waits
            self.errors.append(error)

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self._thread.is_alive()

    def until_processed(self, count: int) -> None:
        """Wait until a checkpoint has so many orders."""
        until(lambda: processed(self.home, self.name) == count, self._failure)

    def _failure(self) -> str:
        return f"{self.name}: {self.errors or ('runs' if self.alive else 'has ended')}"

    def stop(self, *, savepoint: bool = False) -> None:
        """End it in order."""
        self._stop.request("test", savepoint=savepoint)
        self._thread.join(120)
        assert not self._thread.is_alive()


@dataclass
class Homes:
    """The home, its jobs' topics, and the job that still runs."""

    home: Path
    data: dict[str, Data]
    running: Running

    def start_again(self) -> None:
        """Start the job `running` after a test has stopped it."""
        assert not self.running.alive
        old = self.running
        self.running = Running(old.name, old.home, old.data, old._spark)
        job = Home(self.home).job(old.name)
        until(lambda: job_status(job).state == "RUNNING", self.running._failure)

    def truth(self, job: str) -> Truth:
        """What a job has taken so far."""
        return Truth.of(self.data[job].sent)

    def tree(self) -> dict[str, tuple[int, int]]:
        """Every file with its size and time, but for those that a running job renews itself."""
        found = {}
        for folder, folders, files in os.walk(self.home):
            if folder == str(self.home / "jobs"):
                folders.remove("running")
            for name in files:
                path = Path(folder, name)
                stat = path.stat()
                found[str(path.relative_to(self.home))] = (stat.st_size, stat.st_mtime_ns)
        return found


def until(
    condition: Callable[[], object], failure: Callable[[], str], seconds: float = 300
) -> None:
    """Wait for something that other threads or processes do."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not in time; {failure()}"
        time.sleep(0.05)


def processed(home: Path, job: str) -> int:
    """Orders of a job's newest checkpoint, malformed ones too."""
    current = Home(home).job(job).current()
    record = current.latest_checkpoint() if current else None
    counts = record.totals.get("orders", {}) if record else {}
    return sum(n for name, n in counts.items() if name.startswith("records_out"))


@contextmanager
def homes(folder: Path, spark: SparkSession) -> Iterator[Homes]:
    """Make the home; the job `running` runs until the block ends."""
    home = folder / "home"
    names = ("crashed", "stopped", "restored", "running", "failed")
    data = {name: Data(folder / name) for name in names}
    data["crashed"].send(50)
    log = new_log(Home(home).job("crashed"))
    victim = _start_process(home, data["crashed"], log)
    try:
        _failed(home, data["failed"], spark)
        _restored(home, data["restored"], spark)
        _stopped(home, data["stopped"], spark)
        data["running"].send(30)
        running = Running("running", home, data["running"], spark)
        running.until_processed(30)
        until(lambda: processed(home, "crashed") == 50 or victim.poll() is not None,
              lambda: log.read_text())  # fmt: skip
        assert victim.poll() is None, log.read_text()
        os.kill(victim.pid, signal.SIGKILL)
        victim.wait()
        found = Homes(home, data, running)
        try:
            yield found
        finally:
            if found.running.alive:
                found.running.stop()
    finally:
        if victim.poll() is None:
            os.killpg(victim.pid, signal.SIGKILL)
            victim.wait()


def _code() -> dict[str, str]:
    return {"file": str(APP), "sha256": ""}


def _once(name: str, home: Path, data: Data, spark: SparkSession, **more: Any) -> Any:
    return run(shop_app.shop, name=name, home=str(home), params=data.params, spark=spark,
               bounded=True, code=_code(), parallelism=2, **more)  # fmt: skip


def _failed(home: Path, data: Data, spark: SparkSession) -> None:
    data.send(10)
    params = {name: data.params[name] for name in ("data", "out")}
    outcome = run(shop_app.failing, name="failed", home=str(home), params=params,
                  spark=spark, bounded=True, code=_code(), parallelism=2)  # fmt: skip
    assert outcome.error is not None


def _restored(home: Path, data: Data, spark: SparkSession) -> None:
    """Run r1 reads 40 and then 20 orders; r2 goes on from the savepoint between them."""
    data.send(40)
    _once("restored", home, data, spark)
    current = Home(home).job("restored").current()
    assert current is not None
    create_savepoint(current, label="before_v2", reason="test")
    data.send(20)
    _once("restored", home, data, spark)
    assert _once("restored", home, data, spark, restore="sp:before_v2").run == "r2"


def _stopped(home: Path, data: Data, spark: SparkSession) -> None:
    data.send(25)
    job = Running("stopped", home, data, spark)
    job.until_processed(25)
    data.send(10)
    job.until_processed(35)
    request = Operations(Home(home).job("stopped")).request("stop", {"label": "at_the_end"})
    job._thread.join(120)
    assert Operations(Home(home).job("stopped")).read(request.id).state == "done", job._failure()


def _start_process(home: Path, data: Data, log: Path) -> subprocess.Popen[bytes]:
    os.environ[VARIABLE] = SECRET  # for the server that starts it again, too
    params = {**data.params, "api_token": f"env:{VARIABLE}"}
    sets = [word for pair in params.items() for word in ("--set", "=".join(pair))]
    with log.open("wb") as out:
        return subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", "run", f"{APP}:shop", "--name", "crashed",
             "--home", str(home), *sets, "--", "--master", "local[1]", "--conf",
             "spark.driver.memory=1g"],
            stdout=out, stderr=out, stdin=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
