"""A driver that writes Delta tables is killed at any moment; a table in a bucket."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import headgate as hg
from headgate.connectors.log.files import Record, TopicFiles
from headgate.testing import JobDriver
from tests.homes.s3 import KEYS, S3Server

from .tables import check_tables, order, read

ROOT = Path(__file__).resolve().parents[2]
COUNT = 400


@pytest.mark.parametrize(
    "kills", [pytest.param(1, marks=pytest.mark.slow), pytest.param(5, marks=pytest.mark.long)]
)
def test_a_killed_driver_leaves_each_row_once(tmp_path: Path, kills: int) -> None:
    (tmp_path / "lake").mkdir()
    topic = TopicFiles(tmp_path / "orders")
    topic.create(2)
    for partition in range(2):
        ours = [Record(json.dumps(order(n))) for n in range(COUNT) if n % 2 == partition]
        topic.append(ours, partition=partition)
    moments = random.Random(5)
    for kill in range(kills):
        driver = _start(tmp_path)
        seen = len(read(tmp_path / "lake" / "all"))
        _wait(lambda seen=seen: len(read(tmp_path / "lake" / "all")) > seen, driver)
        time.sleep(moments.random())
        os.kill(driver.pid, signal.SIGKILL)
        driver.wait()
        assert len(read(tmp_path / "lake" / "all")) < COUNT, f"kill {kill} came too late"
    assert _start(tmp_path, "--bounded").wait(240) == 0, (tmp_path / "driver.log").read_text()[
        -900:
    ]
    check_tables(tmp_path / "lake", Counter(range(COUNT)))


def _start(folder: Path, *flags: str) -> subprocess.Popen[bytes]:
    sets = {"orders": f"log:{folder / 'orders'}", "lake": str(folder / "lake"), "limit": "80"}
    words = [word for name, value in sets.items() for word in ("--set", f"{name}={value}")]
    app = f"{ROOT / 'tests' / 'lakes' / 'lake_job.py'}:tables"
    with open(folder / "driver.log", "ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", "run", app, "--home",
             str(folder / "home"), *words, *flags],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )  # fmt: skip


def _wait(done: Callable[[], bool], driver: subprocess.Popen[bytes], seconds: float = 180) -> None:
    until = time.monotonic() + seconds
    while not done():
        assert driver.poll() is None, "the driver ended"
        assert time.monotonic() < until, "nothing came"
        time.sleep(0.1)


@pytest.mark.slow
def test_a_table_may_be_in_a_bucket(
    job_driver: Callable[..., JobDriver], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    server = S3Server(tmp_path)
    try:
        bucket = server.bucket("lake")
        options = {"endpoint_url": server.endpoint, "allow_http": "true", **KEYS}

        def rows() -> list[dict[str, Any]]:
            return read(f"s3://{bucket}/orders", options)

        @hg.job("bucket")
        def job(job: hg.Job) -> None:
            orders = job.source("orders", hg.topic("log:orders", schema="user STRING, price INT"))
            sink = hg.DeltaSink(
                server.url(bucket, "orders"), mode="merge", key=["user"], partition_by=["user"]
            )
            orders.sink("out", sink)

        t = job_driver(job, real_sinks={"out": rows})
        t.send("orders", {"user": "ann", "price": 1}, {"user": "bob", "price": 2}).run()
        t.send("orders", {"user": "ann", "price": 3}).crash(at="mid_sink").restore().run()
        found = sorted(rows(), key=str)
        assert found == [{"user": "ann", "price": 3}, {"user": "bob", "price": 2}]
    finally:
        server.stop()
