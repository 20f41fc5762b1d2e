"""A job whose broker stops answering says so at once: on the terminal, in `show`, on its page."""

from __future__ import annotations

import io
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from starlette.testclient import TestClient

import headgate as hg
from headgate.base.errors import HeadgateError
from headgate.brokers import KafkaBroker
from headgate.brokers.process import free_port
from headgate.cli.main import invoke
from headgate.home.layout import Home
from headgate.runtime.live import PlainDisplay
from headgate.runtime.run import run
from headgate.runtime.signals import StopRequest
from headgate.runtime.status import job_status
from headgate.ui.app import create_app
from tests.kafka.client import Kafka, Send

pytestmark = pytest.mark.slow
SCHEMA = "id BIGINT"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that these tests freeze, which no other test would like."""
    with KafkaBroker(tmp_path_factory.mktemp("frozen")) as made:
        yield made


def freeze(broker: KafkaBroker, number: signal.Signals) -> None:
    record = broker.status().record
    assert record is not None and record.process is not None
    os.kill(record.process.pid, number)


class Running:
    """A job that copies a topic, in a thread of this process, and what its terminal shows."""

    def __init__(self, spark: SparkSession, kafka: Kafka, home: Path) -> None:
        self.source, self.sink = kafka.topic(1), kafka.topic(1)
        address, source, sink = f"kafka://{kafka.servers}/", self.source, self.sink

        @hg.job("copy", checkpoints=hg.Checkpoints(every="100 ms"))
        def copy(job: hg.Job) -> None:
            rows = job.source("orders", hg.topic(address + source, schema=SCHEMA))
            rows.sink("copies", hg.topic(address + sink, key="id"))

        self.terminal = io.StringIO()
        self.home = Home(home).job("copy")
        self.stop = StopRequest()
        self.errors: list[BaseException] = []

        def work() -> None:
            try:
                run(copy, home=str(home), spark=spark, stop=self.stop, parallelism=1,
                    display=PlainDisplay(self.terminal))  # fmt: skip
            except BaseException as error:  # told by whoever waits
                self.errors.append(error)

        self.thread = threading.Thread(target=work, daemon=True)
        self.thread.start()

    def until(self, condition: Callable[[], object], seconds: float = 120) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end and self.thread.is_alive(), (
                self.errors, self.terminal.getvalue(),
            )  # fmt: skip
            time.sleep(0.05)

    def taken(self) -> int:
        record = job_status(self.home).checkpoint
        return record.totals.get("orders", {}).get("records_out", 0) if record else 0


def test_should_say_within_seconds_that_the_broker_does_not_answer(
    broker: KafkaBroker, spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka = Kafka(broker.servers)
    job = Running(spark, kafka, tmp_path / "home")
    kafka.send(job.source, [Send(json.dumps({"id": n}), str(n)) for n in range(10)])
    job.until(lambda: job.taken() == 10)
    assert "waiting" not in job.terminal.getvalue(), "a broker that answers is not waited for"
    freeze(broker, signal.SIGSTOP)
    began = time.monotonic()
    try:
        job.until(lambda: "waiting for" in job.terminal.getvalue())
        print(f"said after {time.monotonic() - began:.1f} s")
        subject = f"kafka broker {broker.servers} of orders, copies"
        assert f"waiting for {subject}: it has not answered since " in job.terminal.getvalue()
        job.until(lambda: job_status(job.home).waiting)
        print(f"in the home after {time.monotonic() - began:.1f} s")
        capsys.readouterr()
        home = str(tmp_path / "home")
        assert invoke(["show", "copy", "--home", home]) == 0
        assert f"waiting      for {subject}: it has not answered" in capsys.readouterr().out
        assert invoke(["list", "--home", home]) == 0
        assert "RUNNING (waits for broker)" in capsys.readouterr().out
        assert invoke(["show", "copy", "--home", home, "--json"]) == 0
        (told,) = json.loads(capsys.readouterr().out)["waiting"]
        assert (told["for"], told["subject"]) == ("broker", subject)
        with TestClient(create_app(home), base_url="http://127.0.0.1") as client:
            (job_told,) = client.get("/jobs/overview").json()["jobs"]
            assert job_told["waiting"][0]["subject"] == subject
            for page in ("/ui/jobs/copy", "/ui/jobs/copy/checkpoints"):
                assert f"Waiting for {subject}" in client.get(page).text
            assert "waits for broker" in client.get("/ui/jobs").text
    finally:
        freeze(broker, signal.SIGCONT)
    kafka.send(job.source, [Send(json.dumps({"id": n}), str(n)) for n in range(10, 20)])
    job.until(lambda: job.taken() == 20)
    job.until(lambda: f"no longer waiting for {subject}, after" in job.terminal.getvalue())
    assert job_status(job.home).waiting == ()
    job.stop.request("test")
    job.thread.join(60)
    assert not job.errors and not job.thread.is_alive()
    assert not (tmp_path / "home" / "jobs" / "copy" / "waiting.json").exists()
    assert sorted(map(str, kafka.values(job.sink))) == sorted(f'{{"id":{n}}}' for n in range(20))


def test_should_name_the_address_where_no_broker_answers(
    spark: SparkSession, tmp_path: Path
) -> None:
    servers = f"127.0.0.1:{free_port()}"

    @hg.job("nobody")
    def nobody(job: hg.Job) -> None:
        rows = job.source("orders", hg.topic(f"kafka://{servers}/orders", schema=SCHEMA))
        rows.sink("copies", hg.topic(f"kafka://{servers}/copies"))

    began = time.monotonic()
    with pytest.raises(HeadgateError, match=f"no Kafka broker answers at {servers}") as failed:
        run(nobody, home=str(tmp_path), spark=spark, parallelism=1)
    print(f"failed after {time.monotonic() - began:.1f} s")
    assert failed.value.step == "orders"
