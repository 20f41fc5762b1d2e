"""Owns `make bench-home`: what a batch costs with its home on a disk and in an S3 bucket.

The bucket is one of moto's server on loopback, which answers in milliseconds and counts requests.
A job with one lookup, one sink and two partitions runs twice in each place, with few and with many
batches; the difference is what the further batches cost, without the start. Seconds are of this
machine and of that server; requests are the same on any S3.
"""

from __future__ import annotations

import argparse
import os
import re
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path

import headgate as hg
from bench.data import Segment, Sizes, order_lines, user_line
from bench.tws import ORDER, USER
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from headgate.runtime.run import run
from headgate.runtime.session import get_session
from tests.homes.s3 import KEYS, S3Server

_USERS, _ROWS = 2_000, 100
_PARTS = (
    ("offsets", re.compile(r"/spark/offsets")),
    ("commits", re.compile(r"/spark/commits")),
    ("state", re.compile(r"/spark/state")),
    ("journal", re.compile(r"/journal")),
    ("record", re.compile(r"/checkpoints")),
    ("lease and fence", re.compile(r"job\.json")),
    ("operations", re.compile(r"/operations")),
)


def main() -> int:
    """Run in both places, print seconds and requests of a batch."""
    parser = argparse.ArgumentParser(prog="bench.home", description=__doc__.splitlines()[0])
    parser.add_argument("--few", type=int, default=20)
    parser.add_argument("--many", type=int, default=60)
    options = parser.parse_args()
    os.environ.update(KEYS)
    with tempfile.TemporaryDirectory(prefix="headgate-home-", ignore_cleanup_errors=True) as at:
        folder = Path(at)
        server = S3Server(folder)
        try:
            bucket = server.bucket("headgate-bench")
            get_session(master="local[2]", conf={"spark.local.dir": str(folder / "local")})
            _users(folder)
            disk = _seconds(folder, "disk", str(folder / "home"), options.many)
            counts = {}
            for batches in (options.few, options.many):
                mark = server.log.stat().st_size
                url = server.url(bucket, f"home-{batches}")
                bucket_seconds = _seconds(folder, f"s3-{batches}", url, batches)
                counts[batches] = _requests(server.log.read_bytes()[mark:].decode())
        finally:
            server.stop()
    more = options.many - options.few
    print(f"seconds a batch (median): disk {disk:.3f}, s3 {bucket_seconds:.3f}")
    print("requests a batch:")
    cost = {key: (counts[options.many][key] - counts[options.few][key]) / more
            for key in sorted({*counts[options.many], *counts[options.few]})}  # fmt: skip
    for (part, kind), number in cost.items():
        if round(number, 1):
            print(f"  {part:16} {kind:7} {number:6.1f}")
    total: Counter[str] = Counter()
    for (_, kind), number in cost.items():
        total[kind] += number  # type: ignore[assignment]
    print("  all              " + ", ".join(f"{k} {n:.1f}" for k, n in sorted(total.items())))
    return 0


def _requests(log: str) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for kind, path in S3Server.parse(log):
        part = next((name for name, sign in _PARTS if sign.search(path)), "other")
        found[part, kind] += 1
    return found


def _seconds(folder: Path, name: str, home: str, batches: int) -> float:
    orders = batches * _ROWS
    sizes = Sizes(orders=orders, users=_USERS, items=100)
    _write(folder / name, list(order_lines(sizes, Segment("orders", 0, 0, orders, 0, 0))))
    outcome = run(_job(folder, name), home=home, bounded=True)
    if outcome.error is not None:
        raise outcome.error
    current = Home(home).job("bench").current()
    assert current is not None
    records = current.checkpoints()
    read = sum(record.rows.get("orders", {}).get("records_out", 0) for record in records)
    assert read == orders, f"{read} of {orders} orders were read"
    took = [record.duration_ms or 0 for record in records[len(records) // 3 :]]
    return statistics.median(took) / 1000


def _job(folder: Path, name: str) -> hg.JobDef:
    @hg.job("bench", checkpoints=hg.Checkpoints(every="10 milliseconds"))
    def job(job: hg.Job) -> None:
        topic = hg.topic(f"log:{folder / name}", schema=ORDER, max_records=str(_ROWS))
        orders = job.source("orders", topic)
        users = job.table("users", hg.topic(f"log:{folder / 'users'}", schema=USER), key="id")
        orders.lookup("by_user", users, on="userId", into="user", missing="null").sink(
            "enriched", hg.topic(f"log:{folder}/{name}-out")
        )

    return job


def _users(folder: Path) -> None:
    _write(folder / "users", [user_line(number) for number in range(_USERS)])


def _write(at: Path, lines: list[str]) -> None:
    topic = TopicFiles(at)
    topic.create(2)
    for partition in range(2):
        topic.append([Record(line) for line in lines[partition::2]], partition)


if __name__ == "__main__":
    sys.exit(main())
