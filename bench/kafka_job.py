"""Owns the process that is measured by bench.kafka: the store job between Kafka topics.

python -m bench.kafka_job SERVERS PREFIX OUT DELIVERY EVERY bounded|running FOLDER
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import headgate as hg
from bench.tws import ITEM, ORDER, USER
from headgate.home.layout import Home
from headgate.runtime.session import get_session

_CONF = {"spark.driver.memory": "4g"}
JOB = "bench_kafka"


def store(servers: str, prefix: str, out: str, delivery: str, every: str) -> hg.JobDef:
    """The online store from topics `prefix`... to topics `out`...; all are on one broker."""

    @hg.job(JOB, checkpoints=hg.Checkpoints(every=every))
    def job(job: hg.Job) -> None:
        def read(name: str, schema: str, **options: str) -> hg.Topic:
            return hg.topic(f"kafka://{servers}/{prefix}{name}", schema=schema, **options)

        def write(name: str, key: str | None = None) -> hg.Topic:
            return hg.topic(f"kafka://{servers}/{out}{name}", key=key, delivery=delivery)

        orders = job.source("orders", read("orders", ORDER, max_records="250000"))
        users = job.table("users", read("users", USER), key="id")
        items = job.table("items", read("items", ITEM), key="id")
        with_user = orders.lookup("users_lookup", users, on="userId", into="user", missing="side")
        with_item = with_user.lookup("items_lookup", items, on="itemId", into="item",
                                     missing="side")  # fmt: skip
        enriched = with_item.select(
            "invoiceId", "lineItemId", "user", "item", "createdAt", "paidAt"
        )
        enriched.sink("enriched", write("enriched", "invoiceId"))
        with_user.missing.sink("missing_users", write("missing_users"))
        with_item.missing.sink("missing_items", write("missing_items"))

    return job


def _main(servers: str, prefix: str, out: str, delivery: str, every: str, how: str,
          folder: Path) -> None:  # fmt: skip
    job = store(servers, prefix, out, delivery, every)
    spark = get_session(master="local[2]", conf={**_CONF, "spark.local.dir": str(folder / "local")})
    home = str(folder / f"home-{out}")
    if how == "bounded":
        from headgate.runtime.run import run

        outcome = run(job, home=home, bounded=True, spark=spark)
        if outcome.error is not None:
            raise outcome.error
    else:
        handle = hg.start(job, spark=spark, home=home)
        ended = threading.Event()
        signal.signal(signal.SIGTERM, lambda *_: ended.set())
        ended.wait()
        handle.stop(savepoint=False)
    print("RESULT " + json.dumps(_figures(home)), flush=True)
    spark.stop()


def _figures(home: str) -> dict[str, Any]:
    current = Home(home).job(JOB).current()
    assert current is not None
    records = list(current.checkpoints())
    # tables are in state with the first batch, which also pays for the JVM's warming up
    timed = records[1:] or records
    rows = sum(r.rows.get("orders", {}).get("records_out", 0) for r in timed)
    seconds = sum((r.duration_ms or 0) / 1000 for r in timed)
    out = sum(
        r.rows.get(name, {}).get("records_out", 0)
        for r in timed
        for name in ("enriched", "missing_users", "missing_items")
    )
    totals = {step: counts.get("records_out", 0) for step, counts in records[-1].totals.items()}
    return {
        "rows": rows, "out": out, "seconds": seconds, "batches": len(timed), "totals": totals
    }  # fmt: skip


if __name__ == "__main__":
    a = sys.argv[1:]
    _main(a[0], a[1], a[2], a[3], a[4], a[5], Path(a[6]))
