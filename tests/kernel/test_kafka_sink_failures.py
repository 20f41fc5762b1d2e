"""What stops a Kafka sink, how it is reported, and that the next start is exact."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import DataFrame, SparkSession

from headgate import jvm
from headgate.brokers import KafkaBroker
from tests.kernel.kafka_support import Job, Kafka

IMPATIENT = {
    "request.timeout.ms": "1500", "max.block.ms": "2000", "delivery.timeout.ms": "2500",
    "default.api.timeout.ms": "2000",
}  # fmt: skip


@pytest.fixture(scope="module")
def strict_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A broker that looks at permissions and ends transactions soon after their time."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
    }
    with KafkaBroker(tmp_path_factory.mktemp("strict"), settings=settings) as broker:
        yield broker


@pytest.fixture
def strict(strict_broker: KafkaBroker) -> Kafka:
    return Kafka(strict_broker.servers)


@pytest.fixture
def strict_job(spark: SparkSession, strict: Kafka, tmp_path: Path) -> Job:
    jvm.need_kafka(spark)
    made = Job(spark, strict, tmp_path)
    made.add(range(10))
    return made


def _reported(action: Callable[[], object]) -> dict[str, Any]:
    """What Python learns of the failure."""
    with pytest.raises(Exception) as caught:
        action()
    report = jvm.failure_report(caught.value)
    assert report.fields, str(caught.value)[:2000]
    return {"code": report.code, **report.fields}


def _failure(job: Job, spec: str, frame: DataFrame | None = None) -> dict[str, Any]:
    return _reported(lambda: job.run(frame or job.one(), spec))


def test_should_fail_when_another_has_fenced_its_producer_and_be_exact_after_that(
    job: Job, kafka: Kafka
) -> None:
    out = kafka.topic()
    query = job.start(job.one(), job.spec(out))
    query.processAllAvailable()
    [task] = job.tasks([0])
    other = kafka.producer(job.transactional_id(task))
    other.produce(out, value='{"id":-1}')
    other.flush(30)
    job.add(range(10, 20))
    reported = _reported(query.processAllAvailable)
    assert reported["code"] == "PRODUCER_FENCED"
    assert reported["servers"] == kafka.servers
    job.run(job.one(), job.spec(out))
    assert kafka.ids(out) == list(range(20))
    with pytest.raises(KafkaException, match="fenced"):
        other.commit_transaction(30)


def test_should_end_a_transaction_that_a_dead_driver_left_open(job: Job, kafka: Kafka) -> None:
    out = kafka.topic()
    dead = kafka.producer(job.transactional_id(9))
    for _ in range(3):
        dead.produce(out, value='{"id":-1}')
    dead.flush(30)
    other_job = kafka.producer(f"headgate.{job.name}x.0.9")
    other_job.produce(kafka.topic(), value="x")
    other_job.flush(30)
    [entry] = jvm.kafka_open_transactions(job.spark, job.client, job.name)
    assert entry.pop("since_ms") > 1_700_000_000_000
    assert entry == {
        "transactional_id": job.transactional_id(9), "state": "Ongoing", "topics": [out]
    }  # fmt: skip
    job.run(job.one(), job.spec(out))
    assert kafka.ids(out) == list(range(10)), "readers of committed records are not held up"
    assert jvm.kafka_open_transactions(job.spark, job.client, job.name) == []
    other_job.commit_transaction(30)


def test_should_see_what_is_out_although_a_dead_driver_left_a_transaction_open(
    job: Job, kafka: Kafka
) -> None:
    out, markers = kafka.topic(), kafka.topic(cleanup_policy="compact")
    spec = job.spec(job.sink(out, marker_topic=markers), run="r-dead")
    dead = kafka.producer(job.transactional_id(9))
    dead.produce(markers, key=f"{job.name}/r-dead/0/9", value='{"batch":7}')
    dead.flush(30)
    assert job.committed(spec) == {out: None}
    jvm.arm_crash(job.spark, "r-dead", "after_sink")
    with pytest.raises(Exception, match='"code":"CRASH"'):
        job.run(job.one(), spec)
    assert job.committed(spec) == {out: 0}


def test_should_start_no_task_without_the_lease(job: Job, kafka: Kafka) -> None:
    out = kafka.topic()
    spec = job.spec(out, run="r-lease")
    jvm.arm_crash(job.spark, "r-lease", "before_transaction")
    with pytest.raises(Exception, match='"code":"CRASH"'):
        job.run(job.one().coalesce(1), spec)
    folder, job_file = str(job.folder / "ck-r-lease"), job.folder / "job.json"
    job_file.write_text('{"lease": {"owner": {"host": "far", "pid": 77, "token": "theirs"}}}')
    jvm.fence(job.spark, spark_folder=folder, lock_file=None, job_file=str(job_file), token="mine")
    try:
        with pytest.raises(Exception, match='"code":"LEASE_LOST","text":"process 77 on far'):
            job.run(job.one().coalesce(1), spec)
    finally:
        jvm.unfence(job.spark, folder)
    assert kafka.read(out, "read_uncommitted") == []


def test_should_refuse_a_topic_that_is_not_there(job: Job, kafka: Kafka) -> None:
    out = kafka.topic()
    reported = _failure(job, job.spec(out, "absent"), job.two())
    assert (reported["code"], reported["topic"]) == ("TOPIC_MISSING", "absent")
    assert kafka.read(out) == []


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_should_tell_of_a_topic_that_was_deleted(job: Job, kafka: Kafka, delivery: str) -> None:
    out = kafka.topic()
    client = job.client | IMPATIENT
    query = job.start(job.one(), job.spec(job.sink(out, delivery=delivery, client=client)))
    query.processAllAvailable()
    kafka.admin.delete_topics([out])[out].result(30)
    job.add(range(10, 20))
    reported = _reported(query.processAllAvailable)
    assert reported["code"] == "TOPIC_MISSING"
    assert reported["topic"] == out


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
@pytest.mark.parametrize(
    ("length", "config"), [(2_000_000, {}), (5_000, {"max_message_bytes": "2000"})]
)
def test_should_tell_of_a_record_that_is_too_large(
    job: Job, kafka: Kafka, delivery: str, length: int, config: dict[str, str]
) -> None:
    out = kafka.topic(**config)
    frame = job.rows().selectExpr(
        "0 AS __hg_sink", f"struct(id, IF(id = 5, repeat('x', {length}), '') AS x) AS r0"
    )
    reported = _failure(job, job.spec(job.sink(out, delivery=delivery)), frame.coalesce(1))
    assert (reported["code"], reported["topic"]) == ("RECORD_TOO_LARGE", out)
    if delivery == "exactly_once":
        job.wait_until_nothing_is_open()
        assert kafka.read(out) == []


def test_should_tell_that_nobody_answers(job: Job) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        servers = f"127.0.0.1:{closed.getsockname()[1]}"
    client = {"bootstrap.servers": servers, **IMPATIENT}
    reported = _failure(job, job.spec(job.sink("t", client=client)))
    assert (reported["code"], reported["servers"]) == ("BROKER_UNREACHABLE", servers)
    found = jvm.kafka_topics(job.spark, client, ["t"])
    assert found["t"]["error"] == "BROKER_UNREACHABLE"
    reported = _failure(
        job, job.spec(job.sink("t", client={"bootstrap.servers": "no.such.host:1"}))
    )
    assert reported["code"] == "BROKER_UNREACHABLE"


def test_should_tell_of_properties_that_the_client_does_not_take(job: Job, kafka: Kafka) -> None:
    client = job.client | {"max.in.flight.requests.per.connection": "50"}
    reported = _failure(job, job.spec(job.sink(kafka.topic(), client=client)))
    assert reported["code"] == "KAFKA"
    assert "max.in.flight.requests.per.connection" in reported["text"]


def test_should_tell_of_a_transaction_that_took_too_long(strict_job: Job, strict: Kafka) -> None:
    out = strict.topic()
    slow = strict_job.rows().selectExpr(
        "0 AS __hg_sink", "struct(id, reflect('java.lang.Thread', 'sleep', 250L) AS x) AS r0"
    )
    spec = strict_job.spec(strict_job.sink(out, transaction_timeout_ms=1000))
    reported = _failure(strict_job, spec, slow.coalesce(1))
    assert reported["code"] == "TRANSACTION_TIMEOUT"
    assert "raise the sink's transaction_timeout (1000 ms)" in reported["text"]
    assert strict.read(out) == []
    spec = strict_job.spec(strict_job.sink(out, transaction_timeout_ms=100_000_000))
    reported = _failure(strict_job, spec)
    assert reported["code"] == "TRANSACTION_TIMEOUT"
    assert "transaction.max.timeout.ms" in reported["text"]
    strict_job.run(strict_job.one(), strict_job.spec(out))
    assert strict.ids(out) == list(range(10))


def _acl(kafka: Kafka, kind: ResourceType, name: str, operation: AclOperation, allow: bool) -> None:
    permission = AclPermissionType.ALLOW if allow else AclPermissionType.DENY
    acl = AclBinding(
        kind, name, ResourcePatternType.LITERAL, "User:ANONYMOUS", "*", operation, permission
    )
    for done in kafka.admin.create_acls([acl]).values():
        done.result(30)


def test_should_tell_what_is_not_allowed(strict_job: Job, strict: Kafka) -> None:
    out, denied, markers = strict.topic(), strict.topic(), f"markers-{strict_job.name}"
    _acl(strict, ResourceType.TOPIC, denied, AclOperation.DESCRIBE, True)
    reported = _failure(strict_job, strict_job.spec(out, denied), strict_job.two().coalesce(1))
    assert (reported["code"], reported["topic"]) == ("NOT_AUTHORISED", denied)
    found = jvm.kafka_topics(strict_job.spark, strict_job.client, [denied, out])
    assert found[denied]["operations"] == ["DESCRIBE"]
    assert found[denied]["config"] is None
    assert "WRITE" in found[out]["operations"]
    _acl(strict, ResourceType.BROKER, "kafka-cluster", AclOperation.ALL, True)
    _acl(strict, ResourceType.BROKER, "kafka-cluster", AclOperation.CREATE, False)
    _acl(strict, ResourceType.TOPIC, markers, AclOperation.DESCRIBE, True)
    reported = _failure(strict_job, strict_job.spec(strict_job.sink(out, marker_topic=markers)))
    assert (reported["code"], reported["topic"]) == ("NOT_AUTHORISED", markers)
    assert "create it with cleanup.policy=compact" in reported["text"]
    assert strict.read(out) == []


def test_should_be_exact_after_the_broker_was_away(
    strict_job: Job, strict: Kafka, strict_broker: KafkaBroker
) -> None:
    out = strict_job.sink(strict.topic(), client=strict_job.client | IMPATIENT)
    query = strict_job.start(strict_job.one(), strict_job.spec(out))
    query.processAllAvailable()
    strict_broker.stop()
    strict_job.add(range(10, 20))
    reported = _reported(query.processAllAvailable)
    assert reported["code"] == "BROKER_UNREACHABLE"
    strict_broker.start(quiet=True)
    strict_job.run(strict_job.one(), strict_job.spec(out))
    assert strict.ids(out["path"]) == list(range(20))
