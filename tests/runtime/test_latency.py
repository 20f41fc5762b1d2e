"""How long records take to the sinks: counted by the kernel, kept in records, shown."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from dataclasses import replace

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.cli.main import invoke
from headgate.home.latency import LatencyRecord, longest, quantile
from headgate.home.layout import Home
from headgate.home.model import CheckpointRecord
from headgate.home.points import total
from headgate.home.read.latency import sink_latencies
from headgate.home.read.over_time import read_series
from headgate.home.read.series import TimeRange
from headgate.testing import JobDriver

Make = Callable[..., JobDriver]
HOUR = 3_600_000


@hg.job("clicks")
def clicks(job: hg.Job) -> None:
    users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
    came = job.source("clicks", hg.topic("log:clicks", schema="n BIGINT, user BIGINT"))
    other = job.source("other", hg.topic("log:other", schema="n BIGINT"))
    found = came.lookup("who", users, on="user", take=["name"], missing="drop")
    found.sink("named", hg.topic("log:named"))
    came.select("n").union(other).sink("all", hg.topic("log:all"))


def test_a_bucket_is_an_eighth_as_wide_as_its_ages(spark: SparkSession) -> None:
    ages = spark.sparkContext._jvm.org.apache.spark.sql.headgate.counters.Ages  # type: ignore[union-attr]
    draw = random.Random(1)
    cases = [*range(70), *(int(2 ** draw.uniform(0, 50)) for _ in range(200))]
    before = {case: ages.bucket(case) for case in cases}
    for age, bucket in before.items():
        assert age <= longest(bucket) <= max(age * 9 / 8, age), (age, bucket)
        assert ages.bucket(longest(bucket)) == bucket
        assert ages.bucket(longest(bucket) + 1) == bucket + 1
    assert ages.bucket(-5) == 0


def test_quantiles_are_those_of_all_records() -> None:
    draw = random.Random(2)
    for _ in range(300):
        pairs = [(draw.randrange(100), draw.randrange(1, 9)) for _ in range(draw.randrange(1, 9))]
        every = sorted(ms for ms, count in pairs for _ in range(count))
        for share in (0.5, 0.99):
            # the first of which so many are not greater
            wanted = next(ms for n, ms in enumerate(every, 1) if n >= share * len(every))
            assert quantile(pairs, share) == wanted
    assert quantile([], 0.5) is None


def test_each_record_counts_once_and_is_as_old_as_it_is(
    job_driver: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    """The job's clock is an hour ahead, so that records are an hour old when they are read."""
    began = time.time()
    t = job_driver(clicks)
    t.send("users", {"id": 1, "name": "Ann"}).run()
    t.advance_processing_time("1 hour")
    t.send("clicks", *({"n": n, "user": n % 2} for n in range(7)), partition=0)
    t.send("clicks", *({"n": n, "user": n % 2} for n in range(4)), partition=1)
    t.crash(at="after_sink").restore().run()
    t.send("other", {"n": 9}).run()

    run = Home(t.home).job("clicks").current()
    assert run is not None
    records = run.checkpoint_log.last(10)
    counted: dict[str, int] = {}
    for record in records:
        assert record.latency is not None
        for source, ages in record.latency.ages.items():
            counted[source] = counted.get(source, 0) + sum(ages.values())
    assert counted == {"users": 1, "clicks": 11, "other": 1}

    assert invoke(["show", "clicks", "--home", t.home, "--json"]) == 0
    shown = {sink["sink"]: sink for sink in json.loads(capsys.readouterr().out)["latency"]}
    assert {name: sink["records"] for name, sink in shown.items()} == {"named": 11, "all": 12}
    most = (HOUR + (time.time() - began) * 1000) * 9 / 8
    for sink in shown.values():
        assert HOUR <= sink["p50_ms"] <= sink["p99_ms"] <= most
    assert invoke(["show", "clicks", "--home", t.home]) == 0
    said = capsys.readouterr().out
    assert "latency      named: 50 % within 1h" in said and "(11 records)" in said

    # the metrics over time have each batch once, too, over the crash and three starts
    series = read_series(Home(t.home).job("clicks"), TimeRange(), most=10_000)
    whole = total(series.points.values())
    assert (whole.records_in, whole.batches) == (13, len(records))
    assert {sink: sum(whole.histogram(sink).values()) for sink in shown} == {"named": 11, "all": 12}
    assert all(longest(bucket) >= HOUR for bucket in whole.histogram("all"))
    assert whole.marks == {"started": 4, "finished": 3, "failed": 1}
    assert whole.up_ms > 0 and not series.open


def test_records_keep_it_and_older_ones_have_none() -> None:
    record = CheckpointRecord(3, "r1", "COMPLETED", "periodic", None, None, 10)
    with_it = replace(record, latency=LatencyRecord(40, {"clicks": {3: 2, 30: 1}}))
    assert CheckpointRecord.from_json(json.loads(json.dumps(with_it.to_json()))) == with_it
    assert "latency" not in record.to_json()
    assert CheckpointRecord.from_json(record.to_json()).latency is None

    steps = [
        {"id": "users", "role": "table", "inputs": []},
        {"id": "clicks", "role": "source", "inputs": []},
        {"id": "who", "role": "step", "inputs": [{"step": "clicks"}, {"step": "users"}]},
        {"id": "named", "role": "sink", "inputs": [{"step": "who"}]},
    ]
    of_table = replace(with_it, latency=LatencyRecord(9, {"users": {0: 50}}))
    (found,) = sink_latencies(steps, [record, with_it, of_table])
    assert (found.sink, found.p50_ms, found.p99_ms, found.records) == ("named", 43, 99, 3)
