"""What the records of a Kafka sink look like."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import Producer

from tests.kernel.kafka_support import Job, Kafka

HIDDEN = ["key", "value", "headers", "timestamp"]


def _write(job: Job, topic: str, struct: str, hidden: list[str], **other: Any) -> None:
    frame = job.rows().selectExpr("0 AS __hg_sink", f"struct({struct}) AS r0")
    job.run(frame, job.spec(job.sink(topic, hidden=hidden, **other)))


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_should_write_key_value_headers_and_timestamp(
    job: Job, kafka: Kafka, delivery: str
) -> None:
    out = kafka.topic(2)
    _write(
        job, out,
        "IF(id = 9, NULL, CONCAT('ké', id)) AS __hg_key,"
        "IF(id = 8, NULL, CONCAT('v', id)) AS __hg_value,"
        "IF(id = 7, NULL, map('n', CAST(id AS STRING), 'none', NULL)) AS __hg_headers,"
        "timestamp_micros(1700000000000999 + id) AS __hg_timestamp, id",
        HIDDEN, delivery=delivery,
    )  # fmt: skip
    found = {(m.key() or b"").decode(): m for m in kafka.read(out)}
    assert len(found) == 10
    for n in range(9):
        message = found[f"ké{n}"]
        assert message.value() == (None if n == 8 else f"v{n}".encode())
        headers = None if n == 7 else [("n", str(n).encode()), ("none", None)]
        assert message.headers() == headers
        assert message.timestamp()[1] == 1700000000000 + (1 if n else 0)
    assert found[""].value() == b"v9"


def test_should_write_bytes_as_they_are(job: Job, kafka: Kafka) -> None:
    out = kafka.topic()
    _write(
        job, out,
        "map('h', unhex('00ff')) AS __hg_headers, unhex('fe01') AS __hg_value,"
        "unhex(lpad(hex(id), 2, '0')) AS __hg_key",
        ["headers", "value", "key"],
    )  # fmt: skip
    messages = kafka.read(out)
    assert {m.key() for m in messages} == {bytes([n]) for n in range(10)}
    assert {m.value() for m in messages} == {b"\xfe\x01"}
    assert [m.headers() for m in messages] == [[("h", b"\x00\xff")]] * 10


def test_should_write_the_other_columns_as_json_where_there_is_no_value(
    job: Job, kafka: Kafka
) -> None:
    out = kafka.topic()
    _write(
        job, out,
        "CAST(id AS STRING) AS __hg_key, id, NULL AS none, named_struct('é', id / 2) AS half",
        ["key"],
    )  # fmt: skip
    found = {m.key(): json.loads(m.value() or b"") for m in kafka.read(out)}
    assert found == {str(n).encode(): {"id": n, "half": {"é": n / 2}} for n in range(10)}


def test_should_give_a_record_without_a_timestamp_the_time_of_its_writing(
    job: Job, kafka: Kafka
) -> None:
    out = kafka.topic()
    _write(job, out, "CAST(NULL AS TIMESTAMP) AS __hg_timestamp, id", ["timestamp"])
    assert all(m.timestamp()[1] > 1_700_000_000_000 for m in kafka.read(out))


def test_should_put_keys_where_other_clients_of_kafka_put_them(job: Job, kafka: Kafka) -> None:
    ours, theirs = kafka.topic(7), kafka.topic(7)
    job.add(range(10, 40))
    _write(job, ours, "CONCAT('key-', id) AS __hg_key, id", ["key"])
    producer = Producer({"bootstrap.servers": kafka.servers, "partitioner": "murmur2_random"})
    for n in range(40):
        producer.produce(theirs, key=f"key-{n}", value="")
    producer.flush(30)
    places = [{m.key(): m.partition() for m in kafka.read(topic)} for topic in (ours, theirs)]
    assert places[0] == places[1]
    assert len(set(places[0].values())) > 1
