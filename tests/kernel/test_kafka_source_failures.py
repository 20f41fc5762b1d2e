"""What Spark's own Kafka source throws has the reason that it has in a running job."""

from __future__ import annotations

import json

import pytest
from confluent_kafka import Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession

from headgate import jvm
from headgate.failures import Failure, Reason, explain
from tests.kernel.kafka_support import Kafka


def _written(kafka: Kafka, records: int) -> str:
    """A new topic with some records."""
    topic = kafka.topic()
    producer = Producer({"bootstrap.servers": kafka.servers})
    for _ in range(records):
        producer.produce(topic, b"x")
    assert producer.flush(30) == 0
    return topic


def _read(spark: SparkSession, kafka: Kafka, topic: str, **options: str) -> DataFrame:
    jvm.need_kafka(spark)
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.servers)
    return reader.option("subscribe", topic).options(**options).load()


def _failure(frame: DataFrame) -> tuple[Failure, str]:
    """The reason that the kernel reports, and all that was said."""
    with pytest.raises(Exception) as caught:
        frame.collect()
    return jvm.explain_failure(caught.value), jvm.failure_text(caught.value)


def test_a_fetch_that_takes_too_long_is_a_reason_of_its_own(
    spark: SparkSession, kafka: Kafka
) -> None:
    topic = _written(kafka, 1)
    # the first poll of a consumer has to find the leader, and never has records within that time
    found, text = _failure(_read(spark, kafka, topic, **{"kafkaConsumer.pollTimeoutMs": "1"}))
    assert found.reason is Reason.FETCH_TIMEOUT, text
    assert found.sentence.endswith("Cannot fetch record for offset 0 in 1 milliseconds")
    assert explain(text) == found


def test_records_that_are_gone_are_a_reason_of_their_own(spark: SparkSession, kafka: Kafka) -> None:
    topic = _written(kafka, 5)
    kafka.admin.delete_records([TopicPartition(topic, 0, 3)])[TopicPartition(topic, 0)].result(30)
    starting = json.dumps({topic: {"0": 0}})
    found, text = _failure(_read(spark, kafka, topic, startingOffsets=starting))
    assert found.reason is Reason.OFFSET_GONE, text
