"""Clients of brokers are extras: who needs one and has none is told what to install."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import headgate as hg
from headgate.brokers import KafkaBroker
from headgate.cli.main import invoke

KAFKA = "pip install 'headgate[kafka]'"
PULSAR = "pip install 'headgate[pulsar]'"


@pytest.fixture(autouse=True)
def without_clients(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("confluent_kafka", "pulsar"):
        monkeypatch.setitem(sys.modules, name, None)


@pytest.mark.parametrize(
    ("address", "remedy"), [("kafka://localhost:1/t", KAFKA), ("pulsar://localhost:1/t", PULSAR)]
)
def test_a_topic_on_the_command_line_needs_its_client(
    address: str, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["topic", "read", address]) == 2
    said = capsys.readouterr().err
    assert f"the topic {address} needs the Python package" in said and remedy in said
    assert "Traceback" not in said


def test_a_job_that_reads_pulsar_is_refused_at_its_line_before_spark_starts() -> None:
    @hg.job("reads")
    def reads(job: hg.Job) -> None:
        job.source("orders", hg.topic("pulsar://localhost:1/orders", schema="id BIGINT")).sink(
            "out", hg.topic("log:out")
        )

    with pytest.raises(hg.UsageError, match="needs the Python package pulsar-client") as refused:
        reads.build()
    assert refused.value.remedy == PULSAR
    assert "test_extras.py" in str(refused.value.location)


def test_a_job_on_kafka_needs_no_client_in_python() -> None:
    @hg.job("copies")
    def copies(job: hg.Job) -> None:
        orders = job.source("orders", hg.topic("kafka://localhost:1/orders", schema="id BIGINT"))
        orders.sink("out", hg.topic("pulsar://localhost:1/copied"))

    assert copies.build()


def test_a_local_kafka_broker_is_refused_before_anything_is_fetched(tmp_path: Path) -> None:
    with pytest.raises(hg.UsageError, match="a Kafka broker on this machine needs") as refused:
        KafkaBroker(tmp_path / "broker").start()
    assert refused.value.remedy == KAFKA
    assert not (tmp_path / "broker").exists() or not list((tmp_path / "broker").iterdir())
