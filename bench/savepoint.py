"""Owns `make bench-savepoint`: how long a savepoint of a running job with a million keys takes.

python -m bench.savepoint --keys 1000000
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import headgate as hg
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from headgate.runtime.session import get_session
from headgate.snapshots.savepoints import SavepointRecord, create_savepoint


def main() -> int:
    """Load the keys, take savepoints while the job runs, and print times and bytes."""
    parser = argparse.ArgumentParser(
        prog="bench.savepoint", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--savepoints", type=int, default=10)
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="headgate-bench-"))
    try:
        _run(folder, options.keys, options.savepoints)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return 0


def _run(folder: Path, keys: int, count: int) -> None:
    users = TopicFiles(folder / "users")
    users.create(2)
    TopicFiles(folder / "orders").create(2)
    users.append(Record(json.dumps(_user(key, 0)), str(key)) for key in range(0, keys * 7, 7))

    @hg.job("bench", checkpoints=hg.Checkpoints(every="500 ms"))
    def job(job: hg.Job) -> None:
        orders = job.source("orders", hg.topic(f"log:{folder}/orders", schema="userId BIGINT"))
        table = hg.topic(f"log:{folder}/users", schema="id BIGINT, name STRING, email STRING")
        found = orders.lookup("users_lookup", job.table("users", table, key="id"), on="userId")
        found.sink("out", hg.topic(f"log:{folder}/out"))

    spark = get_session(master="local[2]")
    handle = hg.start(job, spark=spark, home=str(folder / "home"))
    home = Home(str(folder / "home")).job("bench")
    while not ((run := home.current()) and run.checkpoint_ids()):
        time.sleep(0.1)
    print(f"{keys:,} keys are in state; taking {count} savepoints while the job runs", flush=True)
    taken: list[tuple[float, SavepointRecord, int]] = []
    asked: list[float] = []
    for number in range(count):
        users.append([Record(json.dumps(_user(k, number + 1)), str(k)) for k in range(0, 7000, 7)])
        time.sleep(1)  # another checkpoint or two
        began = time.monotonic()
        record = create_savepoint(run, label=f"direct{number}")
        seconds = time.monotonic() - began
        taken.append((seconds, record, _new_bytes(Path(record.path))))
        began = time.monotonic()
        handle.savepoint(f"asked{number}")
        asked.append(time.monotonic() - began)
    handle.stop(savepoint=False)
    spark.stop()
    new = max(bytes for _, _, bytes in taken)
    times = [seconds * 1000 for seconds, _, _ in taken]
    last = taken[-1][1]
    print(f"savepoint: median {statistics.median(times):.0f} ms, slowest {max(times):.0f} ms")
    print(f"asked of the running job: median {statistics.median(asked) * 1000:.0f} ms")
    print(f"files {last.files}, {last.bytes / 1e6:.1f} MB, at most {new / 1e6:.3f} MB of it new")


def _user(key: int, version: int) -> dict[str, object]:
    return {"id": key, "name": f"name {key * 7919 % 99991} v{version}", "email": f"{key:x}@x.org"}


def _new_bytes(folder: Path) -> int:
    """Bytes of the files that are not links to other savepoints' or the run's."""
    files = [path.stat() for path in folder.rglob("*") if path.is_file()]
    return sum(file.st_size for file in files if file.st_nlink < 2)


if __name__ == "__main__":
    sys.exit(main())
