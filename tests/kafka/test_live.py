"""`check --live` and `doctor --live` ask the brokers, and say what they answered."""

from __future__ import annotations

import json
import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from headgate.cli.main import invoke
from headgate.doctor.checks import run_checks
from headgate.home.layout import Home
from tests.kafka.client import Kafka

JOB = """
import headgate as hg

@hg.job("{job}")
def live(job: hg.Job) -> None:
    rows = job.source("in", hg.topic("kafka://{servers}/{source}", schema="id BIGINT"))
    rows.sink("out", hg.topic("kafka://{servers}/{sink}", key="id"))
"""


class Live:
    """A job's file, with addresses that are there or not."""

    def __init__(self, kafka: Kafka, folder: Path) -> None:
        self.kafka, self.folder = kafka, folder
        self.name = f"live-{uuid.uuid4().hex[:8]}"
        self.source, self.sink = kafka.topic(3), kafka.topic(1)

    def write(self, **other: str) -> str:
        told = {"job": self.name, "servers": self.kafka.servers, "source": self.source,
                "sink": self.sink, **other}  # fmt: skip
        path = self.folder / "live.py"
        path.write_text(JOB.format(**told))
        return str(path)


@pytest.fixture
def live(kafka_servers: str, tmp_path: Path, spark: SparkSession) -> Live:
    return Live(Kafka(kafka_servers, calm=True), tmp_path)


def test_should_find_topics_that_are_there(live: Live, capfd: pytest.CaptureFixture[str]) -> None:
    assert invoke(["check", live.write(), "--live"]) == 0
    said = capfd.readouterr().err
    assert f"ok  in: kafka://{live.kafka.servers}/{live.source}: 3 partitions" in said
    assert f"ok  out: kafka://{live.kafka.servers}/{live.sink}: 1 partition\n" in said


def test_should_name_the_step_whose_topic_is_missing(
    live: Live, capfd: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["check", live.write(sink="nowhere")]) == 0, "only --live asks"
    capfd.readouterr()
    assert invoke(["check", live.write(sink="nowhere"), "--live", "--json"]) == 3
    told = json.loads(capfd.readouterr().out)
    assert told["ok"] is False
    assert [(b["step"], b["reason"]) for b in told["live"]["brokers"]] == [
        ("in", None),
        ("out", "TOPIC_MISSING"),
    ]
    assert invoke(["check", live.write(sink="nowhere"), "--live"]) == 3
    assert "headgate topic create kafka://" in capfd.readouterr().err


def test_should_say_that_no_broker_answers(live: Live, capfd: pytest.CaptureFixture[str]) -> None:
    assert invoke(["check", live.write(servers="127.0.0.1:9"), "--live"]) == 1
    assert "no Kafka broker answers at 127.0.0.1:9" in capfd.readouterr().err


def test_should_show_a_transaction_of_the_job_that_is_open(
    live: Live, capfd: pytest.CaptureFixture[str]
) -> None:
    id = f"headgate.{live.name}.0.1"
    producer = Producer(
        {"bootstrap.servers": live.kafka.servers, "transactional.id": id, "log_level": 0}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(live.sink, "x")
    producer.flush()
    try:
        assert invoke(["check", live.write(), "--live"]) == 0
        assert f"open transaction: {id} on {live.sink}" in capfd.readouterr().err
    finally:
        producer.abort_transaction(30)
    assert invoke(["check", live.write(), "--live"]) == 0
    assert "open transaction" not in capfd.readouterr().err


def test_should_ask_the_brokers_of_a_homes_jobs(live: Live, tmp_path: Path) -> None:
    home = tmp_path / "home"
    for job, servers in (("a", live.kafka.servers), ("b", "127.0.0.1:9")):
        made = Home(str(home)).job(job)
        step = {"id": "in", "detail": {"address": f"kafka://{servers}/t"}}
        run = made.new_run(graph={"steps": [step], "sources": []}, graph_fingerprint="x",
                           parallelism=1, params={}, versions={}, code={})  # fmt: skip
        made.set_current(run.id)
    found = {c.name: c for c in run_checks(str(home), live=True) if c.name.startswith("kafka")}
    assert found[f"kafka {live.kafka.servers}"].ok
    assert not found["kafka 127.0.0.1:9"].ok
    assert "used by b" in found["kafka 127.0.0.1:9"].detail
    assert not [c for c in run_checks(str(home), live=False) if c.name.startswith("kafka")]
