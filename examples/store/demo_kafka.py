"""`make demo-kafka`: the store from Kafka to Kafka, killed in the middle, every order counted."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from generate import Round, Settings, Store
from show import (
    INPUTS,
    OUTPUTS,
    account,
    app,
    headgate,
    local_broker,
    refuse_if_ended,
    say,
    start,
    wait_for_checkpoints,
)

from headgate.brokers import KafkaBroker
from headgate.connectors.log.files import Record

_QUIET = {"log_level": 0}


def main() -> int:
    """Broker, topics, producer, job, kill, job again; exit code 1 if an order is lost or twice."""
    options = _options()
    with local_broker(KafkaBroker, options.dir) as servers:
        return _play(servers, options.dir / "home", options)


def _play(servers: str, home: Path, options: argparse.Namespace) -> int:
    topics = {name: f"kafka://{servers}/{name}" for name in (*INPUTS, *OUTPUTS)}
    for name, address in topics.items():
        compact = ["--compact"] if name in ("users", "items") else []
        if headgate("topic", "create", address, "--partitions", "2", *compact):
            return 1
    store = Store(Settings(users=options.users, items=options.items, orders=options.orders))
    reading = threading.Event()  # the job has begun: what comes now comes while it runs
    feeder = threading.Thread(target=_feed, args=(servers, store, reading), daemon=True)
    say(f"a producer sends {options.orders:,} orders while the job runs")
    feeder.start()

    sets = [word for name, address in topics.items() for word in ("--set", f"{name}={address}")]
    command = ["run", app(), "--home", str(home), *sets]
    job = start(*command)
    wait_for_checkpoints(job, home, 1)
    reading.set()
    wait_for_checkpoints(job, home, 2)
    say(f"kill -9 of the job's process {job.pid}, in the middle of its work")
    job.kill()
    job.wait()

    job = start(*command)
    feeder.join()
    say("all orders are produced; waiting until a read_committed reader has seen them")
    seen = _count(servers, job, store.produced.orders)
    say("stopping the job between two batches")
    job.send_signal(signal.SIGTERM)
    code = job.wait()
    code = code or headgate("show", "store", "--steps", "--home", str(home))
    if code != 0:
        return code
    return account(store.produced.orders, seen, when_right="every order is there once")


def _feed(servers: str, store: Store, reading: threading.Event) -> None:
    producer = Producer({"bootstrap.servers": servers, "partitioner": "murmur2_random",
                         "enable.idempotence": True, **_QUIET})  # fmt: skip
    for number, made in enumerate(store.play()):
        for topic, records in _parts(made):
            for record in records:
                producer.produce(topic, record.value, record.key)
                producer.poll(0)
        producer.flush()
        reading.wait()
        time.sleep(2 if number else 0)  # so that the job sees the day pass


def _parts(made: Round) -> list[tuple[str, list[Record]]]:
    return [("users", made.users), ("items", made.items), ("orders", made.orders)]


def _count(servers: str, job: subprocess.Popen[bytes], orders: int) -> dict[str, int]:
    """Read the outputs as a careful consumer does, until nothing has come for a while."""
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "demo",
                         "enable.auto.commit": False, "isolation.level": "read_committed",
                         **_QUIET})  # fmt: skip
    consumer.assign([TopicPartition(topic, p, 0) for topic in OUTPUTS for p in (0, 1)])
    seen: Counter[str] = Counter()
    quiet_since = time.monotonic()
    while seen.total() < orders or time.monotonic() < quiet_since + 8:
        refuse_if_ended(job)
        for message in consumer.consume(10_000, timeout=0.5):
            seen[str(message.topic())] += 1
            quiet_since = time.monotonic()
        if time.monotonic() > quiet_since + 120:
            break  # they do not come any more: the sum tells
    consumer.close()
    return {name: seen[name] for name in OUTPUTS}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dir", type=Path, default=Path("build/demo-kafka"), help="where to work")
    parser.add_argument("--users", type=int, default=5_000)
    parser.add_argument("--items", type=int, default=500)
    parser.add_argument("--orders", type=int, default=100_000)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
