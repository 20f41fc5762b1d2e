"""Owns running the same two lookups in Headgate, as a user would start them."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from pathlib import Path

from bench.data import TABLES, topic_records
from bench.process import progress_printer, run_measured
from bench.result import OUTPUTS, Result, result

NAME = "Headgate"
_EVERY = "5 seconds"
_CONF = {"spark.driver.memory": "4g"}


def run_headgate(data_dir: Path, out_dir: Path) -> Result:
    """Run the store job; its rows are in out_dir when it returns.

    >>> run_headgate(data, out).orders_per_second  # doctest: +SKIP
    150000.0
    """
    orders = topic_records(data_dir / "orders")
    shutil.rmtree(out_dir, ignore_errors=True)
    work = out_dir / "_headgate"
    work.mkdir(parents=True)
    ran = run_measured(
        [sys.executable, "-m", "bench.headgate_run", str(data_dir), str(out_dir), str(time.time())],
        log=work / "stderr.log",
        env={"PYTHONPATH": os.pathsep.join(sys.path)},
        on_line=progress_printer(NAME, orders),
    )
    found = next(line for line in reversed(ran.lines) if line.startswith("RESULT "))
    phases: dict[str, float] = json.loads(found.removeprefix("RESULT "))
    shutil.rmtree(work / "home", ignore_errors=True)
    return result(NAME, orders=orders, ran=ran, phases=phases)


# ------------------------------------------------------------- in the process that is measured


def _main(data_dir: Path, out_dir: Path, began: float) -> None:
    import headgate as hg
    from bench.tws import ITEM, ORDER, USER
    from headgate.home.layout import Home
    from headgate.runtime.session import get_session

    work = out_dir / "_headgate"
    waiting = work / "orders"
    for partition in sorted((data_dir / "orders").glob("partition-*")):
        (waiting / partition.name).mkdir(parents=True)
    shutil.copy(data_dir / "orders" / "topic.json", waiting)

    @hg.job("bench_store", checkpoints=hg.Checkpoints(every=_EVERY))
    def store(job: hg.Job) -> None:
        orders = job.source("orders", hg.topic(f"log:{waiting}", schema=ORDER))
        users = job.table("users", hg.topic(f"log:{data_dir}/users", schema=USER), key="id")
        items = job.table("items", hg.topic(f"log:{data_dir}/items", schema=ITEM), key="id")
        with_user = orders.lookup("users_lookup", users, on="userId", into="user", missing="side")
        with_item = with_user.lookup(
            "items_lookup", items, on="itemId", into="item", missing="side"
        )
        enriched = with_item.select(
            "invoiceId", "lineItemId", "user", "item", "createdAt", "paidAt"
        )
        enriched.sink("enriched", hg.topic(f"log:{out_dir}/enriched"))
        with_user.missing.sink("missing_users", hg.topic(f"log:{out_dir}/missing_users"))
        with_item.missing.sink("missing_items", hg.topic(f"log:{out_dir}/missing_items"))

    spark = get_session(master="local[2]", conf={**_CONF, "spark.local.dir": str(work / "local")})
    started = time.time()
    handle = hg.start(store, spark=spark, home=str(work / "home"))
    run = Home(str(work / "home")).job("bench_store")

    def records(step: str) -> int:
        current = run.current() if run.exists() else None
        record = current.latest_checkpoint() if current else None
        return record.totals.get(step, {}).get("records_out", 0) if record else 0

    def wait(step: str, count: int) -> None:
        seen = -1
        while records(step) < count:
            if not handle.running:
                handle.wait()
            now = records(step)
            if now != seen:
                print(f"PROGRESS {step} {now}", flush=True)
                seen = now
            time.sleep(0.05)

    for table in TABLES:
        wait(table, topic_records(data_dir / table))
    loaded = time.time()
    for file in sorted((data_dir / "orders").glob("partition-*/*.jsonl")):
        os.link(file, waiting / file.parent.name / file.name)
    wait("orders", topic_records(data_dir / "orders"))
    done = time.time()
    handle.stop()
    spark.stop()
    assert all((out_dir / name).exists() for name in OUTPUTS)
    phases = {"start": started - began, "tables": loaded - started, "orders": done - loaded}
    print("RESULT " + json.dumps(phases), flush=True)


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]), float(sys.argv[3]))
