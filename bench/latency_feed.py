"""Owns the process that feeds: orders at a constant rate, each with its number and send time.

python -m bench.latency_feed SERVERS JOB RATE SECONDS BEGIN
"""

from __future__ import annotations

import json
import sys
import time

from confluent_kafka import Producer

from bench.latency_orders import order_line, users_of

_NAP_SECONDS = 0.005


def feed(servers: str, job: str, rate: int, seconds: int, begin: float) -> dict[str, float]:
    """Send rate * seconds orders from `begin` on; how many, and how late the latest one was."""
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 1, "queue.buffering.max.messages": 500_000,
         "log_level": 0}
    )  # fmt: skip
    users, total = users_of(job, rate), rate * seconds
    sent, latest = 0, 0.0
    while sent < total:
        now = time.time()
        due = min(total, int((now - begin) * rate))
        if due > sent:
            latest = max(latest, now - (begin + sent / rate))
        for number in range(sent, due):
            producer.produce("orders", order_line(number, users, time.time_ns() // 1000))
        sent = max(sent, due)
        producer.poll(0)
        time.sleep(_NAP_SECONDS)
    left = producer.flush(60)
    if left:
        raise SystemExit(f"the broker did not take {left} of {total} orders")
    return {"sent": sent, "latest_ms": latest * 1000}


if __name__ == "__main__":
    a = sys.argv[1:]
    print("RESULT " + json.dumps(feed(a[0], a[1], int(a[2]), int(a[3]), float(a[4]))), flush=True)
