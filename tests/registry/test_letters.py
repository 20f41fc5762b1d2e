"""Records that nobody could read are dead letters, and are read when their schema is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.cli.main import invoke
from headgate.connectors.log.files import TopicFiles
from headgate.runtime.run import run
from tests.kafka.client import Kafka, Send
from tests.registry.records import avro, framed, record
from tests.registry.server import RegistryServer

ORDER = record("Order", ("id", "long"))


@pytest.mark.slow
def test_should_replay_what_had_a_schema_that_nobody_knew(
    spark: SparkSession, tmp_path: Path, kafka_servers: str, registry: RegistryServer
) -> None:
    kafka = Kafka(kafka_servers, calm=True)
    orders = kafka.topic(1)
    kafka.send(orders, [Send(framed(n % 2 + 1, avro(ORDER, {"id": n}))) for n in range(10)])
    registry.add("orders-value", ORDER)

    @hg.job("late", dead_letters=f"log:{tmp_path}/letters")
    def late(job: hg.Job) -> None:
        address = f"kafka://{kafka_servers}/{orders}"
        rows = hg.topic(address, schema="id BIGINT", format="avro", registry=registry.url)
        job.source("orders", rows).sink("out", hg.topic(f"log:{tmp_path}/out"))

    def go() -> list[str]:
        outcome = run(late, home=str(tmp_path / "home"), bounded=True, spark=spark)
        assert outcome.error is None, outcome.error
        return sorted(r.value or "" for r in TopicFiles(tmp_path / "out").read())

    assert go() == [f'{{"id":{n}}}' for n in range(0, 10, 2)]
    assert registry.add("orders-value", {**ORDER, "doc": "2"}) == 2
    words = ["replay", f"log:{tmp_path}/letters", "--job", "late", "--quiet"]
    assert invoke([*words, "--home", str(tmp_path / "home")]) == 0
    assert go() == [f'{{"id":{n}}}' for n in range(10)]
