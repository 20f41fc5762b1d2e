"""The Kafka sink: each record once, whatever crashes, on a real broker."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from headgate import jvm
from tests.class_archive import java_options
from tests.kernel.kafka_support import MARKERS, Job, Kafka

TASK_POINTS = [
    "before_transaction", "transaction_begun", "before_marker", "in_transaction",
    "after_transaction",
]  # fmt: skip
POINTS = [*TASK_POINTS, "before_sink", "after_sink"]


def _crash(job: Job, spec: str, point: str) -> None:
    jvm.arm_crash(job.spark, json.loads(spec)["run"], point)
    with pytest.raises(Exception, match=f'"code":"CRASH","point":"{point}"'):
        job.run(job.two(), spec)


def test_should_write_the_topics_of_a_task_in_one_transaction_with_its_marker(
    job: Job, kafka: Kafka
) -> None:
    a, b, markers = kafka.topic(), kafka.topic(), kafka.topic(cleanup_policy="compact")
    spec = job.spec(*[job.sink(t, marker_topic=markers) for t in (a, b)])
    job.run(job.two().coalesce(1), spec)
    assert kafka.ids(a) == [0, 2, 4, 6, 8]
    assert kafka.ids(b) == [1, 3, 5, 7, 9]
    ((key, marker),) = kafka.markers(job.name, markers).items()
    assert key == f"{job.name}/r1/0/0"
    assert {name: marker[name] for name in ("version", "batch", "rows")} == {
        "version": 1, "batch": 0, "rows": 10,
    }  # fmt: skip
    position = [str(marker["time"]), str(marker["watermark"]), *marker["offsets"]]
    digest = hashlib.sha256("\n".join(position).encode()).hexdigest()
    assert marker["fingerprint"] == digest[:16]
    # the broker's own record at the end of a transaction is one in each partition
    assert [kafka.end(t) for t in (a, b, markers)] == [5 + 1, 5 + 1, 1 + 1]


def test_should_leave_nothing_of_a_task_that_fails_in_its_transaction(
    job: Job, kafka: Kafka
) -> None:
    a, b = kafka.topic(), kafka.topic()
    spec = job.spec(a, b, run="r-nothing")
    jvm.arm_crash(job.spark, "r-nothing", "in_transaction")
    with pytest.raises(Exception, match='"code":"CRASH","point":"in_transaction"'):
        job.run(job.two().coalesce(1), spec)
    job.wait_until_nothing_is_open()
    for topic in (a, b):
        assert len(kafka.read(topic, "read_uncommitted")) == 5
        assert kafka.read(topic) == []
    assert kafka.markers(job.name) == {}
    assert job.committed(spec) == {a: None, b: None}


# The contract of sinks (brokers/test_sinks.py) tries all points: these are one that leaves a batch
# to be written, and one that leaves it written.
@pytest.mark.parametrize(
    "point",
    [
        pytest.param(
            point,
            marks=[] if point in ("in_transaction", "after_transaction") else pytest.mark.long,
        )
        for point in POINTS
    ],
)
def test_should_write_a_batch_once_when_it_is_replayed_after_a_crash(
    job: Job, kafka: Kafka, point: str
) -> None:
    a, b = kafka.topic(2), kafka.topic()
    spec = job.spec(a, b, run=f"r-{point}")
    _crash(job, spec, point)
    if point in ("after_transaction", "before_sink", "after_sink"):
        assert job.committed(spec) == {a: 0, b: 0}
    job.run(job.two(), spec)
    job.add(range(10, 14))
    job.run(job.two(), spec)
    assert kafka.ids(a) == [0, 2, 4, 6, 8, 10, 12]
    assert kafka.ids(b) == [1, 3, 5, 7, 9, 11, 13]
    assert job.committed(spec) == {a: 1, b: 1}


def test_should_make_no_transaction_for_a_task_without_rows(job: Job, kafka: Kafka) -> None:
    out = kafka.topic()
    frame = job.one(max_records=5)
    job.run(frame, job.spec(out))
    busy = job.tasks(range(10))
    assert busy < {0, 1, 2, 3}
    assert set(kafka.markers(job.name)) == {f"{job.name}/r1/0/{task}" for task in busy}
    assert kafka.ids(out) == list(range(10))


def test_should_go_on_with_its_producers_batch_by_batch(job: Job, kafka: Kafka) -> None:
    out = kafka.topic()
    job.add([10, 13, 16, 12])  # the third task has nothing for a while
    job.run(job.one(max_records=2), job.spec(out))
    assert kafka.ids(out) == [*range(11), 12, 13, 16]
    assert {m["batch"] for m in kafka.markers(job.name).values()} > {6}


def test_should_read_the_marker_again_after_a_batch_in_which_a_task_had_no_rows(
    job: Job, kafka: Kafka
) -> None:
    out = kafka.topic()
    [task] = job.tasks([0])
    query = job.start(job.one(), job.spec(out))
    try:
        query.processAllAvailable()
        job.add([1])  # not of that task
        query.processAllAvailable()
        # as if an attempt that we know nothing of had written batch 2
        _set_marker(kafka, job, task, 2)
        job.add([30, 31])
        query.processAllAvailable()
        assert kafka.ids(out) == sorted([*range(10), 1, 31])
        job.add([60])
        query.processAllAvailable()
    finally:
        query.stop()
    assert 60 in kafka.ids(out)


def _set_marker(kafka: Kafka, job: Job, task: int, batch: int) -> None:
    [partition] = {m.partition() for m in kafka.read(MARKERS) if m.key().startswith(job.key)}
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.servers,
            "group.id": f"headgate.{job.name}.r1.0.{task}",
        }
    )
    consumer.commit(offsets=[Place(MARKERS, partition, batch)], asynchronous=False)
    consumer.close()


def test_should_write_again_for_another_run(job: Job, kafka: Kafka) -> None:
    out = kafka.topic()
    for name in ("r1", "r2"):
        job.run(job.one(), job.spec(out, run=name))
    assert kafka.ids(out) == sorted([*range(10), *range(10)])
    assert job.committed(job.spec(out, run="r3")) == {out: None}


def test_should_know_by_the_marker_topic_what_is_out_when_group_offsets_have_expired(
    job: Job, kafka: Kafka
) -> None:
    a, b = kafka.topic(), kafka.topic()
    spec = job.spec(a, b, run="r-expired")
    _crash(job, spec, "after_sink")
    groups = [f"headgate.{job.name}.r-expired.0.{t}" for t in job.tasks(range(10))]
    for deleted in kafka.admin.delete_consumer_groups(groups).values():
        deleted.result(30)
    assert job.committed(spec) == {a: 0, b: 0}
    job.run(job.two(), spec)
    assert kafka.ids(a) + kafka.ids(b) == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]


def test_should_know_by_the_groups_what_is_out_when_the_marker_topic_was_emptied(
    job: Job, kafka: Kafka
) -> None:
    a, b = kafka.topic(), kafka.topic()
    spec = job.spec(a, b, run="r-emptied")
    _crash(job, spec, "after_sink")
    places = {(m.key(), m.partition()) for m in kafka.read(MARKERS) if m.key().startswith(job.key)}
    assert len({partition for _, partition in places}) == 1
    producer = Producer({"bootstrap.servers": kafka.servers})
    for key, partition in places:
        producer.produce(MARKERS, key=key, value=b'{"batch":-1}', partition=partition)
    producer.flush(30)
    assert job.committed(spec) == {a: 0, b: 0}
    job.run(job.two(), spec)
    assert kafka.ids(a) + kafka.ids(b) == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]


def test_should_keep_the_markers_of_groups_of_sinks_apart(job: Job, kafka: Kafka) -> None:
    a, b = kafka.topic(), kafka.topic()
    other = {"bootstrap.servers": kafka.servers, "compression.type": "zstd"}
    spec = job.spec(job.sink(a), job.sink(b, client=other), run="r-apart")
    _crash(job, spec, "after_transaction")
    job.run(job.two(), spec)
    assert kafka.ids(a) + kafka.ids(b) == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
    assert {key.split("/")[2] for key in kafka.markers(job.name)} == {"0", "1"}


def test_should_write_at_least_once_without_transactions(job: Job, kafka: Kafka) -> None:
    a, b = kafka.topic(), kafka.topic()
    sinks = [job.sink(t, delivery="at_least_once", marker_topic="none") for t in (a, b)]
    spec = job.spec(*sinks, run="r-least")
    _crash(job, spec, "after_sink")
    assert (kafka.end(a), kafka.end(b)) == (5, 5), "no record of a transaction"
    job.run(job.two(), spec)
    assert kafka.ids(a) == sorted([0, 2, 4, 6, 8] * 2), "a replay writes it again"
    assert job.committed(spec) == {a: None, b: None}
    assert "none" not in kafka.admin.list_topics(timeout=30).topics


def test_should_make_the_marker_topic_as_it_must_be(job: Job, kafka: Kafka) -> None:
    out, markers = kafka.topic(), f"markers-{job.name}"
    spec = job.spec(job.sink(out, marker_topic=markers))
    assert job.committed(spec) == {out: None}
    assert markers not in kafka.admin.list_topics(timeout=30).topics, "who asks makes nothing"
    job.run(job.one(), spec)
    found = jvm.kafka_topics(job.spark, job.client, [markers, out, "absent"])
    assert found[markers]["partitions"] == 4
    assert found[markers]["config"]["cleanup.policy"] == "compact"
    assert sum(found[markers]["latest"].values()) == 2 * len(job.tasks(range(10)))
    assert found[out]["earliest"] == {"0": 0}
    assert found[out]["config"]["cleanup.policy"] == "delete"
    assert found["absent"]["error"] == "TOPIC_MISSING"


def test_should_close_its_producers_when_the_query_has_ended(job: Job, kafka: Kafka) -> None:
    query = job.start(job.one(), job.spec(kafka.topic()))
    query.processAllAvailable()
    open_while_running = job.producer_threads()
    query.stop()
    assert len(open_while_running) == len(job.tasks(range(10)))
    until = time.monotonic() + 30
    while found := job.producer_threads():
        assert time.monotonic() < until, found
        time.sleep(0.02)


IN_ANOTHER_PROCESS = """
import json, sys
from pathlib import Path
from headgate import jvm
from headgate.runtime.session import get_session
from tests.kernel.kafka_support import Job, Kafka
with_ = json.loads(sys.argv[1])
spark = get_session(master=with_["master"], conf=with_["conf"])
jvm.need_kafka(spark)
job = Job(spark, Kafka(with_["servers"]), Path(with_["folder"]), name=with_["name"])
for point in with_["points"]:
    jvm.arm_crash(spark, "r1", point)
frame = job.two(max_records=5)
job.run(frame.coalesce(1) if with_["points"] else frame, job.spec(*with_["topics"]))
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
        "master": master, "conf": dict(conf or {}), "servers": job.kafka.servers,
        "folder": str(job.folder), "name": job.name, "points": list(points), "topics": topics,
    }  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-c", IN_ANOTHER_PROCESS, json.dumps(config)], env=environment,
        check=False, capture_output=True, timeout=400,
    )  # fmt: skip
    if not halt:
        assert ran.returncode == 0, ran.stderr.decode()[-3000:]
    return ran.returncode


def test_should_write_once_when_attempts_of_a_task_die_before_in_and_after_its_transaction(
    job: Job, kafka: Kafka
) -> None:
    a, b = kafka.topic(), kafka.topic()
    # all of them in one task, one attempt after the other: the last one finds the batch out
    _in_another_process(job, a, b, points=TASK_POINTS, master="local[2,6]")
    assert kafka.ids(a) + kafka.ids(b) == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
    assert {m["batch"] for m in kafka.markers(job.name).values()} == {1}


# a process takes long to start: all points are tried by attempts that fail, above, and
# reliability/test_kafka.py and nemesis/test_nemesis.py kill drivers
@pytest.mark.long
def test_should_survive_the_death_of_the_driver(job: Job, kafka: Kafka) -> None:
    a, b = kafka.topic(), kafka.topic()
    assert _in_another_process(job, a, b, halt="in_transaction:1") != 0
    job.run(job.two(max_records=5), job.spec(a, b))
    assert kafka.ids(a) + kafka.ids(b) == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
    assert jvm.kafka_open_transactions(job.spark, job.client, job.name) == []


@pytest.mark.long
def test_should_survive_the_death_of_an_executor(job: Job, kafka: Kafka) -> None:
    a, b = kafka.topic(), kafka.topic()
    _in_another_process(
        job, a, b, master="local-cluster[2,1,1024]",
        conf={"spark.executorEnv.HEADGATE_HALT": "in_transaction:1", "spark.executor.memory": "1g",
              "spark.executor.extraJavaOptions": java_options()},
    )  # fmt: skip
    assert kafka.ids(a) + kafka.ids(b) == [0, 2, 4, 6, 8, 1, 3, 5, 7, 9]
