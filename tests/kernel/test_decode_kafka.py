"""The decode step against a real broker: whole rows, in batch and in a stream."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import DataFrame, SparkSession

import headgate.jvm
from headgate.jvm.jars import fetch
from tests.kernel.kafka_records import ALL_METADATA, METADATA_COLUMNS, decode, metadata_of

LOCK = Path(headgate.jvm.__file__).parent / "locks" / "kafka-connector-4.2.0.lock"
BEGIN = 1_700_000_000_123
COUNT = 300


@pytest.fixture
def topic(kafka_servers: str) -> Iterator[str]:
    """A topic of three partitions with COUNT records: every third plain, escaped or malformed."""
    name = f"orders-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": kafka_servers})
    admin.create_topics([NewTopic(name, 3, 1)])[name].result(30)
    producer = Producer({"bootstrap.servers": kafka_servers})
    for n in range(COUNT):
        producer.produce(
            name, _value(n), key=_key(n), partition=n % 3, timestamp=BEGIN + n, headers=_headers(n)
        )
    assert producer.flush(30) == 0
    yield name
    admin.delete_topics([name])[name].result(30)


def _key(n: int) -> bytes | None:
    return None if n % 7 == 0 else f"kéy-{n}".encode()


def _value(n: int) -> bytes:
    if n % 5 == 4:
        return b'{"a":"\xff"}'
    return b'{"a":%d,"b":"%s"}' % (n, b"\\n" if n % 5 == 3 else b"plain")


def _headers(n: int) -> list[tuple[str, str | bytes | None]]:
    # the same key twice is good Kafka
    return [("trace", b"%d\xff" % n), ("trace", b""), ("none", None)] if n % 2 else []


def _expected(topic: str, n: int) -> tuple[Any, ...]:
    key = _key(n)
    partition, offset = n % 3, n // 3
    position = (partition << 48) + offset
    when = datetime.fromtimestamp((BEGIN + n) / 1000)
    if n % 5 == 4:
        bad = (
            f"kafka://there/{topic}", partition, offset, when, key and key.decode(),
            "base64:eyJhIjoi/yJ9", "not valid UTF-8",
        )  # fmt: skip
        return (None, None, *[None] * 6, position, False, bad)
    headers = tuple(_headers(n)) or None
    return (
        n, "\n" if n % 5 == 3 else "plain", key and key.decode(), topic, partition, offset, when,
        headers, position, False, None,
    )  # fmt: skip


def _raw(spark: SparkSession, servers: str, topic: str, *, stream: bool) -> DataFrame:
    jvm: Any = spark._jvm
    jars = jvm.java.util.ArrayList()
    for jar in fetch(LOCK):
        jars.add(str(jar))
    jvm.org.apache.spark.sql.headgate.api.JarApi.addUnlessKnown(
        spark._jsparkSession, "org.apache.spark.sql.kafka010.KafkaSourceProvider", jars
    )
    options = {
        "kafka.bootstrap.servers": servers, "subscribe": topic, "includeHeaders": "true",
        "startingOffsets": "earliest",
    }  # fmt: skip
    reader: Any = spark.readStream if stream else spark.read
    frame: DataFrame = reader.format("kafka").options(**options).load()
    return frame


def _decoded(raw: DataFrame) -> DataFrame:
    schema = f"a BIGINT, b STRING, {METADATA_COLUMNS}"
    return decode(raw, schema, topic="kafka://there/orders-*", metadata=ALL_METADATA)


def _rows(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [
        (
            r.a, r.b, *metadata_of(r), r["__hg_position"], r["__hg_deleted"],
            r["__hg_bad"] and tuple(r["__hg_bad"]),
        )
        for r in frame.collect()
    ]  # fmt: skip


def test_should_give_what_was_produced(spark: SparkSession, kafka_servers: str, topic: str) -> None:
    found = _rows(_decoded(_raw(spark, kafka_servers, topic, stream=False)))
    assert sorted(found, key=repr) == sorted((_expected(topic, n) for n in range(COUNT)), key=repr)


def test_should_read_a_stream_from_the_scan_without_a_copy(
    spark: SparkSession, kafka_servers: str, topic: str, tmp_path: Path
) -> None:
    frame = _decoded(_raw(spark, kafka_servers, topic, stream=True))
    query = (
        frame.writeStream.format("memory")
        .queryName("decoded")
        .option("checkpointLocation", str(tmp_path / "ck"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = _rows(spark.table("decoded"))
    spark.catalog.dropTempView("decoded")
    assert sorted(found, key=repr) == sorted((_expected(topic, n) for n in range(COUNT)), key=repr)
    plan = query._jsq.streamingQuery().lastExecution().executedPlan()
    assert _scans_below_decode(plan) == ["MicroBatchScanExec"]


def _scans_below_decode(plan: Any) -> list[str]:
    """What each decode step reads from, by the class of the plan's node."""
    if plan.getClass().getSimpleName() == "DecodeExec":
        scans: Any = SparkSession.active()._jvm.org.apache.spark.sql.headgate.spark.Scans
        return [str(scans.withoutCopy(plan.child()).getClass().getSimpleName())]
    children = plan.children()
    return [c for n in range(children.size()) for c in _scans_below_decode(children.apply(n))]
