"""Owns the process that reads what an engine committed, and says how long each order took.

python -m bench.latency_read SERVERS JOB RATE SECONDS WARM_UP:SECONDS...
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from bench.latency_orders import OUTPUTS, PARTITIONS, Stretch, output_of
from bench.latency_tally import Tally

_FIRST_ROW_SECONDS = 180.0
_NEXT_ROW_SECONDS = 45.0
_LINGER_SECONDS = 2.0
"""So long it goes on after the last order: one that comes twice comes then."""


def read(
    servers: str, job: str, rate: int, seconds: int, stretches: list[Stretch]
) -> dict[str, Any]:
    """Read until all orders are there, or none comes any more."""
    consumer = Consumer(
        {"bootstrap.servers": servers, "group.id": "reader", "enable.auto.commit": False,
         "isolation.level": "read_committed", "fetch.wait.max.ms": 10, "log_level": 0}
    )  # fmt: skip
    consumer.assign([TopicPartition(t, p, 0) for t in OUTPUTS[job] for p in range(PARTITIONS)])
    tally = Tally(rate * seconds, lambda number: output_of(job, number))
    until = time.monotonic() + _FIRST_ROW_SECONDS
    while time.monotonic() < until:
        was_complete = tally.complete
        messages = consumer.consume(1000, timeout=0.01)
        seen = time.time_ns() // 1000
        for message in messages:
            if message.error():
                raise SystemExit(f"the reader failed: {message.error()}")
            row = json.loads(message.value())
            tally.see(row["invoiceId"], message.topic(), (seen - row["createdAt"]) / 1000)
        if tally.complete and not was_complete:
            until = time.monotonic() + _LINGER_SECONDS
        elif messages and not tally.complete:
            until = time.monotonic() + _NEXT_ROW_SECONDS
    consumer.close()
    spreads = [tally.spread(*stretch.orders(rate)) for stretch in stretches]
    return {
        "verdict": asdict(tally.verdict()),
        "spreads": [asdict(spread) if spread else None for spread in spreads],
    }


if __name__ == "__main__":
    a = sys.argv[1:]
    parts = [Stretch(*map(int, text.split(":"))) for text in a[4:]]
    print("RESULT " + json.dumps(read(a[0], a[1], int(a[2]), int(a[3]), parts)), flush=True)
