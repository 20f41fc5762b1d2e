"""What the tests of the Kafka sink share: topics of a real broker, readers, and a small job."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    Message,
    Producer,
)
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient, NewTopic, OffsetSpec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from headgate import jvm
from headgate.connectors.log.files import Record, TopicFiles
from tests.kernel.support import SINKS, decode, read_stream, run

MARKERS = "headgate-markers"
TASKS = 4


class Kafka:
    """A broker, with the few things that the tests ask it."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})

    def topic(self, partitions: int = 1, **config: str) -> str:
        """A new topic."""
        name = f"t-{uuid.uuid4().hex[:10]}"
        made = NewTopic(
            name, partitions, 1, config={k.replace("_", "."): v for k, v in config.items()}
        )
        self.admin.create_topics([made])[name].result(30)
        return name

    def read(self, topic: str, isolation: str = "read_committed") -> list[Message]:
        """All records of a topic, up to where a reader of committed records gets."""
        if isolation == "read_committed":
            self._await_marks(topic)
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers, "group.id": uuid.uuid4().hex,
                "isolation.level": isolation, "enable.partition.eof": True,
                "enable.auto.commit": False,
                # the end of a partition is known when a fetch finds nothing there
                "fetch.wait.max.ms": 10,
            }
        )  # fmt: skip
        try:
            known = self.admin.list_topics(topic, timeout=30).topics[topic].partitions
            consumer.assign([Place(topic, p, OFFSET_BEGINNING) for p in known])
            found: list[Message] = []
            open_ = set(known)
            until = time.monotonic() + 30
            while open_:
                assert time.monotonic() < until, f"{topic} cannot be read to its end"
                message = consumer.poll(1.0)
                if message is None:
                    continue
                error = message.error()
                if error is None:
                    found.append(message)
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_.discard(message.partition())
                else:
                    raise AssertionError(str(error))
            return found
        finally:
            consumer.close()

    def _await_marks(self, topic: str) -> None:
        """Wait a little for the ends of transactions, which follow their commit; some are open."""
        places = [Place(topic, p) for p in self.admin.list_topics(topic).topics[topic].partitions]
        until = time.monotonic() + 3

        def ends(isolation: IsolationLevel) -> list[int]:
            asked = {place: OffsetSpec.latest() for place in places}
            found = self.admin.list_offsets(asked, isolation_level=isolation)
            return [found[place].result(30).offset for place in places]

        while ends(IsolationLevel.READ_COMMITTED) != ends(IsolationLevel.READ_UNCOMMITTED):
            if time.monotonic() > until:
                return
            time.sleep(0.02)

    def ids(self, topic: str, isolation: str = "read_committed") -> list[int]:
        """The field `id` of all values, sorted."""
        return sorted(json.loads(m.value())["id"] for m in self.read(topic, isolation))

    def markers(self, job: str, topic: str = MARKERS) -> dict[str, dict[str, Any]]:
        """The job's newest markers by key."""
        found = {(m.key() or b"").decode(): m.value() for m in self.read(topic)}
        return {
            key: json.loads(value)
            for key, value in found.items()
            if value is not None and key.startswith(f"{job}/")
        }

    def producer(self, transactional_id: str) -> Producer:
        """A producer that has begun a transaction; whoever had the id is fenced."""
        made = Producer({"bootstrap.servers": self.servers, "transactional.id": transactional_id})
        made.init_transactions(30)
        made.begin_transaction()
        return made

    def end(self, topic: str) -> int:
        """The end of a topic's only partition; a committed transaction takes one place more."""
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": uuid.uuid4().hex})
        try:
            return int(consumer.get_watermark_offsets(Place(topic, 0), timeout=30)[1])
        finally:
            consumer.close()


class Job:
    """Ids from a log topic to Kafka, by key in four tasks; each test has a name of its own."""

    def __init__(
        self, spark: SparkSession, kafka: Kafka, folder: Path, name: str | None = None
    ) -> None:
        self.name = name or f"job-{uuid.uuid4().hex[:8]}"
        self.key = f"{self.name}/".encode()
        self.client = {"bootstrap.servers": kafka.servers}
        self.spark = spark
        self.kafka = kafka
        self.folder = folder
        self.source = TopicFiles(folder / "source")
        if name is None:
            self.source.create(2)

    def add(self, ids: Sequence[int]) -> None:
        # in one partition: those of several appear one by one, and a query may see the first
        self.source.append([Record(json.dumps({"id": n})) for n in ids], partition=0)

    def rows(self, **options: object) -> DataFrame:
        """The ids, each third of them in one task: so one task of the four or more is empty."""
        ids = decode(read_stream(self.spark, self.source.path, **options), "id BIGINT")
        keyed = ids.select("id", F.expr("CAST(id % 3 AS STRING)").alias("k"))
        return keyed.repartition(TASKS, "k")

    def tasks(self, ids: Sequence[int]) -> set[int]:
        """Which tasks get these ids, as Spark's own hash says."""
        frame = self.spark.createDataFrame([(str(n % 3),) for n in ids], "k STRING")
        return {r[0] for r in frame.select(F.expr(f"pmod(hash(k), {TASKS})")).collect()}

    def one(self, **options: object) -> DataFrame:
        """All ids to one sink."""
        return self.rows(**options).selectExpr("0 AS __hg_sink", "struct(id) AS r0")

    def two(self, **options: object) -> DataFrame:
        """Even ids to the first sink, odd ones to the second."""
        return self.rows(**options).selectExpr(
            "CAST(id % 2 AS INT) AS __hg_sink",
            "IF(id % 2 = 0, struct(id), NULL) AS r0",
            "IF(id % 2 = 1, struct(id), NULL) AS r1",
        )

    def sink(self, topic: str, **other: Any) -> dict[str, Any]:
        return {
            "name": topic, "kind": "kafka", "path": topic, "key": None, "hidden": [],
            "delivery": "exactly_once", "transaction_timeout_ms": 60000, "marker_topic": MARKERS,
            "client": self.client, **other,
        }  # fmt: skip

    def spec(self, *sinks: Mapping[str, Any] | str, run: str = "r1") -> str:
        made = [self.sink(s) if isinstance(s, str) else dict(s) for s in sinks]
        return json.dumps({"job": self.name, "run": run, "journal": "", "sinks": made})

    def run(self, frame: DataFrame, spec: str) -> None:
        """To the end of the source, with a checkpoint for each run."""
        run(frame, spec, self._checkpoint(spec))

    def start(self, frame: DataFrame, spec: str) -> StreamingQuery:
        """A query that goes on, as soon as there is something."""
        return (
            frame.writeStream.format(SINKS)
            .option("spec", spec)
            .option("checkpointLocation", str(self._checkpoint(spec)))
            .trigger(processingTime="0 seconds")
            .start()
        )

    def _checkpoint(self, spec: str) -> Path:
        return self.folder / f"ck-{json.loads(spec)['run']}"

    def wait_until_nothing_is_open(self) -> None:
        """A task that fails ends its transaction without waiting for it."""
        until = time.monotonic() + 30
        while found := jvm.kafka_open_transactions(self.spark, self.client, self.name):
            assert time.monotonic() < until, found
            time.sleep(0.02)

    def transactional_id(self, task: int) -> str:
        return f"headgate.{self.name}.0.{task}"

    def committed(self, spec: str) -> dict[str, int | None]:
        found: dict[str, int | None] = json.loads(jvm.committed_batches(self.spark, spec))
        return found

    def producer_threads(self) -> list[str]:
        """The threads of this job's producers in the session's process."""
        jvm: Any = self.spark._jvm
        names = [t.getName() for t in jvm.java.lang.Thread.getAllStackTraces().keySet()]
        return [n for n in names if f"headgate.{self.name}." in n]
