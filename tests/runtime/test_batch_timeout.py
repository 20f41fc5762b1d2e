"""Checkpoints(timeout=...): a batch that takes too long fails, and is tried again."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.connectors.log.files import Record, TopicFiles
from headgate.failures import Reason
from headgate.home.layout import Home
from headgate.runtime.run import run


@pytest.mark.slow
def test_a_batch_that_hangs_is_stopped_and_run_again(tmp_path: Path, spark: SparkSession) -> None:
    numbers, hung = TopicFiles(tmp_path / "numbers"), tmp_path / "hung"
    numbers.create(1)
    numbers.append([Record(json.dumps({"n": n})) for n in range(5)])

    def once(n):  # type: ignore[no-untyped-def]
        if not hung.exists():
            hung.write_text("")
            time.sleep(600)
        return n

    def slowly(df: DataFrame) -> DataFrame:
        return df.withColumn("n", F.udf(once, "bigint")("n"))

    @hg.job(
        "slow",
        checkpoints=hg.Checkpoints(every="100 ms", timeout="10 seconds"),
        restart=hg.fixed_delay(attempts=10, delay="100 ms"),
    )
    def slow(job: hg.Job) -> None:
        rows = job.source("numbers", hg.topic(f"log:{numbers.path}", schema="n BIGINT"))
        rows.transform("slowly", slowly).sink("out", hg.topic(f"log:{tmp_path / 'out'}"))

    outcome = run(slow, home=str(tmp_path / "home"), bounded=True, spark=spark)
    assert outcome.error is None
    found = sorted(json.loads(r.value or "")["n"] for r in TopicFiles(tmp_path / "out").read())
    assert found == list(range(5))
    current = Home(tmp_path / "home").job("slow").current()
    assert current is not None
    failed = [event.details for event in current.events() if event.kind == "failed"]
    # the first is the one that hung; on a busy machine a later one may take as long
    assert {details["reason"] for details in failed} == {Reason.BATCH_TIMEOUT.name}
    assert "longer than Checkpoints.timeout allows: it was stopped after" in failed[0]["message"]


def test_a_timeout_is_longer_than_nothing() -> None:
    with pytest.raises(hg.UsageError, match=r"timeout must be greater than zero, got '0 s'"):
        hg.Checkpoints(timeout="0 s")
    assert hg.Checkpoints().batch_limit is None
