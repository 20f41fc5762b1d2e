"""The Pulsar sink: each row once, whatever crashes and in whatever order rows come."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate import jvm
from tests.class_archive import java_options
from tests.kernel.pulsar_support import Job
from tests.pulsar.client import Pulsar

TASK_POINTS = ["before_transaction", "in_transaction", "after_transaction"]
POINTS = [*TASK_POINTS, "before_sink", "after_sink"]
KEY = "k AS __hg_lead_key"


@pytest.fixture(scope="session")
def pulsar(pulsar_url: str) -> Pulsar:
    return Pulsar(pulsar_url)


@pytest.fixture
def job(spark: SparkSession, pulsar: Pulsar, tmp_path: Path) -> Job:
    """A job with ids 0 to 19 waiting in its source."""
    jvm.need_pulsar(spark)
    made = Job(spark, pulsar, tmp_path)
    made.add(range(20))
    return made


def _crash(job: Job, spec: str, point: str, topics: Sequence[str] = ()) -> None:
    jvm.arm_crash(job.spark, json.loads(spec)["run"], point)
    with pytest.raises(Exception, match=f'"code":"CRASH","point":"{point}"'):
        job.run(job.two() if len(topics) != 1 else job.one(KEY, "id"), spec)


def _reported(action: Callable[[], object]) -> dict[str, Any]:
    """What Python learns of the failure."""
    with pytest.raises(Exception) as caught:
        action()
    report = jvm.failure_report(caught.value)
    assert report.fields, str(caught.value)[:2000]
    return {"code": report.code, **report.fields}


@pytest.mark.parametrize("point", POINTS)
def test_should_write_a_batch_once_when_it_is_replayed_after_a_crash(
    job: Job, pulsar: Pulsar, point: str
) -> None:
    a, b = pulsar.topic(2), pulsar.topic()
    spec = job.spec(a, b, run=f"r-{point}")
    _crash(job, spec, point)
    if point in ("after_transaction", "before_sink", "after_sink"):
        assert job.committed(spec) == {a: 0, b: 0}
    job.run(job.two(), spec)
    job.add(range(20, 24))
    job.run(job.two(), spec)
    assert pulsar.ids(a) == list(range(0, 24, 2))
    assert pulsar.ids(b) == list(range(1, 24, 2))
    assert job.committed(spec) == {a: 1, b: 1}


def test_should_send_the_rows_of_a_task_in_the_order_of_their_contents(
    job: Job, pulsar: Pulsar
) -> None:
    plain, turned = pulsar.topic(), pulsar.topic()
    job.run(job.one(KEY, "id"), job.spec(plain))
    sink = job.sink(turned, "order_by", "key")
    frame = job.one("-id AS __hg_lead_order_by", KEY, "id")
    job.run(frame, job.spec(sink, run="r-turned"))
    for topic, backwards in ((plain, False), (turned, True)):
        ids: dict[str | None, list[int]] = {}
        for message in pulsar.read(topic):
            ids.setdefault(message.key, []).append(json.loads(message.value or "")["id"])
        assert len(ids) == 5
        assert all(found == sorted(found, reverse=backwards) for found in ids.values())


def test_should_write_again_for_another_run(job: Job, pulsar: Pulsar) -> None:
    out = pulsar.topic()
    for name in ("r1", "r2"):
        job.run(job.one(KEY, "id"), job.spec(out, run=name))
    assert pulsar.ids(out) == sorted([*range(20), *range(20)])
    assert job.committed(job.spec(out, run="r3")) == {out: None}


def test_should_go_on_with_its_producers_batch_by_batch_and_close_them_at_the_end(
    job: Job, pulsar: Pulsar
) -> None:
    out = pulsar.topic(2)
    query = job.start(job.one(KEY, "id", max_records=6), job.spec(out))
    query.processAllAvailable()
    kept = sorted(pulsar.publishers(out))
    assert set(kept) == {f"headgate.{job.name}.r1.{out}.{n}" for n in range(3)}
    job.add(range(20, 23))
    query.processAllAvailable()
    assert sorted(pulsar.publishers(out)) == kept
    query.stop()
    assert pulsar.ids(out) == list(range(23))
    until = time.monotonic() + 30
    while found := pulsar.publishers(out):
        assert time.monotonic() < until, found


def test_should_replay_a_batch_with_the_partitions_that_it_was_first_written_with(
    job: Job, pulsar: Pulsar
) -> None:
    out = pulsar.topic(2)
    spec = job.spec(out, run="r-grown")
    _crash(job, spec, "in_transaction", [out])
    pulsar.grow(out, 5)
    job.run(job.one(KEY, "id"), spec)
    assert pulsar.ids(out) == list(range(20))
    assert {m.partition for m in pulsar.read(out)} <= {0, 1}
    assert job.layouts(out, "r-grown") == [(0, 2), (1, 5)]
    job.add(range(20, 40))
    job.run(job.one(KEY, "id"), spec)
    assert pulsar.ids(out) == list(range(40))
    new = {m.key: m.partition for m in pulsar.read(out) if json.loads(m.value or "")["id"] >= 20}
    assert new == {str(n): ord(str(n)) % 5 for n in range(5)}


def test_should_put_keys_where_pulsars_own_router_puts_them(job: Job, pulsar: Pulsar) -> None:
    """At least once, the Java client's own router decides. (Python's client hashes otherwise.)"""
    ours, theirs = pulsar.topic(5), pulsar.topic(5)
    key = "concat(CASE id % 3 WHEN 0 THEN 'ключ' WHEN 1 THEN '𝄞' ELSE 'k' END, id)"
    frame = job.one(f"{key} AS __hg_lead_key", "id")
    job.run(frame, job.spec(ours, run="r-a"))
    least = job.sink(theirs, "key", delivery="at_least_once")
    job.run(frame, job.spec(least, run="r-b"))
    places = [{m.key: m.partition for m in pulsar.read(t)} for t in (ours, theirs)]
    assert places[0] == places[1] and len(places[0]) == 20


def test_should_spread_rows_without_a_key(job: Job, pulsar: Pulsar) -> None:
    out = pulsar.topic(3)
    spec = job.spec(job.sink(out, entry_rows=3), run="r-spread")
    jvm.arm_crash(job.spark, "r-spread", "in_transaction")
    with pytest.raises(Exception, match='"code":"CRASH"'):
        job.run(job.one(), spec)
    job.run(job.one(), spec)
    assert pulsar.ids(out) == list(range(20))
    assert {m.partition for m in pulsar.read(out)} == {0, 1, 2}


def test_should_write_a_topic_that_is_not_partitioned(job: Job, pulsar: Pulsar) -> None:
    out = pulsar.topic(0)
    spec = job.spec(out, run="r-plain")
    _crash(job, spec, "in_transaction", [out])
    job.run(job.one(KEY, "id"), spec)
    assert pulsar.ids(out) == list(range(20))
    assert job.layouts(out, "r-plain") == [(0, 0)]


def test_should_write_at_least_once_without_names_and_numbers(job: Job, pulsar: Pulsar) -> None:
    a, b = pulsar.topic(2, deduplication=False), pulsar.topic(deduplication=False)
    sinks = [job.sink(t, "key", delivery="at_least_once") for t in (a, b)]
    spec = job.spec(*sinks, run="r-least")
    _crash(job, spec, "after_sink")
    job.run(job.two(), spec)
    assert pulsar.ids(a) == sorted([*range(0, 20, 2)] * 2), "a replay writes it again"
    assert job.committed(spec) == {a: None, b: None}
    assert not any(m.producer.startswith("headgate") for m in pulsar.read(a))


def test_should_say_that_a_topic_does_not_drop_duplicates(job: Job, pulsar: Pulsar) -> None:
    out = pulsar.topic(deduplication=False)
    reported = _reported(lambda: job.run(job.one(KEY, "id"), job.spec(out)))
    assert reported["code"] == "DEDUPLICATION_OFF"
    assert (reported["topic"], reported["servers"]) == (out, pulsar.url)


def test_should_say_that_the_topic_is_missing_and_not_make_it(job: Job, pulsar: Pulsar) -> None:
    for number in range(2):
        reported = _reported(lambda: job.run(job.one(KEY, "id"), job.spec("nowhere")))
        assert (reported["code"], reported["topic"]) == ("TOPIC_MISSING", "nowhere"), number


def test_should_lose_nothing_when_the_topic_refuses_one_entry(job: Job, pulsar: Pulsar) -> None:
    out = pulsar.topic()
    pulsar.limit(out, 3000)
    job.add([100])
    # what cannot be compressed: 9,600 bytes in the middle of small rows
    text = (
        "IF(id = 9, aggregate(sequence(1, 150), '', (a, n) -> concat(a, sha2(string(n), 256))), '')"
    )
    frame = job.one(KEY, "id", f"{text} AS t").coalesce(1)
    spec = job.spec(job.sink(out, "key", entry_rows=1))
    assert _reported(lambda: job.run(frame, spec))["code"] == "RECORD_TOO_LARGE"
    before = pulsar.ids(out)
    assert 0 < len(before) < 20
    pulsar.limit(out, None)
    while True:  # the broker learns of it a little later
        try:
            job.run(frame, spec)
            break
        except Exception as error:
            if "RECORD_TOO_LARGE" not in str(error):
                raise
    assert pulsar.ids(out) == [*range(20), 100]


def test_should_say_that_a_record_is_too_large_before_it_sends_it(job: Job, pulsar: Pulsar) -> None:
    out = pulsar.topic()
    frame = job.one("repeat('x', 6000000) AS __hg_lead_value")
    reported = _reported(lambda: job.run(frame, job.spec(job.sink(out, "value"))))
    assert reported["code"] == "RECORD_TOO_LARGE"
    assert "6000000 bytes" in reported["text"]
    assert pulsar.read(out) == []


def test_should_write_key_value_properties_and_time(job: Job, pulsar: Pulsar) -> None:
    out = pulsar.topic()
    pairs = "map_entries(map('b', string(id), 'a', 'x', 'n', NULL))"
    frame = job.one(
        "CAST(concat('k', id) AS BINARY) AS __hg_lead_key",
        "IF(id = 2, NULL, concat('v', id)) AS __hg_lead_value",
        f"array_sort({pairs}) AS __hg_lead_properties",
        "timestamp_millis(1700000000000 + id) AS __hg_lead_event_time",
    )
    sink = job.sink(out, "key", "value", "properties", "event_time")
    job.run(frame, job.spec(sink))
    found = sorted(pulsar.read(out), key=lambda m: m.event_ms)
    assert [m.value for m in found] == [None if n == 2 else f"v{n}" for n in range(20)]
    assert [m.event_ms for m in found] == [1_700_000_000_000 + n for n in range(20)]
    assert [m.properties for m in found] == [(("a", "x"), ("b", str(n))) for n in range(20)]


def test_should_wait_for_a_producer_that_has_not_let_go_of_its_name(
    job: Job, pulsar: Pulsar
) -> None:
    out = pulsar.topic()
    names = [f"headgate.{job.name}.r1.{out}.{task}" for task in range(3)]
    others = [pulsar.client.create_producer(f"{out}-partition-0", name) for name in names]
    leaving = threading.Timer(2, lambda: [other.close() for other in others])
    leaving.start()
    job.run(job.one(KEY, "id"), job.spec(out))
    leaving.join()
    assert pulsar.ids(out) == list(range(20))


IN_ANOTHER_PROCESS = """
import json, sys
from pathlib import Path
from headgate import jvm
from headgate.runtime.session import get_session
from tests.kernel.pulsar_support import Job
from tests.pulsar.client import Pulsar
with_ = json.loads(sys.argv[1])
spark = get_session(master=with_["master"], conf=with_["conf"])
jvm.need_pulsar(spark)
job = Job(spark, Pulsar(with_["url"]), Path(with_["folder"]), name=with_["name"])
for point in with_["points"]:
    jvm.arm_crash(spark, "r1", point)
job.run(job.two(max_records=10), job.spec(*with_["topics"]))
"""


def _in_another_process(
    job: Job,
    *topics: str,
    points: Sequence[str] = (),
    halt: str = "",
    master: str = "local[2,4]",
    conf: Mapping[str, str] | None = None,
) -> int:
    root = Path(__file__).parents[2]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(root / "src"), str(root)]), "HEADGATE_HALT": halt
    }  # fmt: skip
    config = {
        "master": master, "conf": dict(conf or {}), "url": job.pulsar.url,
        "folder": str(job.folder), "name": job.name, "points": list(points), "topics": topics,
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, json.dumps(config)], env=environment,
        check=False, capture_output=True, timeout=400,
    )  # fmt: skip
    if not halt:
        assert ran.returncode == 0, ran.stderr.decode()[-3000:]
    return ran.returncode


def test_should_write_once_when_attempts_of_tasks_die_before_in_and_after_sending(
    job: Job, pulsar: Pulsar
) -> None:
    a, b = pulsar.topic(2), pulsar.topic()
    # with a sort that spills every three rows, as that of a large batch does
    spills = {"spark.shuffle.spill.numElementsForceSpillThreshold": "3"}
    _in_another_process(job, a, b, points=TASK_POINTS, conf=spills)
    assert pulsar.ids(a) + pulsar.ids(b) == [*range(0, 20, 2), *range(1, 20, 2)]


# a process takes long to start: the other points are tried by attempts that fail, above
@pytest.mark.long
def test_should_survive_the_death_of_the_driver(job: Job, pulsar: Pulsar) -> None:
    a, b = pulsar.topic(2), pulsar.topic()
    assert _in_another_process(job, a, b, halt="in_transaction:1") != 0
    job.run(job.two(max_records=10), job.spec(a, b))
    assert pulsar.ids(a) + pulsar.ids(b) == [*range(0, 20, 2), *range(1, 20, 2)]


@pytest.mark.long
def test_should_survive_the_death_of_an_executor(job: Job, pulsar: Pulsar) -> None:
    a, b = pulsar.topic(2), pulsar.topic()
    _in_another_process(
        job, a, b, master="local-cluster[2,1,1024]",
        conf={"spark.executorEnv.HEADGATE_HALT": "in_transaction:1", "spark.executor.memory": "1g",
              "spark.executor.extraJavaOptions": java_options()},
    )  # fmt: skip
    assert pulsar.ids(a) + pulsar.ids(b) == [*range(0, 20, 2), *range(1, 20, 2)]
