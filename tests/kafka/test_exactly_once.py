"""What only a Kafka sink has: transactions, markers in groups and topics, Kafka's partitions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

import headgate as hg
from headgate import jvm
from headgate.base.errors import GraphError, HeadgateError
from tests.brokers.pipe import SCHEMA, Pipe
from tests.brokers.systems import KafkaSystem
from tests.kafka.client import Kafka, Send

IN_COMMIT = "spark.headgate.test.in.state.commit"


@pytest.fixture
def kafka(kafka_servers: str) -> Kafka:
    return Kafka(kafka_servers, calm=True)


@pytest.fixture
def pipe(spark: SparkSession, tmp_path: Path, kafka: Kafka) -> Pipe:
    return Pipe(spark, tmp_path, KafkaSystem(kafka.servers))


def test_should_write_each_row_once_from_kafka_to_kafka(pipe: Pipe, kafka: Kafka) -> None:
    address = f"kafka://{kafka.servers}/"
    users, visits = kafka.topic(2), kafka.topic(3)
    kafka.send(users, [Send(json.dumps({"id": n}), str(n)) for n in range(0, 500, 5)])

    @hg.job("pipe")
    def job(job: hg.Job) -> None:
        rows = job.source("visits", hg.topic(address + visits, schema=SCHEMA))
        table = job.table("users", hg.topic(address + users, schema="id BIGINT"), key="id")
        found = rows.lookup("who", table, on="id", missing="side")
        found.sink("known", hg.topic(address + pipe.known, key="id"))
        found.missing.sink("unknown", hg.topic(address + pipe.unknown, key="id"))

    points = (None, "before_marker", "in_transaction", "after_sink", "before")
    for first, point in zip(range(0, 500, 100), points, strict=True):
        numbers = range(first, first + 100)
        kafka.send(visits, [Send(json.dumps({"id": n, "url": f"/{n}"}), str(n)) for n in numbers])
        pipe.sent += numbers
        if point == "before":  # rows were sent, and no store has committed
            pipe.spark.conf.set(IN_COMMIT, point)
            try:
                with pytest.raises(HeadgateError, match="failed before commits of stores"):
                    pipe.go(job)
            finally:
                pipe.spark.conf.unset(IN_COMMIT)
        elif point is not None:
            pipe.crash(point, job)
        pipe.go(job)
        pipe.assert_exact()


def test_should_not_write_a_batch_again_when_group_offsets_have_gone(
    pipe: Pipe, kafka: Kafka
) -> None:
    pipe.send(range(0, 60))
    pipe.crash("after_sink")
    groups = [g.group_id for g in kafka.admin.list_consumer_groups().result(30).valid]
    ours = [g for g in groups if g.startswith("headgate.pipe.")]
    assert ours
    for deleted in kafka.admin.delete_consumer_groups(ours).values():
        deleted.result(30)
    pipe.go()
    pipe.assert_exact()


def test_should_end_a_transaction_that_a_dead_driver_left_open(pipe: Pipe, kafka: Kafka) -> None:
    pipe.send(range(0, 40))
    pipe.go()
    dead = Producer({"bootstrap.servers": kafka.servers, "log_level": 0,
                     "transactional.id": "headgate.pipe.0.1"})  # fmt: skip
    dead.init_transactions(30)
    dead.begin_transaction()
    dead.produce(pipe.known, json.dumps({"id": 5, "url": "/5"}), "5")
    dead.flush()
    pipe.send(range(40, 80))
    pipe.go()
    pipe.assert_exact()
    assert (
        jvm.kafka_open_transactions(pipe.spark, {"bootstrap.servers": kafka.servers}, "pipe") == []
    )


def test_should_put_a_key_where_other_producers_put_it(pipe: Pipe, kafka: Kafka) -> None:
    ours, theirs = kafka.topic(5), kafka.topic(5)
    pipe.send(range(0, 200))
    kafka.send(theirs, [Send("x", f"/{n}") for n in range(200)])
    pipe.go(pipe.sinking(pipe.sink(ours, key="url")))
    places = [{r.key: r.partition for r in kafka.read(t)} for t in (ours, theirs)]
    assert places[0] == places[1] and len(places[0]) == 200


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        (
            hg.KafkaSink("h:1", "t", transaction_timeout="10 milliseconds"),
            "transaction_timeout must be longer",
        ),
        (hg.KafkaSink("h:1", "t", options={"transactional.id": "x"}), "set by Headgate"),
        (hg.KafkaSink("h:1", "t", options={"marker_topic": "a b"}), "marker_topic"),
    ],
)
def test_should_say_what_is_wrong_with_a_sink(pipe: Pipe, sink: hg.Sink, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        pipe.go(pipe.sinking(sink))


def test_should_refuse_sinks_that_cannot_share_a_transaction(pipe: Pipe) -> None:
    """A changed option must not hide the markers of a batch that is out."""
    address = pipe.system.address
    squeezed = hg.topic(address(pipe.known), **{"compression.type": "lz4"})
    with pytest.raises(GraphError, match="shares transactions") as refused:
        pipe.go(pipe.sinking(squeezed, hg.topic(address(pipe.unknown))))
    assert refused.value.step == "out1"
