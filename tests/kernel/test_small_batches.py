"""What is made once for many batches: generated code and plans; and that nobody can see it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.connectors.log import connector as log
from headgate.connectors.log.files import Record, TopicFiles
from headgate.testing import JobDriver

Make = Callable[..., JobDriver]
PLANS = "spark.headgate.plan.reuse"
USER = "id BIGINT, name STRING"
VISIT = "id BIGINT, page STRING, at TIMESTAMP"


@pytest.fixture(autouse=True)
def two_rows_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MAX_RECORDS", "2")


@pytest.fixture
def inside(spark: SparkSession) -> Any:
    """The kernel's package with what is kept."""
    return spark._jvm.org.apache.spark.sql.headgate.spark  # type: ignore[union-attr]


@pytest.fixture
def plans(spark: SparkSession) -> Iterator[Callable[[str], None]]:
    yield lambda how: spark.conf.set(PLANS, how)
    spark.conf.unset(PLANS)


def visits_of(job: hg.Job) -> hg.Stream:
    return job.source(
        "visits",
        hg.topic("log:visits", schema=VISIT),
        event_time=hg.event_time("at", out_of_orderness="1 minute"),
    )


def found(missing: Any) -> hg.JobDef:
    @hg.job("kept")
    def define(job: hg.Job) -> None:
        users = job.table("users", hg.topic("log:users", schema=USER), key="id")
        visits = visits_of(job)
        named = visits.where(F.col("id") >= 0).lookup(
            "by_user", users, on="id", into="user", missing=missing
        )
        named.select("id", F.upper("page").alias("page"), "user").sink("out", hg.topic("log:out"))
        named.missing.sink("rest", hg.topic("log:rest"))
        visits.where("id < 0").select("id").sink("negative", hg.topic("log:negative"))

    return define


def counted(window: hg.Window) -> hg.JobDef:
    @hg.job("kept")
    def define(job: hg.Job) -> None:
        visits = visits_of(job)
        visits.select("id", "page").sink("all", hg.topic("log:all"))
        counts = visits.key_by("page").window("counts", window, F.count("*").alias("n"))
        counts.sink("out", hg.topic("log:out"))
        if "rows" not in str(window):
            counts.late.sink("rest", hg.topic("log:rest"))

    return define


@dataclass
class Times:
    """How often a page has been seen."""

    page: str
    n: int


class Seen(hg.Process):
    """Counts the visits of a page."""

    n = hg.value_state(int)

    def on_visits(self, row: Row, ctx: hg.Context) -> hg.Out[Times]:
        n = (self.n.get() or 0) + 1
        self.n.set(n)
        yield Times(row.page, n)


@hg.job("kept")
def processed(job: hg.Job) -> None:
    visits = visits_of(job).key_by("page")
    job.process("seen", Seen(), visits=visits).sink("out", hg.topic("log:out"))


KINDS = {
    "lookup": found("side"),
    "waiting lookup": found(hg.Wait("1 hour")),
    "tumbling": counted(hg.tumbling("5 minutes")),
    "sliding": counted(hg.sliding("10 minutes", every="5 minutes")),
    "session": counted(hg.session("5 minutes")),
    "count": counted(hg.count_window(3)),
    "process": processed,
}


def visits(count: int) -> list[dict[str, Any]]:
    return [
        {"id": n % 7 - 2, "page": f"p{n % 3}", "at": f"2026-01-01T00:{n:02}:00Z"}
        for n in range(count)
    ]


def outcome(t: JobDriver) -> dict[str, list[str]]:
    t.send("visits", *visits(12))
    if "users" in t.built.graph.sources:
        t.send("users", {"id": 1, "name": "Ann"}, {"id": 2, "name": "Bob"})
    t.run(drain="users" not in t.built.graph.sources)
    sinks = [step.id for step in t.built.graph.steps if step.role == "sink"]
    return {sink: sorted(map(str, t.rows(sink))) for sink in sinks}


@pytest.mark.parametrize("kind", KINDS)
def test_a_kept_plan_is_the_one_that_would_be_made(
    job_driver: Make, inside: Any, plans: Callable[[str], None], kind: str
) -> None:
    plans("check")  # fails the batch whose kept plan is another one
    used = inside.KeptPlans.used()
    kept = outcome(job_driver(KINDS[kind]))
    assert inside.KeptPlans.used() >= used + 3
    plans("false")
    used = inside.KeptPlans.used()
    assert kept == outcome(job_driver(KINDS[kind]))
    assert inside.KeptPlans.used() == used
    assert any(kept.values())


def test_a_setting_for_plans_that_does_not_exist_is_refused(
    job_driver: Make, plans: Callable[[str], None]
) -> None:
    plans("often")
    t = job_driver(processed)
    t.send("visits", *visits(1))
    with pytest.raises(hg.HeadgateError, match="must be true, false or check, got 'often'"):
        t.run()


def test_code_is_generated_once_for_all_batches(job_driver: Make, inside: Any) -> None:
    def made(count: int) -> int:
        before = inside.IdleCode.made()
        job_driver(KINDS["lookup"]).send("visits", *visits(count)).run()
        return int(inside.IdleCode.made() - before)

    few = made(4)  # 2 batches
    assert 0 < made(24) <= 1.5 * few  # 12 batches; two tasks at a time, or one after the other


def test_a_watermark_inside_generated_code_is_that_of_its_batch(job_driver: Make) -> None:
    t = job_driver(KINDS["tumbling"])
    times = [
        "00:00",
        "01:00",
        "30:00",
        "31:00",
        "32:00",
        "33:00",
        "02:00",
        "34:00",
        "03:00",
        "35:00",
    ]
    rows = [{"id": n, "page": "p", "at": f"2026-01-01T00:{time}Z"} for n, time in enumerate(times)]
    t.send("visits", *rows).run()
    assert sorted(row["id"] for row in t.rows("rest")) == [6, 8]
    assert sorted(row["id"] for row in t.rows("all")) == list(range(10))


def test_table_rows_are_applied_by_position_however_many_they_are(job_driver: Make) -> None:
    t = job_driver(found("side"))
    versions = [{"id": n % 50, "name": f"v{n}"} for n in range(2500)]  # more than an array takes
    t.send("users", *versions).run()
    t.send("visits", *({"id": n, "page": "p"} for n in range(50))).run()
    assert {r["id"]: r["user"]["name"] for r in t.rows("out")} == {
        n: f"v{2450 + n}" for n in range(50)
    }


def test_a_changelog_on_a_local_disk_has_one_file_of_checksums(
    job_driver: Make, spark: SparkSession
) -> None:
    def written() -> tuple[int, int, int]:
        """How many changelogs, with Hadoop's checksums, and with Spark's."""
        t = job_driver(found("side"))
        t.send("users", {"id": 1, "name": "Ann"}, {"id": 3, "name": "Bob"}).run()
        logs = list(Path(t.home).rglob("*.changelog"))
        assert logs
        hadoops = sum((log.parent / f".{log.name}.crc").exists() for log in logs)
        return len(logs), hadoops, sum(Path(f"{log}.crc").exists() for log in logs)

    changelogs, hadoops, sparks = written()
    assert (hadoops, sparks) == (changelogs, 0)
    setting = "spark.sql.streaming.checkpoint.fileChecksum.enabled"
    spark.conf.set(setting, "true")  # a user's own choice stays
    try:
        changelogs, hadoops, sparks = written()
    finally:
        spark.conf.unset(setting)
    assert (hadoops, sparks) == (changelogs, changelogs)


def test_nobody_listens_to_tasks_for_pages_that_are_off(
    job_driver: Make, spark: SparkSession
) -> None:
    job_driver(processed).send("visits", *visits(2)).run()
    context: Any = spark.sparkContext._jsc.sc()
    listeners = [one.getClass().getSimpleName() for one in context.listenerBus().listeners()]
    assert listeners and not [name for name in listeners if name.endswith("AppStatusListener")]


def test_a_store_that_was_unloaded_between_batches_is_loaded_again(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Maintenance of Spark's drops a store that it cannot look after."""
    states: Any = spark._jvm.org.apache.spark.sql.execution.streaming.state  # type: ignore[union-attr]
    stores = getattr(getattr(states, "StateStore$"), "MODULE$")
    source = TopicFiles(tmp_path / "in")
    source.create(1)

    @hg.job("numbered", checkpoints=hg.Checkpoints(every="0 seconds"))
    def numbered(job: hg.Job) -> None:
        rows = job.source("rows", hg.topic(f"log:{tmp_path}/in", schema="id BIGINT"))
        rows.key_by("id").dedupe("once").sink("out", hg.topic(f"log:{tmp_path}/out"))

    def out() -> list[str]:
        topic = TopicFiles(tmp_path / "out")
        return [record.value or "" for record in topic.read()] if topic.exists() else []

    handle = hg.start(numbered, spark=spark, home=str(tmp_path / "home"))
    end = time.monotonic() + 60
    for number in range(5):
        source.append([Record(f'{{"id": {n}}}') for n in range(number + 1)], 0)
        while len(out()) < number + 1:
            assert time.monotonic() < end, "a batch did not come"
            time.sleep(0.02)
        if number % 2:
            stores.unloadAll()
    handle.stop()
    assert sorted(out()) == [f'{{"id":{n}}}' for n in range(5)]
