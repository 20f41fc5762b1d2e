"""Jobs whose own code fails, on real Spark: restarted by each strategy, and exact."""

from __future__ import annotations

import builtins
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.base.errors import ExitCode
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home, JobHome
from headgate.runtime.options import RunOutcome
from headgate.runtime.run import run
from headgate.runtime.status import job_status

pytestmark = pytest.mark.slow


class Flaky:
    """Numbers go from a topic to another through Python that raises at 5, so many times."""

    def __init__(self, folder: Path, spark: SparkSession) -> None:
        self.folder, self.spark = folder, spark
        self.numbers, self.sent = TopicFiles(folder / "numbers"), 0
        self.numbers.create(1)
        self.send(10)
        self.error, self.failures = "ConnectionError", 3

    def send(self, count: int) -> None:
        records = [Record(json.dumps({"n": n})) for n in range(self.sent, self.sent + count)]
        self.numbers.append(records)
        self.sent += count

    def job(self, restart: hg.Restart, **more: Any) -> hg.JobDef:
        counter, error, failures = self.folder / "failures", self.error, self.failures

        def reach(n):  # type: ignore[no-untyped-def]
            before = int(counter.read_text()) if counter.exists() else 0
            if n == 5 and before < failures:
                counter.write_text(str(before + 1))
                raise getattr(builtins, error)("no way there")
            return n

        def through(df: DataFrame) -> DataFrame:
            return df.withColumn("n", F.udf(reach, "bigint")("n"))

        @hg.job("flaky", restart=restart, checkpoints=hg.Checkpoints(every="100 ms", **more))
        def flaky(job: hg.Job) -> None:
            address = f"log:{self.numbers.path}"
            numbers = job.source("numbers", hg.topic(address, schema="n BIGINT"))
            out = hg.topic(f"log:{self.folder / 'out'}")
            numbers.transform("reach", through).sink("out", out)

        return flaky

    def run(self, restart: hg.Restart) -> RunOutcome:
        return run(self.job(restart), home=self.home, bounded=True, spark=self.spark)

    @property
    def home(self) -> str:
        return str(self.folder / "home")

    @property
    def in_home(self) -> JobHome:
        return Home(self.home).job("flaky")

    def events(self, kind: str | None = None) -> list[Any]:
        current = self.in_home.current()
        assert current is not None
        return [event for event in current.events() if kind in (None, event.kind)]

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events()]

    def rows(self) -> list[int]:
        topic = TopicFiles(self.folder / "out")
        return (
            sorted(json.loads(r.value or "")["n"] for r in topic.read()) if topic.exists() else []
        )

    def assert_exact(self) -> None:
        assert self.rows() == list(range(self.sent))
        last = self.in_home.current()
        assert last is not None
        record = last.latest_checkpoint()
        assert record is not None and record.totals["out"]["records_out"] == self.sent


@pytest.fixture
def flaky(tmp_path: Path, spark: SparkSession) -> Flaky:
    return Flaky(tmp_path, spark)


def eventually(condition: Callable[[], object], seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "not in time"
        time.sleep(0.02)


@pytest.mark.parametrize(
    ("restart", "delays"),
    [
        pytest.param(hg.fixed_delay(attempts=3, delay="200 ms"), [0.2, 0.2, 0.2], id="fixed_delay"),
        # what delays each strategy gives is in test_restarts.py
        pytest.param(
            hg.exponential_delay(initial="100 ms", maximum="300 ms", jitter=0),
            [0.1, 0.2, 0.3],
            id="exponential_delay",
            marks=pytest.mark.long,
        ),
        pytest.param(
            hg.failure_rate(failures=3, interval="1 hour", delay="200 ms"),
            [0.2, 0.2, 0.2],
            id="failure_rate",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_job_that_fails_three_times_goes_on_as_its_strategy_says(
    flaky: Flaky, restart: hg.Restart, delays: list[float]
) -> None:
    outcome = flaky.run(restart)
    assert (outcome.how, outcome.error) == ("finished", None)
    again = ["failed", "restarting", "restarted"]
    assert flaky.kinds() == ["started", *again, *again, *again, "finished"]
    told = flaky.events("restarting")
    assert [event.details["attempt"] for event in told] == [1, 2, 3]
    assert [event.details["delay_seconds"] for event in told] == delays
    assert {(e.details["strategy"], e.details["reason"]) for e in told} == {
        (restart.kind, "USER_CODE_IO")
    }
    for before, after in zip(told, flaky.events("restarted"), strict=True):
        assert (after.at - before.at).total_seconds() >= before.details["delay_seconds"]
    failure = flaky.events("failed")[0].details
    assert "ConnectionError: no way there" in failure["message"]
    assert (failure["batch"], failure["gives_up"]) == (0, None)
    assert failure["frames"][-1].startswith(f"{__file__}:")
    flaky.assert_exact()


def test_a_job_gives_up_when_its_attempts_are_used_and_the_next_start_goes_on(
    flaky: Flaky,
) -> None:
    outcome = flaky.run(hg.fixed_delay(attempts=2, delay="10 ms"))
    assert outcome.exit_code == ExitCode.FAILED
    assert "not started again, because fixed_delay allows 2 restarts" in str(outcome.error)
    assert flaky.kinds()[-3:] == ["restarting", "restarted", "failed"]
    assert flaky.rows() == []
    assert job_status(flaky.in_home).state == "FAILED"
    assert flaky.run(hg.no_restart()).error is None
    flaky.assert_exact()


def test_without_a_strategy_the_first_failure_is_the_last(flaky: Flaky) -> None:
    outcome = flaky.run(hg.no_restart())
    assert flaky.kinds() == ["started", "failed"]
    assert "not started again" not in str(outcome.error)


def test_an_error_of_the_code_is_tried_once_more_and_then_told(flaky: Flaky) -> None:
    flaky.error, flaky.failures = "ValueError", 99
    outcome = flaky.run(hg.exponential_delay(initial="10 ms", maximum="10 ms"))
    assert flaky.kinds() == ["started", "failed", "restarting", "restarted", "failed"]
    failure = flaky.events("failed")[1].details
    assert failure["reason"] == "USER_CODE"
    assert failure["gives_up"] == "it failed so twice on batch 0, and would again"
    sentence = str(outcome.error)
    assert "ValueError: no way there" in sentence and __file__ in sentence
    assert "because it failed so twice on batch 0, and would again: fix the code" in sentence


def test_a_job_that_waits_for_its_restart_can_be_seen_and_stopped(flaky: Flaky) -> None:
    flaky.failures = 99
    job = flaky.job(hg.fixed_delay(attempts=9, delay="1 hour"))
    handle = hg.start(job, spark=flaky.spark, home=flaky.home)
    eventually(lambda: flaky.in_home.current() and "restarting" in flaky.kinds())
    status = job_status(flaky.in_home)
    assert (status.state, status.restarts) == ("RESTARTING", 1)
    assert handle.stop() is None, "without a checkpoint there is no savepoint"
    assert flaky.kinds()[-1] == "stopped"
    assert job_status(flaky.in_home).state == "STOPPED"
    flaky.failures = 0
    assert flaky.run(hg.no_restart()).error is None
    flaky.assert_exact()
