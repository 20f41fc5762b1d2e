"""Owns `make bench-kafka`: the store job Kafka to Kafka, exactly once against at least once.

python -m bench.kafka --orders 2000000 --rounds 2
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from bench.data import Segment, Sizes, item_line, order_lines, user_line
from headgate.brokers import KafkaBroker

INPUTS = ("orders", "users", "items")
OUTPUTS = ("enriched", "missing_users", "missing_items")
DELIVERIES = ("at_least_once", "exactly_once")
_PARTITIONS = 2
_QUIET = {"log_level": 0}


def main() -> int:
    """Fill the topics, run both deliveries in turn, then measure the latency."""
    parser = argparse.ArgumentParser(prog="bench.kafka", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--orders", type=int, default=2_000_000)
    parser.add_argument("--users", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--rate", type=int, default=1000, help="orders a second, for the latency")
    parser.add_argument("--seconds", type=int, default=60, help="how long the latency is measured")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-kafka-"))
    try:
        with KafkaBroker(folder / "kafka") as broker:
            bench = Bench(broker.servers, folder)
            sizes = Sizes(orders=options.orders, users=options.users, items=10_000)
            bench.fill("in-", sizes)
            bench.throughput(options.orders, options.rounds)
            bench.fill("live-", Sizes(orders=0, users=options.users, items=10_000))
            bench.latency(options.users, options.rate, options.seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


class Bench:
    """A broker with topics of the store, and the processes that are measured."""

    def __init__(self, servers: str, folder: Path) -> None:
        self._servers = servers
        self._folder = folder
        self._admin = AdminClient({"bootstrap.servers": servers, **_QUIET})

    def fill(self, prefix: str, sizes: Sizes) -> None:
        """Make and fill the topics that are read."""
        self._create(prefix, INPUTS)
        began = time.monotonic()
        self._send(f"{prefix}users", ((str(n), user_line(n)) for n in range(sizes.users)))
        self._send(f"{prefix}items", ((str(n), item_line(n)) for n in range(sizes.items)))
        whole = Segment("orders", 0, 0, sizes.orders, 0, 0)
        self._send(f"{prefix}orders", ((None, line) for line in order_lines(sizes, whole)))
        _say(f"{sizes.users:,} users, {sizes.items:,} items and {sizes.orders:,} orders produced "
             f"in {time.monotonic() - began:.0f} s")  # fmt: skip

    def throughput(self, orders: int, rounds: int) -> None:
        """Each delivery in turn, so that both see the same machine."""
        rates: dict[str, list[float]] = {delivery: [] for delivery in DELIVERIES}
        for number in range(rounds):
            for delivery in DELIVERIES if number % 2 == 0 else reversed(DELIVERIES):
                out = f"{delivery[:2]}{number}-"
                self._create(out, OUTPUTS)
                process = self._job("in-", out, delivery, "5 seconds", "bounded")
                measured = _result(process)
                rates[delivery].append(measured["rows"] / measured["seconds"])
                written = sum(measured["totals"][name] for name in OUTPUTS)
                assert written == orders, f"{written} of {orders} orders came out"
                _say(f"{delivery}: {measured['rows']:,} orders in, {measured['out']:,} rows out in "
                     f"{measured['seconds']:.1f} s, {measured['batches']} batches: "
                     f"{measured['rows'] / measured['seconds']:,.0f}/s in, "
                     f"{measured['out'] / measured['seconds']:,.0f}/s out")  # fmt: skip
        means = {delivery: statistics.mean(found) for delivery, found in rates.items()}
        ratio = means["exactly_once"] / means["at_least_once"]
        _say(f"exactly_once {means['exactly_once']:,.0f}/s, at_least_once "
             f"{means['at_least_once']:,.0f}/s: ratio {ratio:.2f}")  # fmt: skip

    def latency(self, users: int, rate: int, seconds: int) -> None:
        """From produce to a read_committed reader, at a steady rate and short batches."""
        self._create("live-out-", OUTPUTS)
        process = self._job("live-", "live-out-", "exactly_once", "200 milliseconds", "running")
        stop = threading.Event()
        feeder = threading.Thread(target=self._feed, args=(users, rate, stop), daemon=True)
        feeder.start()
        found = self._listen(warm_up=20, seconds=seconds)
        stop.set()
        feeder.join()
        process.terminate()
        _result(process)
        found.sort()
        p50, p99 = found[len(found) // 2], found[len(found) * 99 // 100]
        _say(f"latency at {rate:,} orders/s, batches every 200 ms, exactly once, {len(found):,} "
             f"orders: p50 {p50:.0f} ms, p99 {p99:.0f} ms, slowest {found[-1]:.0f} ms")  # fmt: skip

    def _feed(self, users: int, rate: int, stop: threading.Event) -> None:
        producer = self._producer(linger=1)
        began, sent = time.time(), 0
        while not stop.is_set():
            due = int((time.time() - began) * rate)
            for number in range(sent, due):
                user, item = number * 7919 % users, number * 31 % 10_000
                now = int(time.time() * 1000)
                producer.produce(
                    "live-orders",
                    f'{{"invoiceId":{number},"lineItemId":{number},"userId":{user},'
                    f'"itemId":{item},"itemName":"x","price":1.5,"createdAt":{now},"paidAt":1}}',
                )
            sent = max(sent, due)
            producer.poll(0)
            time.sleep(0.005)
        producer.flush(30)

    def _listen(self, *, warm_up: float, seconds: float) -> list[float]:
        """Milliseconds from an order's creation to the moment it is read."""
        consumer = Consumer(
            {"bootstrap.servers": self._servers, "group.id": "bench", "enable.auto.commit": False,
             "isolation.level": "read_committed", "fetch.wait.max.ms": 10, **_QUIET}
        )  # fmt: skip
        consumer.assign([TopicPartition("live-out-enriched", p, 0) for p in range(_PARTITIONS)])
        first: float | None = None
        found: list[float] = []
        until = time.time() + 180
        while first is None or time.time() < first + warm_up + seconds:
            assert first is not None or time.time() < until, "no row came"
            for message in consumer.consume(1000, timeout=0.01):
                at = time.time()
                first = first or at
                if at > first + warm_up:
                    found.append(at * 1000 - json.loads(message.value())["createdAt"])
        consumer.close()
        return found

    def _create(self, prefix: str, names: tuple[str, ...]) -> None:
        topics = [NewTopic(prefix + name, _PARTITIONS, 1) for name in names]
        for made in self._admin.create_topics(topics).values():
            made.result(30)

    def _producer(self, *, linger: int) -> Producer:
        return Producer(
            {"bootstrap.servers": self._servers, "linger.ms": linger,
             "queue.buffering.max.messages": 500_000, **_QUIET}
        )  # fmt: skip

    def _send(self, topic: str, records: Iterator[tuple[str | None, str]]) -> None:
        producer = self._producer(linger=20)
        for number, (key, value) in enumerate(records):
            while True:
                try:
                    # orders have no key: in turn, so that the partitions are of one size
                    where = {} if key else {"partition": number // 1000 % _PARTITIONS}
                    producer.produce(topic, value, key, **where)
                    break
                except BufferError:
                    producer.poll(0.1)
            if number % 1000 == 0:
                producer.poll(0)
        assert producer.flush(120) == 0

    def _job(self, prefix: str, out: str, delivery: str, every: str, how: str) -> Any:
        with open(self._folder / f"{out}stderr.log", "w") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "bench.kafka_job", self._servers, prefix, out, delivery,
                 every, how, str(self._folder)],
                stdout=subprocess.PIPE, stderr=log, text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            )  # fmt: skip


def _result(process: Any) -> dict[str, Any]:
    said, _ = process.communicate(timeout=900)
    lines = [line for line in said.splitlines() if line.startswith("RESULT ")]
    if not lines:
        raise SystemExit(f"the job ended with exit code {process.returncode} and no result")
    measured: dict[str, Any] = json.loads(lines[-1].removeprefix("RESULT "))
    return measured


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
