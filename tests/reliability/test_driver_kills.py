"""The store job, killed with -9 at random moments, writes what a truth without Spark says."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate.snapshots.home import Home
from headgate.state import read_state
from tests.reliability.processes import Driver
from tests.reliability.store_data import Producer
from tests.reliability.store_truth import expected, written

STORE = Path(__file__).parents[2] / "examples" / "store" / "store.py"
ORDERS = 200_000


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


def finish(app: Path, data: Path, home: Path) -> None:
    driver = Driver(app, data, home, "--bounded")
    assert driver.wait(240) == 0, driver.text()[-3000:]


def assert_truth(spark: SparkSession, data: Path, home: Path, orders: int) -> None:
    truth = expected(home, data)
    got = written(data)
    for output, rows in truth.rows.items():
        assert got[output] == rows, f"{output}: {sum(got[output].values())} rows"
    assert sum(sum(rows.values()) for rows in got.values()) == orders
    assert truth.rows["missing_users"] and truth.rows["missing_items"] and truth.rows["malformed"]
    current = Home(str(home)).job("store").current()
    assert current is not None
    for table in ("users", "items"):
        state = read_state(spark, current.spark, f"{table}_lookup", ("id",)).all()
        kept = {r["key"]["id"]: {k: v for k, v in r["row"].items() if v is not None} for r in state}
        assert kept == truth.tables[table]
    record = current.latest_checkpoint()
    assert record is not None
    assert record.state["users_lookup"]["rows"] == len(truth.tables["users"])


@pytest.mark.slow
def test_rows_and_state_are_exact_without_any_kill(spark: SparkSession, tmp_path: Path) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    producer = Producer(data, orders=ORDERS, chunks=20, pause=1.0, seed=1)
    driver = Driver(STORE, data, home)
    producer.run()
    time.sleep(1)
    driver.process.terminate()
    assert driver.wait(120) == 0, driver.text()[-3000:]
    finish(STORE, data, home)
    assert_truth(spark, data, home, ORDERS)
    assert expected(home, data).batches > 3


@pytest.mark.slow
def test_rows_and_state_are_exact_after_kills_at_random_moments(
    spark: SparkSession, tmp_path: Path
) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    moments = random.Random(seed)
    data, home = tmp_path / "data", tmp_path / "home"
    producer = Producer(data, orders=ORDERS, chunks=30, pause=1.0, seed=2)
    producer.start()
    for _ in range(3):
        driver = Driver(STORE, data, home)
        time.sleep(moments.uniform(9, 20))
        driver.kill()
    producer.join()
    finish(STORE, data, home)
    print(f"3 kills, seed {seed}, {expected(home, data).batches} batches")
    assert_truth(spark, data, home, ORDERS)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["before_sink", "mid_sink", "after_sink"])
def test_rows_are_exact_after_a_halt_at_each_point_of_the_commit(
    spark: SparkSession, tmp_path: Path, point: str
) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    Producer(data, orders=20_000, chunks=1, pause=0, seed=3).run()
    driver = Driver(STORE, data, home, "--bounded", env={"HEADGATE_HALT": f"{point}:0"})
    assert driver.wait(120) == 1, driver.text()[-3000:]
    finish(STORE, data, home)
    assert_truth(spark, data, home, 20_000)


@pytest.mark.slow
def test_state_is_found_by_name_when_the_lookups_are_swapped(
    spark: SparkSession, tmp_path: Path
) -> None:
    data, home = tmp_path / "data", tmp_path / "home"
    other = swapped(tmp_path)
    producer = Producer(data, orders=ORDERS, chunks=24, pause=1.0, seed=4)
    producer.start()
    refused = 0
    for number, app in enumerate((STORE, other, STORE)):
        driver = Driver(app, data, home)
        time.sleep(14)
        if driver.process.poll() == 5:
            # the batch that the killed driver left is out: its own version ends it first
            refused += 1
            finish(STORE if number % 2 else other, data, home)
            driver = Driver(app, data, home)
            time.sleep(10)
        driver.kill()
    producer.join()
    last = Driver(STORE, data, home, "--bounded")
    assert last.wait(240) == 0, last.text()[-3000:]
    assert len(Home(str(home)).job("store").runs()) >= 3, "each swap makes a new run"
    print(f"3 kills, 2 swaps, {refused} refused first")
    assert_truth(spark, data, home, ORDERS)
