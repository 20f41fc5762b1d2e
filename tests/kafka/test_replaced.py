"""Topics that are deleted and recreated: a job reads on only if its source may lose records."""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicCollection
from pyspark.sql import SparkSession

import headgate as hg
from headgate import jvm
from headgate.base.errors import HeadgateError, RefusedError
from headgate.brokers import KafkaBroker
from headgate.home.layout import Home, RunHome
from headgate.snapshots.savepoints import create_savepoint
from tests.kafka.client import Kafka, Send
from tests.reading import Reading, Running


@pytest.fixture
def kafka(kafka_servers: str) -> Kafka:
    return Kafka(kafka_servers, calm=True)


@pytest.fixture
def reading(spark: SparkSession, tmp_path: Path) -> Reading:
    return Reading(spark, tmp_path)


def numbered(numbers: range, **more: Any) -> list[Send]:
    return [Send(json.dumps({"id": n}), **more) for n in numbers]


def again(kafka: Kafka, topic: str, numbers: range, partitions: int = 2) -> None:
    """Delete a topic, make it again under the same name, and fill it."""
    kafka.delete(topic)
    kafka.create(topic, partitions)
    kafka.send(topic, numbered(numbers))


def source(kafka: Kafka, topic: str, on_data_loss: str = "fail", **more: Any) -> hg.Source:
    return hg.topic(
        f"kafka://{kafka.servers}/{topic}", schema="id BIGINT", on_data_loss=on_data_loss, **more
    )


def current(reading: Reading) -> RunHome:
    run = Home(str(reading.folder / "home")).job("reading").current()
    assert run is not None
    return run


def test_should_begin_the_new_topic_at_its_beginning_if_records_may_be_lost(
    kafka: Kafka, reading: Reading
) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, numbered(range(100)))
    reading.go(source(kafka, topic, "continue"))
    again(kafka, topic, range(1000, 1500), partitions=3)
    reading.go(source(kafka, topic, "continue"))
    assert reading.ids() == [*range(100), *range(1000, 1500)]
    (event,) = [e for e in current(reading).events() if e.kind == "reset"]
    assert event.details["source"] == "in" and event.details["topics"] == [topic]
    reading.go(source(kafka, topic, "continue"))
    kafka.send(topic, numbered(range(1500, 1510)))
    reading.go(source(kafka, topic, "continue"), restore="latest")
    assert reading.ids() == [*range(100), *range(1000, 1510)], "and no row twice"
    # the checkpoint before is one of the old topic: from there the new one is read as a whole
    reading.go(source(kafka, topic, "continue"), restore="r1/ck:0")
    assert reading.ids() == sorted([*range(100), *range(1000, 1510), *range(1000, 1510)])


def test_should_fail_when_a_topic_is_made_again_while_the_job_runs(
    kafka: Kafka, reading: Reading
) -> None:
    topic, out = kafka.topic(2), kafka.topic(1)
    kafka.send(topic, numbered(range(50)))
    # tasks of a Kafka sink commit by themselves: none of them may have begun
    sink = hg.topic(f"kafka://{kafka.servers}/{out}")
    restart = hg.fixed_delay(attempts=3, delay="100 ms")
    job = Running(reading, source(kafka, topic), sink=sink, every="1 hour", restart=restart)
    try:
        job.until(lambda: kafka.ends(out)[0] > 50)
        again(kafka, topic, range(1000, 1500))
        job.trigger()
        job.until(lambda: job.ended or len(kafka.values(out)) > 50)
    finally:
        ended = job.stop()
    assert sorted(json.loads(v or "")["id"] for v in kafka.values(out)) == list(range(50))
    assert ended.how == "failed"
    assert f"{topic} was deleted and recreated" in str(ended.error)
    with pytest.raises(RefusedError, match="deleted and recreated"):
        Running(reading, source(kafka, topic), sink=sink, restart=restart).result()
    assert len(kafka.values(out)) == 50


def test_should_leave_a_batch_of_the_old_topic_that_was_not_out(
    kafka: Kafka, reading: Reading
) -> None:
    topic = kafka.topic(1)
    kafka.send(topic, numbered(range(10)))
    reading.go(source(kafka, topic, "continue"))
    kafka.send(topic, numbered(range(10, 20)))
    jvm.arm_crash(reading.spark, "r1", "before_sink")
    with pytest.raises(HeadgateError, match="a test requested"):
        reading.go(source(kafka, topic, "continue"))
    again(kafka, topic, range(1000, 1050), partitions=1)
    # from its offsets the batch would read ten rows of the new topic
    reading.go(source(kafka, topic, "continue"))
    assert reading.ids() == [*range(10), *range(1000, 1050)]


def test_should_tell_the_topics_of_a_pattern_apart(kafka: Kafka, reading: Reading) -> None:
    first, second, third = kafka.topic(1), kafka.topic(1), f"t-{uuid.uuid4().hex[:12]}"
    pattern = f"({first}|{second}|{third})"

    def read(on_data_loss: str) -> None:
        reading.go(
            hg.KafkaSource(
                kafka.servers, pattern, "id BIGINT", options={"on_data_loss": on_data_loss}
            )
        )

    kafka.send(first, numbered(range(10)))
    kafka.send(second, numbered(range(10, 20)))
    read("fail")
    kafka.create(third, 1)
    kafka.send(third, numbered(range(20, 30)))
    read("fail")
    assert reading.ids() == list(range(30)), "one that comes later is read"
    again(kafka, third, range(1000, 1050), partitions=1)
    with pytest.raises(RefusedError, match=f"the topic {third} was deleted and recreated"):
        read("fail")
    read("continue")
    assert reading.ids() == [*range(30), *range(1000, 1050)], "and the others only once"


def test_should_know_a_cluster_under_other_addresses(kafka: Kafka, reading: Reading) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, numbered(range(20)))
    reading.go(source(kafka, topic))
    kafka.send(topic, numbered(range(20, 30)))
    both = f"kafka://{kafka.servers},{kafka.servers}/{topic}"
    reading.go(hg.topic(both, schema="id BIGINT"))
    assert reading.ids() == list(range(30))
    again(kafka, topic, range(1000, 1100))
    with pytest.raises(RefusedError, match="deleted and recreated"):
        reading.go(source(kafka, topic))
    assert reading.ids() == list(range(30))


def test_should_go_on_with_a_home_that_has_no_ids_and_keep_them(
    kafka: Kafka, reading: Reading
) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, numbered(range(20)))
    reading.go(source(kafka, topic))
    run = current(reading)
    run.files.delete(f"{run.path}/topics.json")
    for path in Path(reading.folder / "home" / run.path / "checkpoints").glob("*.json"):
        record = json.loads(path.read_text())
        del record["sources"]["in"]["cluster"], record["sources"]["in"]["topics"]
        path.write_text(json.dumps(record))
    kafka.send(topic, numbered(range(20, 30)))
    reading.go(source(kafka, topic))
    assert reading.ids() == list(range(30)) and current(reading).id == "r1"
    again(kafka, topic, range(1000, 1100))
    with pytest.raises(RefusedError, match="deleted and recreated"):
        reading.go(source(kafka, topic))
    with pytest.raises(RefusedError, match="deleted and recreated"):
        reading.go(source(kafka, topic), restore="ck:0")


def test_should_keep_ids_in_records_and_savepoints(kafka: Kafka, reading: Reading) -> None:
    topic = kafka.topic(2)
    kafka.send(topic, numbered(range(20)))
    reading.go(source(kafka, topic))
    asked = kafka.admin.describe_topics(TopicCollection([topic]))[topic].result(30)
    cluster = kafka.admin.describe_cluster().result(30).cluster_id
    (record,) = reading.checkpoints()
    ids = record.sources["in"].ids
    assert ids is not None and ids.cluster == cluster
    # Java writes an id in base64 for addresses, this client in plain base64
    assert ids.topics == {topic: str(asked.topic_id).replace("+", "-").replace("/", "_")}
    create_savepoint(current(reading), label="here")
    moved = reading.folder / "moved"
    shutil.copytree(reading.folder / "home/jobs/reading/savepoints/here", moved)
    again(kafka, topic, range(1000, 1100))
    with pytest.raises(RefusedError, match="deleted and recreated"):
        reading.go(source(kafka, topic), name="other", restore=str(moved))
    reading.go(source(kafka, topic, "continue"), name="other", restore=str(moved))
    assert reading.ids() == [*range(20), *range(1000, 1100)]


def test_should_restore_without_records_that_are_gone_if_they_may_be_lost(
    kafka: Kafka, reading: Reading
) -> None:
    topic = kafka.topic(1)
    for numbers in (range(10), range(10, 30)):
        kafka.send(topic, numbered(numbers))
        reading.go(source(kafka, topic))
    kafka.delete_before(topic, 0, 20)
    with pytest.raises(RefusedError, match="records between are gone") as refused:
        reading.go(source(kafka, topic), restore="ck:0")
    assert "on_data_loss" in str(refused.value)
    assert reading.ids() == list(range(30))
    reading.go(source(kafka, topic, "continue"), restore="ck:0")
    assert reading.ids() == sorted([*range(30), *range(20, 30)])
    (event,) = [e for e in current(reading).events() if e.kind == "reset"]
    assert "10 offsets between are gone" in event.details["message"]


@pytest.mark.long
def test_should_refuse_another_cluster_at_the_same_address(
    reading: Reading, tmp_path: Path
) -> None:
    with KafkaBroker(tmp_path / "a") as broker:
        port = int(broker.servers.rpartition(":")[2])
        one = Kafka(broker.servers)
        one.create("orders", 1)
        one.send("orders", numbered(range(10)))
        reading.go(source(one, "orders"))
    second = KafkaBroker(tmp_path / "b")
    second.start(port=port, quiet=True)
    with second as broker:
        other = Kafka(broker.servers)
        other.create("orders", 1)
        other.send("orders", numbered(range(100, 150)))
        with pytest.raises(RefusedError, match="deleted and recreated"):
            reading.go(source(other, "orders"))
        reading.go(source(other, "orders", "continue"))
    assert reading.ids() == [*range(10), *range(100, 150)]
