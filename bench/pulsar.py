"""Owns `make bench-pulsar`: messages/s of the source against a plain pulsar-client consumer.

python -m bench.pulsar --messages 1000000 --rounds 3
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pulsar
from pyspark.sql import SparkSession

from headgate.brokers import PulsarBroker
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.names import PulsarTopicName
from headgate.connectors.pulsar.source import PulsarSource
from headgate.runtime.session import get_session
from tests.pulsar.client import Pulsar

SCHEMA = "id BIGINT, user BIGINT, price DOUBLE, note STRING"
_BATCH = 200_000


def main() -> int:
    """Fill one topic of each size, then let the two read in turn."""
    parser = argparse.ArgumentParser(
        prog="bench.pulsar", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-pulsar-"))
    try:
        with PulsarBroker(folder / "pulsar") as broker:
            topics = {n: _fill(broker.servers, n, options.messages) for n in (1, 4)}
            spark = get_session(master="local[2]")
            rates: dict[int, float] = {}
            for partitions, topic in topics.items():
                rates[partitions] = _compare(
                    spark, broker.servers, topic, partitions, options.messages, options.rounds
                )
            spark.stop()
        _say(f"the source with 4 partitions against 1: {rates[4] / rates[1]:.2f}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _compare(
    spark: SparkSession, url: str, topic: str, partitions: int, messages: int, rounds: int
) -> float:
    """Both in turn, so that they see the same machine; the source's rate."""
    found: dict[str, list[float]] = {"source": [], "consumer": []}
    _source(spark, url, topic, messages)  # the JVM warms up
    for _ in range(rounds):
        found["consumer"].append(_consumer(url, topic, messages))
        found["source"].append(_source(spark, url, topic, messages))
        _say(f"{partitions} partitions: consumer {found['consumer'][-1]:,.0f}/s, "
             f"source {found['source'][-1]:,.0f}/s")  # fmt: skip
    means = {name: statistics.mean(rates) for name, rates in found.items()}
    _say(f"{partitions} partitions, {messages:,} messages, {rounds} rounds: consumer "
         f"{means['consumer']:,.0f}/s, source {means['source']:,.0f}/s: ratio "
         f"{means['source'] / means['consumer']:.2f}")  # fmt: skip
    return means["source"]


def _fill(url: str, partitions: int, messages: int) -> str:
    client = Pulsar(url)
    topic = f"bench-{partitions}"
    client.create(topic, partitions)
    began = time.monotonic()
    producers = [
        client.client.create_producer(
            name, batching_enabled=True, batching_max_messages=500, block_if_queue_full=True,
            batching_max_publish_delay_ms=20, max_pending_messages=50_000,
        )
        for name in client.partitions(topic)
    ]  # fmt: skip
    failed: list[Any] = []

    def sent(result: Any, _: Any) -> None:
        if result != pulsar.Result.Ok:
            failed.append(result)

    note = "n" * 120
    for number in range(messages):
        row = {"id": number, "user": number * 7919 % 200_000, "price": number / 8, "note": note}
        producer = producers[number // 500 % partitions]
        producer.send_async(json.dumps(row).encode(), sent, partition_key=str(number))
    for producer in producers:
        producer.flush()
    assert not failed, failed[:3]
    client.close()
    _say(f"{messages:,} messages in {partitions} partitions produced in "
         f"{time.monotonic() - began:.0f} s")  # fmt: skip
    return topic


def _consumer(url: str, topic: str, messages: int) -> float:
    """A process of its own that receives every message and takes the same fields."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_consume, (url, topic, messages))


def _consume(url: str, topic: str, messages: int) -> float:
    client = PulsarAccess(url).connect()
    consumer = client.subscribe(
        str(PulsarTopicName.parse(topic)), f"plain-{os.getpid()}-{time.time_ns()}",
        receiver_queue_size=10_000, initial_position=pulsar.InitialPosition.Earliest,
    )  # fmt: skip
    taken: list[Any] = []
    began = time.monotonic()
    for _ in range(messages):
        message = consumer.receive()
        id = message.message_id()
        taken.append((
            message.data(), message.partition_key(), message.publish_timestamp(),
            id.partition(), id.ledger_id(), id.entry_id(), id.batch_index(),
        ))  # fmt: skip
        if len(taken) == 10_000:
            taken.clear()
    rate = messages / (time.monotonic() - began)
    consumer.unsubscribe()
    client.close()
    return rate


def _source(spark: SparkSession, url: str, topic: str, messages: int) -> float:
    """The job's own source, its rows thrown away; without the first batch, in which it starts."""
    folder = tempfile.mkdtemp(prefix="headgate-bench-pulsar-")
    source = PulsarSource(url, topic, SCHEMA, options={"max_records": str(_BATCH)})
    query = (
        source.records(spark, table=False)
        .writeStream.format("noop")
        .option("checkpointLocation", folder)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches = [json.loads(progress.json) for progress in query.recentProgress]
    shutil.rmtree(folder)
    rows = [batch["numInputRows"] for batch in batches]
    assert sum(rows) == messages, f"{sum(rows)} of {messages} messages were read"
    counted = [b for b in batches[1:] if b["numInputRows"]]
    seconds = sum(batch["durationMs"]["triggerExecution"] for batch in counted) / 1000
    return float(sum(batch["numInputRows"] for batch in counted) / seconds)


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
