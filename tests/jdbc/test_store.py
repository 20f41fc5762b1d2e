"""The store from Kafka into tables and a function, killed at each point of commits."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.jdbc.server import PASSWORD, USER, Postgres
from tests.lakes.tables import read, read_iceberg
from tests.reliability.processes import Driver
from tests.reliability.store_data import Producer
from tests.reliability.store_truth import expected
from tests.reliability.test_driver_kills import work_a_while
from tests.reliability.topics import INPUTS, OUTPUTS, KafkaTopics

ROOT = Path(__file__).parents[2]
JOB = Path(__file__).with_name("store_job.py")
POINTS = (
    "before_transaction", "in_transaction", "after_transaction", "before_sink", "mid_sink",
    "after_sink", "before_commit", "after_commit",
)  # fmt: skip
KILLS = 10


@pytest.fixture
def server() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()


def canonical(row: dict[str, Any], output: str) -> str:
    kept = {name: value for name, value in row.items() if value is not None}
    if "price" in kept:  # JSON of PostgreSQL has no 3.0
        kept["price"] = float(kept["price"])
    if output == "malformed":
        kept = {name: row[name] for name in ("partition", "offset", "value")}
    return json.dumps(kept, sort_keys=True)


def without_nulls(row: Any) -> Any:
    """As JSON has it."""
    if not isinstance(row, dict):
        return row
    return {name: without_nulls(value) for name, value in row.items() if value is not None}


@pytest.mark.long
def test_each_row_is_once_in_both_tables_and_in_what_a_function_writes(
    tmp_path: Path, kafka_servers: str, server: Postgres
) -> None:
    seed = random.SystemRandom().randrange(1 << 30)
    moments = random.Random(seed)
    topics, home, out = (
        KafkaTopics(kafka_servers, f"pg{seed}-"),
        tmp_path / "home",
        tmp_path / "out",
    )

    def driver(*flags: str, **env: str) -> Driver:
        sets = {"url": server.url, "user": USER, "password": "env:STORE_PASSWORD", "out": str(out)}
        words = [word for name, value in sets.items() for word in ("--set", f"{name}={value}")]
        return Driver(JOB, topics, home, *words, *flags, names=INPUTS,
                      env={"PYTHONPATH": str(ROOT), "STORE_PASSWORD": PASSWORD, **env})  # fmt: skip

    Path(f"{out}-iceberg").mkdir()
    chunks = len(POINTS) + KILLS + 8
    producer = Producer(topics, orders=2000 * chunks, chunks=chunks, seed=5)
    for batch, point in enumerate(POINTS):
        producer.chunk()
        # ends the batch that the one before left, if it did, then dies in its own
        halted = driver("--bounded", HEADGATE_HALT=f"{point}:{batch}")
        assert halted.wait(120) == 1, halted.text()[-3000:]
    producer.write_all()
    for _ in range(KILLS):
        killed = driver()
        assert work_a_while(killed, home, 1, moments.uniform(0, 1))
        killed.kill()
    finished = driver("--bounded")
    for _ in range(2):
        assert work_a_while(finished, home, 1, moments.uniform(0, 0.5))
        server.kill()
        time.sleep(moments.uniform(0, 2))
        server.start()
    assert finished.wait(240) == 0, finished.text()[-3000:]

    truth = expected(home, topics)
    print(
        f"{len(POINTS)} halts, {KILLS} kills, 2 of the database, {truth.batches} batches, {seed=}"
    )
    for output in OUTPUTS:
        found = Counter(canonical(row, output) for row in server.records(output))
        assert found == truth.rows[output], output
        assert truth.rows[output]
    files = [line for file in out.glob("*/part-*.json") for line in file.read_text().splitlines()]
    assert Counter(canonical(json.loads(line), "") for line in files) == truth.rows["enriched"]
    for in_lake in (read(f"{out}-lake"), read_iceberg(Path(f"{out}-iceberg"), "ice.enriched")):
        lake = [canonical(without_nulls(row), "") for row in in_lake]
        assert Counter(lake) == truth.rows["enriched"]
    assert sum(rows.total() for rows in truth.rows.values()) == 2000 * chunks
