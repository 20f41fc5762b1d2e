"""The store job, killed with -9 at random moments, writes what a truth without Spark says."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.home.layout import Home
from headgate.runtime.restore_services import reach
from headgate.snapshots.snapshot import find_snapshot
from headgate.snapshots.spark_log import pending_batch
from headgate.state import StateReader
from tests.reliability.processes import Driver
from tests.reliability.store_data import Producer
from tests.reliability.store_truth import expected, written
from tests.reliability.topics import Topics

STORE = Path(__file__).parents[2] / "examples" / "store" / "store.py"
ORDERS = 60_000
KILLS = 3
POINTS = ["before_sink", "mid_sink", "after_sink", "before_commit", "after_commit"]


def swapped(folder: Path) -> Path:
    """The store job with its two lookups the other way round."""
    text = STORE.read_text()
    text = text.replace("with_user = orders.lookup(", "with_user = with_item.lookup(")
    text = text.replace("with_item = with_user.lookup(", "with_item = orders.lookup(")
    lines = text.splitlines()
    first = next(i for i, line in enumerate(lines) if "with_user = " in line)
    second = next(i for i, line in enumerate(lines) if "with_item = " in line)
    lines[first], lines[second] = lines[second], lines[first]
    text = "\n".join(lines).replace("enriched = with_item.select(", "enriched = with_user.select(")
    path = folder / "swapped.py"
    path.write_text(text + "\n")
    return path


def finish(app: Path, data: Path | Topics, home: Path) -> None:
    driver = Driver(app, data, home, "--bounded")
    assert driver.wait(240) == 0, driver.text()[-3000:]


def assert_truth(spark: SparkSession, data: Path | Topics, home: Path | str, orders: int) -> None:
    truth = expected(home, data)
    got = written(data)
    for output, rows in truth.rows.items():
        assert got[output] == rows, f"{output}: {sum(got[output].values())} rows"
    assert sum(sum(rows.values()) for rows in got.values()) == orders
    assert truth.rows["missing_users"] and truth.rows["missing_items"] and truth.rows["malformed"]
    current = Home(str(home)).job("store").current()
    assert current is not None
    newest = find_snapshot(Home(str(home)), "latest", "store")
    reach(spark, newest)
    reader = StateReader(spark, newest)
    for table in ("users", "items"):
        state = reader.view(f"{table}_lookup").all()
        kept = {r["key"]["id"]: {k: v for k, v in r["row"].items() if v is not None} for r in state}
        assert kept == truth.tables[table]
    record = current.latest_checkpoint()
    assert record is not None
    for table in ("users", "items"):
        assert record.state[f"{table}_lookup"]["rows"] == len(truth.tables[table])
    counted = {
        (step, metric): count
        for step, metrics in record.totals.items()
        for metric, count in metrics.items()
        if count and not metric.startswith("state_")
    }
    assert counted == +truth.counts, "every step's counters"


def checkpoints(home: Path | str, job: str = "store") -> int:
    """How many checkpoints the job has made, without those that a fork began with."""
    there = not isinstance(home, Path) or home.exists()
    runs = Home(str(home)).job(job).runs() if there else []
    return sum(len(r.checkpoint_ids()) - (r.read().parent is not None) for r in runs)


def work_a_while(
    driver: Driver, home: Path | str, more: int, seconds: float, job: str = "store"
) -> bool:
    """Let a driver make some checkpoints and go on a little; False if it refused to start."""
    before, until = checkpoints(home, job), time.monotonic() + 180
    while checkpoints(home, job) < before + more:
        if driver.process.poll() is not None:
            assert driver.process.returncode == 5, driver.text()[-3000:]
            return False
        assert time.monotonic() < until, driver.text()[-3000:]
        time.sleep(0.1)
    time.sleep(seconds)
    return True


@pytest.mark.long
def test_rows_and_state_are_exact_after_kills_at_random_moments(
    spark: SparkSession, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    moments = random.Random(seed)
    data, home = tmp_path / "data", tmp_path / "home"
    producer = Producer(data, orders=ORDERS, chunks=20, seed=2, taken=lambda: checkpoints(home))
    producer.start()
    for _ in range(KILLS):
        driver = Driver(STORE, data, home)
        assert work_a_while(driver, home, 1, moments.uniform(0, 4))
        driver.kill()
    # a graceful stop finishes its batch: nothing is pending after it
    driver = Driver(STORE, data, home)
    assert work_a_while(driver, home, 1, 0)
    driver.process.terminate()
    assert driver.wait(120) == 0, driver.text()[-3000:]
    current = Home(str(home)).job("store").current()
    assert current is not None and pending_batch(current) is None
    producer.finish()
    finish(STORE, data, home)
    batches = expected(home, data).batches
    print(f"{KILLS} kills, seed {seed}, {batches} batches")
    assert batches >= 5
    assert_truth(spark, data, home, ORDERS)


@pytest.mark.slow
def test_rows_are_exact_after_a_halt_at_each_point_of_the_commit(
    spark: SparkSession, tmp_path: Path
) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    producer = Producer(data, orders=6_000, chunks=len(POINTS), seed=3)
    for batch, point in enumerate(POINTS):
        producer.chunk()
        # ends the batch that the one before left, if it did, then dies in its own
        driver = Driver(STORE, data, home, "--bounded", env={"HEADGATE_HALT": f"{point}:{batch}"})
        assert driver.wait(120) == 1, driver.text()[-3000:]
    finish(STORE, data, home)
    print(f"{len(POINTS)} halts: {', '.join(POINTS)}")
    assert expected(home, data).batches == len(POINTS)
    assert_truth(spark, data, home, 6_000)


@pytest.mark.long
def test_state_is_found_by_name_when_the_lookups_are_swapped(
    spark: SparkSession, tmp_path: Path
) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    other = swapped(tmp_path)
    producer = Producer(data, orders=ORDERS, chunks=20, seed=4, taken=lambda: checkpoints(home))
    producer.start()
    refused = 0
    for before, app in ((STORE, STORE), (STORE, other), (other, STORE)):
        driver = Driver(app, data, home)
        if not work_a_while(driver, home, 1, 2):
            # the batch that the killed driver left is out: its own version ends it first
            refused += 1
            finish(before, data, home)
            driver = Driver(app, data, home)
            work_a_while(driver, home, 0, 8)
        driver.kill()
    producer.finish()
    last = Driver(STORE, data, home, "--bounded")
    assert last.wait(240) == 0, last.text()[-3000:]
    assert len(Home(str(home)).job("store").runs()) == 3, "each swap makes a new run"
    print(f"3 kills, 2 swaps, {refused} refused first")
    assert_truth(spark, data, home, ORDERS)


# In part: brokers/test_sinks.py, where the batch died in the same process.
@pytest.mark.long
def test_a_changed_graph_is_refused_while_a_batch_is_out_but_not_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    Producer(data, orders=5_000, chunks=2, seed=7).write_all()
    halted = Driver(STORE, data, home, "--bounded", env={"HEADGATE_HALT": "after_sink:0"})
    assert halted.wait(120) == 1, halted.text()[-3000:]
    other = swapped(tmp_path)
    refused = Driver(other, data, home, "--bounded")
    assert refused.wait(120) == 5, refused.text()[-3000:]
    assert "batch 0 of run r1 is out" in refused.text()
    finish(STORE, data, home)
    finish(other, data, home)
    assert_truth(spark, data, home, 5_000)
