"""Owns `make soak`: the store job killed with -9 again and again, then compared with a truth.

python -m tests.reliability.soak --kills 50
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from pathlib import Path

from headgate.home.layout import Home
from headgate.runtime.session import get_session
from headgate.snapshots.savepoints import savepoints
from tests.reliability.processes import Driver
from tests.reliability.store_data import Producer
from tests.reliability.store_truth import expected
from tests.reliability.test_driver_kills import (
    STORE,
    assert_truth,
    checkpoints,
    finish,
    work_a_while,
)

_A_KILL = 4000  # orders, so that there is always something to read


def main() -> int:
    """Kill, restart, and compare; 0 if rows, state and counters are those of the truth."""
    parser = argparse.ArgumentParser(prog="soak", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options = parser.parse_args()
    pick = random.Random(options.seed)
    folder = Path(tempfile.mkdtemp(prefix="headgate-soak-"))
    data, home = folder / "data", folder / "home"
    orders = _A_KILL * options.kills
    producer = Producer(data, orders=orders, chunks=2 * options.kills, seed=options.seed,
                        taken=lambda: checkpoints(home))  # fmt: skip
    producer.start()
    began = time.monotonic()
    saved = 0
    for number in range(options.kills):
        driver = Driver(STORE, data, home)
        assert work_a_while(driver, home, 1, pick.uniform(0, 4)), driver.text()[-3000:]
        if number % 5 == 2:  # some die while a savepoint is made
            saved += _ask_for_savepoint(home)
            time.sleep(pick.uniform(0, 1))
        driver.kill()
        print(f"kill {number + 1} of {options.kills} after {checkpoints(home)} checkpoints, "
              f"{time.monotonic() - began:.0f} s", flush=True)  # fmt: skip
    producer.finish()
    finish(STORE, data, home)
    spark = get_session(parallelism=2)
    assert_truth(spark, data, home, orders)
    job = Home(str(home)).job("store")
    whole = [record.label for record in savepoints(job)]
    batches = expected(home, data).batches
    print(
        f"{options.kills} kills, {batches} batches, {orders:,} orders, {saved} savepoints asked "
        f"for and {len(whole)} made, seed {options.seed}: rows, state and counters are exact"
    )
    spark.stop()
    shutil.rmtree(folder)
    return 0


def _ask_for_savepoint(home: Path) -> int:
    from headgate.home.operations import Operations

    job = Home(str(home)).job("store")
    lease = job.read().lease
    if lease is None:
        return 0
    Operations(job).request("savepoint", {}, driver=lease.owner.token)
    return 1


if __name__ == "__main__":
    sys.exit(main())
