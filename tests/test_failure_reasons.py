"""Every reason is the reason of something that fails: real exceptions, and texts that were kept."""

from __future__ import annotations

import json
import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from py4j.java_gateway import GatewayParameters, JavaGateway
from py4j.protocol import Py4JJavaError
from pyiceberg.catalog.sql import SqlCatalog
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from headgate import jvm
from headgate.brokers.process import free_port
from headgate.connectors.iceberg.batch import BatchWrite
from headgate.connectors.iceberg.table import LakeTable
from headgate.connectors.log.files import Record, TopicFiles
from headgate.connectors.pulsar.range import PulsarFailure
from headgate.failures import Failure, Reason, Report, explain
from headgate.failures.signs import SIGNS, read_text
from headgate.jvm.lakes import need_delta
from headgate.runtime.home_probe import HomeUnseenError
from headgate.runtime.supervisor import BatchTimeoutError
from tests.homes.s3 import S3Server
from tests.kernel.support import decode, raw, read_stream, run, spec
from tests.registry.server import RegistryServer

KEYS_OF_S3 = {"access.key": "test-key", "secret.key": "test-secret"}
KEPT = Path(__file__).parent / "fixtures" / "failures"
Way = Callable[["Lab"], object]
WAYS: dict[Reason, Way] = {}


@dataclass
class Lab:
    """What the ways to fail need."""

    spark: SparkSession
    folder: Path

    @property
    def java(self) -> Any:
        return self.spark._jvm

    def kernel(self, name: str) -> Any:
        found = self.java
        for part in f"{jvm.PACKAGE}.{name}".split("."):
            found = getattr(found, part)
        return found

    def raised(self, java: Any) -> None:
        """Throw a Java exception in the JVM, as it comes to Python from there."""
        future = self.java.java.util.concurrent.CompletableFuture()
        future.completeExceptionally(java)
        future.get()

    def kafka(self, name: str, *args: object) -> None:
        """Let the kernel say what it says of one of Kafka's exceptions."""
        jvm.need_kafka(self.spark)
        error = getattr(self.java.org.apache.kafka.common.errors, name)(*args)
        self.raised(self.kernel("brokers.kafka.KafkaFailure").of(error, "h:1", "orders"))

    def read_s3(self, bucket: str, endpoint: str) -> None:
        """Let Spark read an object, and give up after a try."""
        hadoop = self.spark.sparkContext._jsc.hadoopConfiguration()
        for name, value in {"attempts.maximum": "1", "retry.limit": "1", **KEYS_OF_S3}.items():
            hadoop.set(f"fs.s3a.bucket.{bucket}.{name}", value)
        jvm.need_store(self.spark, f"s3://{bucket}/a?endpoint={endpoint}")
        self.spark.read.text(f"s3a://{bucket}/a").collect()

    def topic(self, *values: str) -> TopicFiles:
        topic = TopicFiles(self.folder / "topic")
        topic.create(1)
        for value in values:
            topic.append([Record(value)])
        return topic

    def consume(self, frame: Any, mode: str = "append") -> Any:
        """Run a query to its end over what is there."""
        writer = frame.writeStream.format("noop").outputMode(mode).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(self.folder / "ck")).start()
        query.awaitTermination()
        return query


def fails_for(reason: Reason) -> Callable[[Way], Way]:
    """Register a way to fail: it raises, or gives a text that was kept."""

    def register(way: Way) -> Way:
        WAYS[reason] = way
        return way

    return register


@fails_for(Reason.MALFORMED_RECORD)
def _malformed(lab: Lab) -> None:
    decode(raw(lab.spark, [b"{"]), "a BIGINT", malformed="fail").collect()


@fails_for(Reason.TOPIC_MISSING)
def _missing(lab: Lab) -> None:
    lab.spark.read.format(jvm.LOG_SOURCE).option("path", str(lab.folder / "no")).load().collect()


@fails_for(Reason.OFFSET_GONE)
def _gone(lab: Lab) -> None:
    topic = lab.topic("a", "b")
    lab.consume(read_stream(lab.spark, topic.path))
    for segment in topic.segments(0):
        (topic.path / "partition-00000" / segment.name).unlink()
    topic.append([Record("another")])
    lab.consume(read_stream(lab.spark, topic.path))


@fails_for(Reason.TOPIC_REPLACED)
def _replaced(lab: Lab) -> None:
    topic = lab.topic("a")
    writer = read_stream(lab.spark, topic.path).writeStream.format("noop")
    query = writer.option("checkpointLocation", str(lab.folder / "ck")).start()
    try:
        query.processAllAvailable()
        # made beside it: a query that looks while there is none says that it is missing
        other = TopicFiles(lab.folder / "new")
        other.create(1)
        other.append([Record("b"), Record("c")])
        topic.path.rename(lab.folder / "old")
        other.path.rename(topic.path)
        query.processAllAvailable()
    finally:
        query.stop()


@fails_for(Reason.TOPIC_DAMAGED)
def _damaged(lab: Lab) -> None:
    topic = lab.topic("a")
    (topic.path / "partition-00000" / topic.segments(0)[0].name).write_text("")
    lab.spark.read.format(jvm.LOG_SOURCE).option("path", str(topic.path)).load().collect()


def _in_python(lab: Lab, code: Callable[[int], int]) -> None:
    lab.spark.range(0, 1, 1, 1).select(F.udf(code, "bigint")("id")).collect()


@fails_for(Reason.USER_CODE)
def _code(lab: Lab) -> None:
    def code(n):  # type: ignore[no-untyped-def]
        raise ValueError("no number")

    _in_python(lab, code)


@fails_for(Reason.USER_CODE_IO)
def _code_io(lab: Lab) -> None:
    def code(n):  # type: ignore[no-untyped-def]
        raise ConnectionError("nobody there")

    _in_python(lab, code)


@fails_for(Reason.PYTHON_WORKER)
def _worker(lab: Lab) -> None:
    def code(n):  # type: ignore[no-untyped-def]
        os.kill(os.getpid(), signal.SIGKILL)

    _in_python(lab, code)


@fails_for(Reason.EXPRESSION)
def _expression(lab: Lab) -> None:
    lab.spark.range(1).selectExpr("1 / id").collect()


def _counted(lab: Lab, key: str) -> None:
    stream = read_stream(lab.spark, lab.folder / "topic")
    lab.consume(stream.groupBy(F.expr(key)).count(), "complete")


@fails_for(Reason.STATE_SCHEMA)
def _state_schema(lab: Lab) -> None:
    topic = lab.topic("a")
    _counted(lab, "value AS k")
    topic.append([Record("b")])
    _counted(lab, "length(value) AS k")


@fails_for(Reason.STATE_FILES)
def _state_files(lab: Lab) -> None:
    topic = lab.topic("a")
    _counted(lab, "value AS k")
    topic.append([Record("b")])
    for file in (lab.folder / "ck" / "state").rglob("*.changelog"):
        file.unlink()
    for file in (lab.folder / "ck" / "state").rglob("*.zip"):
        file.unlink()
    _counted(lab, "value AS k")


@fails_for(Reason.OUT_OF_MEMORY)
def _memory(lab: Lab) -> None:
    lab.java.java.util.ArrayList(2**31 - 1)  # no JVM makes an array of that size


@fails_for(Reason.EXECUTOR_LOST)
def _executor(lab: Lab) -> str:
    return (KEPT / "executor_lost.txt").read_text()


@fails_for(Reason.DISK_FULL)
def _full(lab: Lab) -> None:
    lab.java.java.io.FileOutputStream("/dev/full").write(1)


@fails_for(Reason.READ_ONLY)
def _read_only(lab: Lab) -> None:
    inside = lab.java.java.net.URI("jrt:/java.base/new")  # Java's own classes, as a file system
    lab.java.java.nio.file.Paths.get(inside).getFileSystem().provider().delete(
        lab.java.java.nio.file.Paths.get(inside)
    )


@fails_for(Reason.STORAGE)
def _storage(lab: Lab) -> None:
    lab.java.java.io.FileInputStream(str(lab.folder / "no"))


@fails_for(Reason.STORE_UNREACHABLE)
def _store_unreachable(lab: Lab) -> None:
    lab.read_s3("gone", f"http://127.0.0.1:{free_port()}")


@fails_for(Reason.STORE_DENIED)
def _store_denied(lab: Lab) -> None:
    server = S3Server(lab.folder, INITIAL_NO_AUTH_ACTION_COUNT="0")  # which knows no user
    try:
        lab.read_s3("closed", server.endpoint)
    finally:
        server.stop()


@fails_for(Reason.BATCH_TAKEN)
def _batch_taken(lab: Lab) -> None:
    hadoop = lab.java.org.apache.hadoop
    file = hadoop.fs.Path(str(lab.folder / "offsets" / "7"))
    store = file.getFileSystem(hadoop.conf.Configuration())
    for plan in (b"the first", b"the second"):
        text = lab.java.java.io.ByteArrayOutputStream()
        text.write(plan)
        lab.kernel("commit.NewStoredFile")(store, file, text).close()


@fails_for(Reason.DRIVER_GONE)
def _driver(lab: Lab) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
    JavaGateway(gateway_parameters=GatewayParameters(port=port)).jvm.java.lang.Object()


@fails_for(Reason.HOME_UNSEEN)
def _unseen(lab: Lab) -> None:
    answer = lab.kernel("commit.ProbeAnswer")("3", "worker-7", "unseen", "no such file")
    raise HomeUnseenError(answer.coded("/home/probe").line())


@fails_for(Reason.LEASE_LOST)
def _lease(lab: Lab) -> None:
    hadoop = lab.java.org.apache.hadoop
    path = hadoop.fs.Path(str(lab.folder / "job.json"))
    lab.kernel("commit.Fence")(None, path, "mine", hadoop.conf.Configuration()).check()


@fails_for(Reason.CRASH_ASKED)
def _crash(lab: Lab) -> None:
    jvm.arm_crash(lab.spark, "r-reasons", "after_sink")
    getattr(lab.kernel("testing.Failpoints$"), "MODULE$").reach("r-reasons", "after_sink", 3)


@fails_for(Reason.RECORD_TOO_LARGE)
def _large(lab: Lab) -> None:
    lab.kafka("RecordTooLargeException", "1000 bytes")


@fails_for(Reason.BROKER_UNREACHABLE)
def _unreachable(lab: Lab) -> None:
    lab.kafka("TimeoutException", "no answer")


@fails_for(Reason.FETCH_TIMEOUT)
def _fetch(lab: Lab) -> str:
    return (KEPT / "fetch_timeout.txt").read_text()


@fails_for(Reason.NOT_AUTHORISED)
def _denied(lab: Lab) -> None:
    lab.kafka("TopicAuthorizationException", "denied")


@fails_for(Reason.PRODUCER_FENCED)
def _fenced(lab: Lab) -> None:
    lab.kafka("ProducerFencedException", "another")


@fails_for(Reason.SINK_AHEAD)
def _ahead(lab: Lab) -> None:
    marker = lab.kernel("commit.Marker")
    nothing = lab.java.scala.Option.empty()
    marker(7, "a", "", nothing).holds(marker(5, "b", "", nothing), "out")


@fails_for(Reason.OUTPUT_TAKEN)
def _taken(lab: Lab) -> None:
    owner = lab.kernel("commit.Owner")
    place = lab.java.java.nio.file.Paths.get(lab.java.java.io.File(str(lab.folder)).toURI())
    folder = lab.kernel("commit.FolderOwner")(place, "store")
    folder.check(owner("one", "host:/one"), "out")
    folder.check(owner("two", "host:/two"), "out")


@fails_for(Reason.FOLDER_TAKEN)
def _folder_taken(lab: Lab) -> None:
    rows = read_stream(lab.spark, lab.topic("a").path)
    out = {"kind": "files", "path": str(lab.folder / "out"), "format": "json"}
    for name in ("one", "two"):
        sinks = spec("r1", {"name": name, **out})
        run(rows.selectExpr("0 AS __hg_sink", "struct(value) AS r0"), sinks, lab.folder / name)


def _delta_rows(lab: Lab, path: Path, name: str, columns: str) -> None:
    """A batch of one row into a Delta table."""
    need_delta(lab.spark)
    if not (lab.folder / "topic").exists():
        lab.topic("a")
    rows = read_stream(lab.spark, lab.folder / "topic")
    sinks = spec(name, {"name": "out", "kind": "delta", "path": str(path)})
    run(rows.selectExpr("0 AS __hg_sink", f"struct({columns}) AS r0"), sinks, lab.folder / name)


@fails_for(Reason.DELTA_SCHEMA)
def _delta_schema(lab: Lab) -> None:
    _delta_rows(lab, lab.folder / "table", "r1", "1 AS id")
    _delta_rows(lab, lab.folder / "table", "r2", "1 AS id, 2 AS more")


@fails_for(Reason.DELTA_PATH)
def _delta_path(lab: Lab) -> None:
    (lab.folder / "file").write_text("")
    _delta_rows(lab, lab.folder / "file" / "table", "r1", "1 AS id")


@fails_for(Reason.DELTA_CONFLICT)
def _delta_conflict(lab: Lab) -> None:
    """Two that write as one at once: what the later one gets, as the kernel explains it."""
    _delta_rows(lab, lab.folder / "table", "r1", "1 AS id")
    lab.spark.conf.set("spark.databricks.delta.requiredSparkConfsCheck.enabled", "false")
    delta, none = lab.java.org.apache.spark.sql.delta, lab.java.scala.Option.empty()
    log = delta.DeltaLog.forTable(lab.spark._jsparkSession, str(lab.folder / "table"))
    nil = getattr(getattr(lab.java.scala.collection.immutable, "Nil$"), "MODULE$")
    actions = getattr(nil, "$colon$colon")(delta.actions.SetTransaction("a", 1, none))
    operation = getattr(getattr(delta, "DeltaOperations$ManualUpdate$"), "MODULE$")
    both = [log.startTransaction(none, none) for _ in range(2)]
    for one in both:
        one.txnVersion("a")
    try:
        for one in both:
            one.commit(actions, operation)
    except Py4JJavaError as error:
        failures = getattr(lab.kernel("sinks.delta.DeltaFailures$"), "MODULE$")
        lab.raised(failures.of("out", "table", error.java_exception))


def _iceberg(lab: Lab, **options: str) -> LakeTable:
    there = {"type": "sql", "uri": f"sqlite:///{lab.folder}/c.db", "warehouse": str(lab.folder)}
    return LakeTable("out", "a.t", "default", options or there)


def _columns(*names: str) -> StructType:
    return StructType([StructField(name, LongType()) for name in names])


@fails_for(Reason.ICEBERG_TABLE)
def _iceberg_table(lab: Lab) -> None:
    _iceberg(lab).prepared(_columns("id"))
    _iceberg(lab).prepared(_columns("id", "more"))


@fails_for(Reason.ICEBERG_CATALOG)
def _iceberg_catalog(lab: Lab) -> None:
    nobody = _iceberg(lab, type="rest", uri=f"http://127.0.0.1:{free_port()}")
    BatchWrite(nobody, _columns("id"))(lab.spark.range(1), {})


@fails_for(Reason.ICEBERG_CONFLICT)
def _iceberg_conflict(lab: Lab) -> None:
    """Every commit of ours comes behind one of another writer."""
    theirs, rows = _iceberg(lab), lab.spark.range(3)
    theirs.prepared(_columns("id"))
    request = {"writer": "a.r1.out", "number": 0, "token": "a", "tasks": [0, 1], "bytes": 9}
    commit = SqlCatalog.commit_table

    def late(self: SqlCatalog, table: Any, requirements: Any, updates: Any) -> Any:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SqlCatalog, "commit_table", commit)
            theirs.load().append(pa.table({"id": pa.array([7], pa.int64())}))
        return commit(self, table, requirements, updates)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SqlCatalog, "commit_table", late)
        BatchWrite(_iceberg(lab), _columns("id"))(rows, request)


@fails_for(Reason.BATCH_TIMEOUT)
def _slow(lab: Lab) -> None:
    raise BatchTimeoutError(timedelta(seconds=3))


@fails_for(Reason.TRANSACTION_TIMEOUT)
def _transaction(lab: Lab) -> None:
    lab.kafka("InvalidTxnTimeoutException", "too long")


@fails_for(Reason.KAFKA)
def _kafka(lab: Lab) -> None:
    lab.kafka("UnsupportedVersionException", "not here")


def _registry(lab: Lab, *, login: str | None, fail: int = 0) -> None:
    """Ask a registry for a schema, and then for the same under a subject with another."""
    with RegistryServer(login="app:s3same-open") as server:
        server.fail_next = fail
        server.add("out-value", '"int"')
        access = json.dumps({**server.access, "login": login})
        registries = lab.kernel("registry.Registry").of(
            lab.kernel("registry.RegistryAccess")
            .of(lab.java.com.fasterxml.jackson.databind.ObjectMapper().readTree(access))
            .get()
        )
        registries.latest("out-value")
        nothing = getattr(lab.java.scala.collection.immutable, "Nil$")
        registries.register(
            "out-value",
            lab.kernel("registry.Registered")("AVRO", '"string"', getattr(nothing, "MODULE$")),
        )


@fails_for(Reason.REGISTRY_UNREACHABLE)
def _registry_gone(lab: Lab) -> None:
    _registry(lab, login="app:s3same-open", fail=9)


@fails_for(Reason.REGISTRY_REFUSED)
def _registry_refuses(lab: Lab) -> None:
    _registry(lab, login="app:other")


@fails_for(Reason.SCHEMA_MISFIT)
def _schema_misfit(lab: Lab) -> None:
    _registry(lab, login="app:s3same-open")


@fails_for(Reason.DEDUPLICATION_OFF)
def _duplicates(lab: Lab) -> None:
    failure = lab.kernel("brokers.pulsar.PulsarFailure")
    lab.raised(failure("DEDUPLICATION_OFF", "orders", "pulsar://h:1", "it is off", None))


@fails_for(Reason.PULSAR)
def _pulsar(lab: Lab) -> None:
    raise PulsarFailure("PULSAR", "pulsar://h:1/orders", "TopicTerminated")


def _sql(state: str) -> Way:
    """The database says why by a code of SQL."""

    def way(lab: Lab) -> None:
        url = "jdbc:postgresql://db/shop"
        jvm.need_driver(lab.spark, url)
        failure = lab.kernel("sinks.jdbc.JdbcFailure")
        error = lab.java.java.sql.SQLException("so it said", state)
        dialect = lab.kernel("sinks.jdbc.Dialect").of(url)
        lab.raised(failure.of(error, f"{url}/t", dialect, getattr(failure, "of$default$4")()))

    return way


for _reason, _state in (
    (Reason.DATABASE_UNREACHABLE, "08006"),
    (Reason.DATABASE_DENIED, "28P01"),
    (Reason.TABLE_MISSING, "42P01"),
    (Reason.TABLE_UNFIT, "42703"),
    (Reason.CONSTRAINT_VIOLATED, "23505"),
    (Reason.VALUE_REFUSED, "22001"),
    (Reason.DATABASE, "40P01"),
):
    fails_for(_reason)(_sql(_state))


@fails_for(Reason.STEP_TWICE)
def _twice(lab: Lab) -> None:
    query = lab.consume(read_stream(lab.spark, lab.topic("a").path))
    batch = lab.kernel("spark.RunningBatch")(query._jsq.streamingQuery().lastExecution())
    for _ in range(2):
        lab.kernel("batch.OnceABatch").check(batch, "settle")


@fails_for(Reason.UNKNOWN)
def _unknown(lab: Lab) -> None:
    lab.java.java.util.ArrayList().iterator().next()


def failure_from(way: Way, lab: Lab) -> Failure:
    try:
        kept = way(lab)
    except Exception as error:
        return jvm.explain_failure(error)
    assert isinstance(kept, str), "it did not fail"
    return explain(kept)


def test_there_is_a_way_to_every_reason() -> None:
    assert set(WAYS) == set(Reason)


@pytest.mark.parametrize("reason", Reason, ids=lambda reason: reason.name)
def test_what_fails_has_its_reason(reason: Reason, spark: SparkSession, tmp_path: Path) -> None:
    failure = failure_from(WAYS[reason], Lab(spark, tmp_path))
    assert failure.reason is reason, failure.sentence
    assert "HEADGATE" not in failure.sentence and "\n" not in failure.sentence


@pytest.mark.parametrize("sign", SIGNS, ids=lambda sign: sign.text)
def test_each_sign_is_found_in_a_trace_and_nowhere_else(sign: Any) -> None:
    lines = {
        "class": f"Lost task 0.0 in stage 1.0: org.some.where.{sign.text}: why\n\tat org.Foo.bar",
        "classes": f"It failed\nCaused by: some.Client$Any{sign.text}: why\n\tat org.Foo.a",
        "condition": f"org.apache.spark.SparkException: [{sign.text}.MORE] why SQLSTATE: X",
        "words": f"Caused by: some.Other: {sign.text} 17",
    }
    assert read_text(lines[sign.kind]).code == sign.code
    if sign.kind != "words":
        assert read_text(f"Lost task: the user wrote {sign.text} here").code is None


def test_a_code_that_nobody_knows_is_still_a_failure() -> None:
    failure = explain(Report("FROM_A_LATER_KERNEL", {"a": 1}, said="it broke"))
    assert (failure.reason, failure.sentence) == (Reason.UNKNOWN, "it broke")


def test_the_page_of_failures_lists_every_reason() -> None:
    page = (Path(__file__).parents[1] / "docs" / "failures.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("| <a id=")]
    assert rows == [
        f'| <a id="{reason.name.lower()}"></a>`{reason.name}` | {reason.text} '
        f"| {'yes' if reason.retryable else 'no'} | {reason.remedy} |"
        for reason in Reason
    ]
