"""What a home must do wherever it is: one suite for a disk, S3 and HDFS."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from starlette.testclient import TestClient

from headgate import jvm
from headgate.base.errors import ExitCode, HeadgateError, RefusedError
from headgate.cli.main import invoke
from headgate.doctor.checks import run_checks
from headgate.home.layout import Home
from headgate.home.model import JobRecord
from headgate.runtime.lease import Lease
from headgate.runtime.restore_services import reach
from headgate.runtime.run import RunOutcome, run
from headgate.snapshots.snapshot import find_snapshot
from headgate.state import StateReader
from headgate.ui.app import create_app
from tests.homes.orders import BATCH, Orders, in_order
from tests.homes.places import ENVIRONMENT, Place, open_place
from tests.homes.shop import shop

APP = Path(__file__).parent / "shop.py"


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("disk", marks=pytest.mark.slow),
        pytest.param("s3", marks=pytest.mark.slow),
        pytest.param("hdfs", marks=pytest.mark.long),
    ],
)
def place(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in ENVIRONMENT.items():
            patch.setenv(name, value)
        with open_place(request.param, tmp_path_factory.mktemp("place")) as found:
            yield found


class Shop:
    """A job in a home, its topics and their truth."""

    def __init__(self, home: str, orders: Orders, spark: SparkSession) -> None:
        self.url = home
        self.orders = orders
        self.spark = spark

    @property
    def home(self) -> Home:
        return Home(self.url)  # as another process would open it

    def run(self, **options: Any) -> RunOutcome:
        """One bounded run in this process."""
        return run(shop, home=self.url, params=self.orders.params, bounded=True,
                   spark=self.spark, **options)  # fmt: skip

    def state(self, snapshot: str = "latest") -> dict[int, str]:
        found = find_snapshot(self.home, snapshot, "shop")
        reach(self.spark, found)
        rows = StateReader(self.spark, found).view("users_lookup").all()
        return {row["key"]["id"]: row["row"]["name"] for row in rows}

    def assert_exact(self) -> None:
        assert self.orders.written() == in_order(self.orders.expected)
        assert self.state() == self.orders.users

    def driver(self, log: Path, *, bounded: bool = True, **env: str) -> subprocess.Popen[bytes]:
        """`headgate run` as a process of its own."""
        sets = [w for name, at in self.orders.params.items() for w in ("--set", f"{name}={at}")]
        words = [*(["--bounded"] if bounded else []), *sets, "--", "--master", "local[2]"]
        with open(log, "wb") as said:
            return subprocess.Popen(
                [sys.executable, "-m", "headgate.cli.main", "run", f"{APP}:shop", "--home",
                 self.url, *words],
                stdout=said, stderr=said, stdin=subprocess.DEVNULL, start_new_session=True,
                env={**os.environ, **env},
            )  # fmt: skip


@pytest.fixture(scope="module")
def shop_of(place: Place, tmp_path_factory: pytest.TempPathFactory, spark: SparkSession) -> Any:
    def made(name: str, seed: int) -> Shop:
        data = tmp_path_factory.mktemp(name)
        return Shop(place.home(name), Orders(data, seed), spark)

    return made


@pytest.fixture(scope="module")
def told(shop_of: Any) -> Shop:
    """A shop with four checkpoints, whose job died at each point of a commit on the way."""
    found: Shop = shop_of("told", 3)
    found.states = []  # type: ignore[attr-defined]
    for number in range(4):
        found.orders.send()
        point = {1: "before_sink", 2: "mid_sink", 3: "after_sink"}.get(number)
        if point is not None:
            jvm.arm_crash(found.spark, "r1", point)
            assert found.run().error is not None
        assert found.run().error is None
        found.states.append(dict(found.orders.users))  # type: ignore[attr-defined]
    return found


def test_a_job_that_dies_in_its_commits_resumes_exactly(told: Shop) -> None:
    told.assert_exact()
    (job,) = told.home.jobs()
    current = job.current()
    assert current is not None and current.id == "r1"
    assert [record.id for record in current.checkpoints()] == list(range(4))


def test_retention_deletes_what_no_kept_checkpoint_needs(
    told: Shop, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = json.loads(_said(capsys, told, "checkpoint", "list", "shop", "--json"))["checkpoints"]
    assert [r["id"] for r in listed if r["restorable"]] == [3, 2]
    files = told.home.files
    for log in ("offsets", "commits"):
        assert "0" not in files.list(f"jobs/shop/runs/r1/spark/{log}")
    for batch in (3, 2):
        assert told.state(f"ck:{batch}") == told.states[batch]  # type: ignore[attr-defined]


def test_commands_and_pages_show_the_home(told: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert "shop" in _said(capsys, told, "list")
    shown = json.loads(_said(capsys, told, "show", "shop", "--json"))
    assert shown["run"]["run"] == "r1" and shown["state"] == "FINISHED"
    verified = json.loads(_said(capsys, told, "checkpoint", "verify", "shop", "ck:3", "--json"))
    assert verified["ok"] and verified["files"] > 5
    key, name = next(iter(told.orders.users.items()))
    words = ("state", "get", "shop@ck:3", "users_lookup", "--key", f"id={key}", "--json")
    assert json.loads(_said(capsys, told, *words))["state"] == {"row": {"name": name}}
    sets = [w for param in told.orders.params.items() for w in ("--set", "=".join(param))]
    words = ("plan", f"{APP}:shop", "--against", "shop@ck:3", "--json", *sets)
    assert "users_lookup" in _said(capsys, told, *words)
    checks = [c for c in run_checks(told.url, live=True) if c.name.startswith("home")]
    assert all(check.ok for check in checks), checks
    assert len(checks) == (1 if Path(told.url).exists() else 2), "by Python, and by Spark"
    with TestClient(create_app(told.url), base_url="http://127.0.0.1") as client:
        (job,) = client.get("/jobs/overview").json()["jobs"]
        assert job["name"] == "shop" and job["state"] == "FINISHED"
        assert client.get("/").status_code == 200
        history = client.get("/jobs/shop/checkpoints").json()["history"]
        assert {line["id"] for line in history} == {0, 1, 2, 3}


def test_any_checkpoint_can_be_gone_on_from(told: Shop) -> None:
    for batch in (2, 3):
        before = told.orders.written()
        assert told.run(restore=f"r1/ck:{batch}").error is None
        assert told.state() == told.orders.users
        again = told.orders.again((batch + 1) * BATCH)
        assert told.orders.written() == in_order([*before, *again])


def test_a_savepoint_is_copied_to_another_home_and_a_disk_and_restored_from_there(
    told: Shop, place: Place, shop_of: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _said(capsys, told, "savepoint", "create", "shop", "--label", "before")
    other: Shop = shop_of("other", 9)
    there = Home(other.url).files.address("kept/before")
    for target in (there, str(tmp_path / "copy")):
        _said(capsys, told, "savepoint", "copy", "shop", "sp:before", "--to", target)
    _said(capsys, told, "savepoint", "verify", "shop", "sp:before")
    before = told.orders.written()
    # the same topics, another home: it goes on behind what was read
    moved = Shop(other.url, told.orders, told.spark)
    told.orders.send()
    for source in (there, str(tmp_path / "copy")):
        outcome = moved.run(restore=source, take_over=True, name="shop", allow_duplicates=True)
        assert outcome.error is None
        assert moved.state() == told.orders.users
    new = told.orders.expected[-BATCH:]
    assert told.orders.written() == in_order([*before, *new, *new])


def test_of_many_that_want_a_job_at_once_one_gets_it(place: Place) -> None:
    url, won, refused = place.home("race"), [], []
    ready = threading.Barrier(8)

    def take() -> None:
        lease = Lease(Home(url).job("shop"))
        ready.wait()
        try:
            won.append(lease.acquire())
        except RefusedError as error:
            refused.append(error)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1 and len(refused) == 7
    won[0].release()
    assert Home(url).job("shop").read().lease is None


def test_of_two_drivers_at_once_one_runs_and_the_other_says_why_not(
    shop_of: Any, tmp_path: Path
) -> None:
    found: Shop = shop_of("twice", 8)
    found.orders.send()
    logs = [tmp_path / "first", tmp_path / "second"]
    drivers = [found.driver(log, bounded=False) for log in logs]
    try:
        until = time.monotonic() + 120
        while all(driver.poll() is None for driver in drivers):
            assert time.monotonic() < until, [log.read_text()[-2000:] for log in logs]
            time.sleep(0.1)
        refused = 0 if drivers[0].poll() is not None else 1
        runs = drivers[1 - refused]
        assert drivers[refused].wait() == ExitCode.REFUSED
        said = logs[refused].read_text()
        assert f"is driven by process {runs.pid} on " in said, said
        while not (current := found.home.job("shop").current()) or not current.checkpoint_ids():
            assert runs.poll() is None and time.monotonic() < until, logs[1 - refused].read_text()
            time.sleep(0.2)
        runs.send_signal(signal.SIGTERM)
        assert runs.wait(60) == ExitCode.DONE, logs[1 - refused].read_text()[-3000:]
    finally:
        for driver in drivers:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    assert found.run().error is None
    found.assert_exact()


def test_changes_of_many_at_once_are_all_made(place: Place) -> None:
    from headgate.home.changes import change_text
    from headgate.home.files import open_files

    url = place.home("counts")

    def count() -> None:
        for _ in range(5):
            change_text(open_files(url), "count", "count.lock", lambda old: str(int(old or 0) + 1))

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert open_files(url).read_text("count") == "20"


def test_kill_9_in_a_batch(shop_of: Any, tmp_path: Path) -> None:
    found: Shop = shop_of("killed", 5)
    found.orders.send()
    with _frozen(found, tmp_path / "log", "mid_sink:0") as driver:
        os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()
        found.orders.send()
        assert found.run().error is None
    found.assert_exact()


def test_a_driver_that_is_woken_in_a_commit_after_a_takeover_writes_nothing(
    shop_of: Any, place: Place, tmp_path: Path
) -> None:
    found: Shop = shop_of("frozen", 6)
    found.orders.send()
    with _frozen(found, tmp_path / "log", "before_commit:0") as driver:
        _let_the_lease_run_out(found.home)
        found.orders.send()
        if place.waits_for_sections:
            # the commit ends first, then the new driver goes on
            waker = threading.Timer(3, os.killpg, (driver.pid, signal.SIGCONT))
            waker.start()
            assert found.run().error is None
        else:
            assert found.run().error is None
            before = _everything(found.home)
            os.killpg(driver.pid, signal.SIGCONT)
        # where a commit is waited for it was the driver's own: it may have come to its end
        allowed = (0, 1) if place.waits_for_sections else (1,)
        assert driver.wait(60) in allowed, (tmp_path / "log").read_text()[-3000:]
        if not place.waits_for_sections:
            assert _everything(found.home) == before, "the woken driver has written"
    found.assert_exact()
    found.orders.send()
    assert found.run().error is None
    found.assert_exact()


def _said(capsys: pytest.CaptureFixture[str], found: Shop, *words: str) -> str:
    capsys.readouterr()
    code = invoke([*words, "--home", found.url])
    printed = capsys.readouterr()
    assert code == ExitCode.DONE, (words, printed)
    return printed.out


@contextlib.contextmanager
def _frozen(found: Shop, log: Path, point: str) -> Iterator[subprocess.Popen[bytes]]:
    """A driver that has stopped at a point of its commit (SIGSTOP)."""
    driver = found.driver(log, HEADGATE_FREEZE=point)
    try:
        until = time.monotonic() + 120
        while _process_state(driver.pid) != "T":
            assert time.monotonic() < until and driver.poll() is None, log.read_text()[-3000:]
            time.sleep(0.1)
        yield driver
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(driver.pid, signal.SIGKILL)
        driver.wait()


def _process_state(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    return ""


def _let_the_lease_run_out(home: Home) -> None:
    """What an hour of waiting does."""

    def older(old: JobRecord) -> JobRecord:
        assert old.lease is not None
        return replace(
            old, lease=replace(old.lease, heartbeat=old.lease.heartbeat - timedelta(hours=1))
        )

    home.job("shop").change(older)


def _everything(home: Home) -> dict[str, str | None]:
    """Spark's logs and the records (state files have names that nobody else uses)."""
    with contextlib.suppress(HeadgateError):
        root = "jobs/shop/runs"
        kinds = ("spark/offsets/", "spark/commits/", "checkpoints/", "journal/", "events/")
        # a hidden file is one that was begun and never finished: it counts as nothing
        names = [
            name
            for name in home.files.walk(root)
            if name.partition("/")[2].startswith(kinds) and "/." not in name
        ]
        return {name: home.files.read_text(f"{root}/{name}") for name in names}
    raise AssertionError("the home cannot be read")
