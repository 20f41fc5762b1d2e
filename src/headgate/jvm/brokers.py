"""Clients of brokers in the JVM: their jars, and what they say of topics."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from headgate.jvm.gateway import (
    java_list,
    kernel_api,
)
from headgate.jvm.more_jars import need_jars

_KAFKA_SOURCE = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_PULSAR_CLIENT = "org.apache.pulsar.client.api.PulsarClient"


def kafka_cluster_id(spark: SparkSession, client: Mapping[str, str]) -> str:
    """The id of the Kafka cluster that a client reaches."""
    need_kafka(spark)
    return str(_kafka(spark).clusterId(json.dumps(dict(client))))


def need_kafka(spark: SparkSession) -> None:
    """Bring Spark's Kafka connector and its client to the session, unless they are there.

    Reading and writing Kafka topics needs them; the first time they may have to be downloaded.
    """
    need_jars(spark, _KAFKA_SOURCE, "kafka-connector-4.2.0.lock")


def need_pulsar(spark: SparkSession) -> None:
    """Bring Pulsar's Java client to the session, unless it is there; writing topics needs it."""
    need_jars(spark, _PULSAR_CLIENT, "pulsar-client-4.2.4.lock")


def kafka_topics(
    spark: SparkSession, client: Mapping[str, str], topics: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """What a Kafka cluster says of topics, by name.

    Either partitions, earliest and latest (offset by partition), config (None if it may not be
    seen) and operations (what this client may do there), or error (a kind) and message.
    """
    need_kafka(spark)
    found: dict[str, dict[str, Any]] = json.loads(
        _kafka(spark).topics(json.dumps(dict(client)), java_list(spark, topics))
    )
    return found


def kafka_create_lasting(spark: SparkSession, client: Mapping[str, str], topic: str) -> bool:
    """Make a topic of one partition that keeps all, unless it is there; whether it was made."""
    need_kafka(spark)
    return bool(_kafka(spark).createLasting(json.dumps(dict(client)), topic))


def kafka_topic_ids(
    spark: SparkSession, client: Mapping[str, str], topic: str, *, is_pattern: bool
) -> dict[str, Any]:
    """The ids of topics (a name, several with commas, or a pattern) and of their cluster.

    Either cluster (or null) and topics, id by name, or error (a kind) and message.
    """
    need_kafka(spark)
    found: dict[str, Any] = json.loads(
        _kafka(spark).topicIds(json.dumps(dict(client)), topic, is_pattern)
    )
    return found


def guard_topics(
    spark: SparkSession,
    *,
    spark_folder: str,
    file: str,
    sources: Mapping[str, Mapping[str, Any]],
    known: Mapping[str, Any],
) -> None:
    """Let each batch of a Spark folder fail if a topic of these Kafka sources has another id.

    `known` is what stands in the run's topics.json, at `file`; it gets topics that a pattern finds
    later. The guard goes with the fence of the folder.
    """
    _kafka(spark).guardTopics(
        spark._jsparkSession, spark_folder, file, json.dumps(sources), json.dumps(known)
    )


def kafka_open_transactions(
    spark: SparkSession, client: Mapping[str, str], job: str
) -> list[dict[str, Any]]:
    """Transactions of a job's sinks that are open: transactional_id, state, since_ms, topics."""
    need_kafka(spark)
    found: list[dict[str, Any]] = json.loads(
        _kafka(spark).openTransactions(json.dumps(dict(client)), job)
    )
    return found


def pulsar_topics(
    spark: SparkSession, access: Mapping[str, str], topics: Sequence[str]
) -> dict[str, dict[str, Any]]:
    """What a Pulsar service says of topics, by name: partitions (0 if a topic has none), or error
    (a kind) and message.

    `access` is the service's `url` with the options of its PulsarAccess. No topic is created.
    """
    need_pulsar(spark)
    api = kernel_api(spark, "PulsarApi")
    found: dict[str, dict[str, Any]] = json.loads(
        api.topics(json.dumps(dict(access)), java_list(spark, topics))
    )
    return found


def _kafka(spark: SparkSession) -> Any:
    return kernel_api(spark, "KafkaApi")
