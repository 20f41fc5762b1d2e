"""What only a Kafka source has: offsets, headers, Avro, patterns, transactions, retention."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.base.errors import GraphError, HeadgateError
from tests.kafka.client import Kafka, Send
from tests.reading import Reading

Make = Callable[[hg.Job], None]


@pytest.fixture
def kafka(kafka_servers: str) -> Kafka:
    return Kafka(kafka_servers, calm=True)


@pytest.fixture
def reading(spark: SparkSession, tmp_path: Path) -> Reading:
    return Reading(spark, tmp_path)


def numbered(numbers: range, **more: Any) -> list[Send]:
    return [Send(json.dumps({"id": n}), **more) for n in numbers]


def test_should_start_at_the_offsets_that_are_given(kafka: Kafka, reading: Reading) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, numbered(range(20), partition=0))
    kafka.send(topic, numbered(range(20, 30), partition=1))

    def source(start: hg.StartPosition) -> hg.KafkaSource:
        return hg.KafkaSource(kafka.servers, topic, "id BIGINT", start=start)

    reading.go(source({0: 17, 1: 8}))
    assert reading.ids() == [17, 18, 19, 28, 29]
    reading.go(source({1: 9}), fresh=True)  # partition 0 is not named: from its beginning
    assert reading.ids() == sorted([17, 18, 19, 28, 29, *range(20), 29])


def test_should_refuse_an_offset_of_a_partition_that_is_not_there(
    kafka: Kafka, reading: Reading
) -> None:
    topic = kafka.topic(2)
    with pytest.raises(GraphError, match="no partition 7"):
        reading.go(hg.KafkaSource(kafka.servers, topic, "id BIGINT", start={7: 1}))


def test_should_make_columns_of_key_time_place_and_headers(kafka: Kafka, reading: Reading) -> None:
    topic = kafka.topic(2)
    when = 1_700_000_000_123
    headers = (("trace", b"a1"), ("empty", None))
    kafka.send(topic, [Send('{"id": 5}', "k5", 1, when, headers), Send('{"id": 6}', None, 0, when)])
    reading.go(
        hg.KafkaSource(
            kafka.servers, topic, "id BIGINT",
            metadata="key AS who, topic, partition, offset, timestamp AS at, headers",
        )
    )  # fmt: skip
    rows = {row["id"]: row for row in reading.rows()}
    at = "2023-11-14T22:13:20.123Z"
    assert rows[5] == {
        "id": 5, "who": "k5", "topic": topic, "partition": 1, "offset": 0, "at": at,
        "headers": [{"key": "trace", "value": "YTE="}, {"key": "empty"}],
    }  # fmt: skip
    assert rows[6] == {"id": 6, "topic": topic, "partition": 0, "offset": 0, "at": at}


def test_should_read_avro(kafka: Kafka, reading: Reading) -> None:
    topic = kafka.topic(1)

    def encoded(id: int, name: str) -> bytes:
        out = io.BytesIO()
        for number in (id, len(name)):  # a long, and a text's length, are zigzag numbers
            zigzag = number << 1
            while zigzag > 127:
                out.write(bytes([zigzag & 127 | 128]))
                zigzag >>= 7
            out.write(bytes([zigzag]))
        return out.getvalue() + name.encode()

    schema = json.dumps(
        {"type": "record", "name": "user", "fields": [
            {"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}
    )  # fmt: skip
    framed = b"\x00\x00\x00\x00\x07"
    kafka.send(topic, [Send(framed + encoded(300, "Ada")), Send(framed + encoded(7, "Bo"))])
    kafka.send(topic, [Send(b"\x01nonsense")])
    source = hg.KafkaSource(
        kafka.servers, topic, "id BIGINT, name STRING", format="avro",
        options={"avro_schema": schema, "avro_framing": "confluent"},
    )  # fmt: skip
    reading.go(source, malformed="side")
    assert reading.rows() == [{"id": 300, "name": "Ada"}, {"id": 7, "name": "Bo"}]
    assert [row["offset"] for row in reading.rows("bad")] == [2]


def test_should_read_every_topic_of_a_pattern(kafka: Kafka, reading: Reading) -> None:
    first, second = kafka.topic(1), kafka.topic(1)
    kafka.send(first, numbered(range(3)))
    kafka.send(second, numbered(range(10, 13)))
    pattern = f"({first}|{second})"
    source = hg.KafkaSource(kafka.servers, pattern, "id BIGINT", metadata=["topic"])
    reading.go(source)
    found = {(row["topic"], row["id"]) for row in reading.rows()}
    assert found == {*((first, n) for n in range(3)), *((second, n) for n in range(10, 13))}


def test_should_take_a_limited_number_of_records_a_batch(kafka: Kafka, reading: Reading) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, numbered(range(0, 1000, 10)))
    reading.go(hg.topic(f"kafka://{kafka.servers}/{topic}", schema="id BIGINT", max_records="30"))
    assert reading.ids() == list(range(0, 1000, 10))
    taken = [r.rows["in"]["records_out"] for r in reading.checkpoints()]
    assert sum(taken) == 100 and max(taken) <= 32 and len(taken) >= 4


def test_should_not_read_what_a_transaction_rolled_back(kafka: Kafka, reading: Reading) -> None:
    from confluent_kafka import Producer

    topic = kafka.topic(1)
    producer = Producer({"bootstrap.servers": kafka.servers, "transactional.id": topic})
    producer.init_transactions(30)
    for number, commit in enumerate((True, False, True)):
        producer.begin_transaction()
        producer.produce(topic, json.dumps({"id": number}))
        producer.flush()
        (producer.commit_transaction if commit else producer.abort_transaction)(30)
    reading.go(hg.KafkaSource(kafka.servers, topic, "id BIGINT"))
    assert reading.ids() == [0, 2]


def test_should_stop_when_unread_records_are_gone_unless_told_to_go_on(
    kafka: Kafka, reading: Reading
) -> None:
    topic = kafka.topic(1)
    address = f"kafka://{kafka.servers}/{topic}"
    kafka.send(topic, numbered(range(10)))
    reading.go(hg.topic(address, schema="id BIGINT"))
    kafka.send(topic, numbered(range(10, 30)))
    kafka.delete_before(topic, 0, 20)
    with pytest.raises(HeadgateError, match="gone from the topic") as stopped:
        reading.go(hg.topic(address, schema="id BIGINT"))
    assert "on_data_loss" in str(stopped.value)
    reading.go(hg.topic(address, schema="id BIGINT", on_data_loss="continue"))
    assert reading.ids() == [*range(10), *range(20, 30)]


def test_should_say_that_no_broker_answers(reading: Reading) -> None:
    source = hg.KafkaSource(
        "127.0.0.1:9", "orders", "id BIGINT",
        options={"default.api.timeout.ms": "1000", "request.timeout.ms": "800"},
    )  # fmt: skip
    with pytest.raises(HeadgateError, match=r"no Kafka broker answers at 127\.0\.0\.1:9"):
        reading.go(source)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (lambda: hg.KafkaSource("nohost", "t", "id INT"), "servers must be host:port"),
        (lambda: hg.topic("kafka://h:1", schema="id INT"), "must be kafka://host:port/topic"),
        (lambda: hg.KafkaSource("h:1", "a.*", "id INT", start={0: 1}), "start offsets must be"),
        (
            lambda: hg.KafkaSource("h:1", "t", "id INT", options={"auto.offset.reset": "none"}),
            "set by Headgate",
        ),
    ],
)
def test_should_say_what_is_wrong_with_a_source(
    reading: Reading, source: Callable[[], hg.Source], said: str
) -> None:
    with pytest.raises(GraphError, match=said):
        reading.go(source())


def test_should_refuse_a_table_of_many_topics(reading: Reading) -> None:
    @hg.job("many")
    def many(job: hg.Job) -> None:
        job.table("users", hg.KafkaSource("h:1", "users-.*", "id INT"), key="id")

    with pytest.raises(GraphError, match="one topic"):
        reading.run(many)
