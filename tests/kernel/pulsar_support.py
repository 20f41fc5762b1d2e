"""What the tests of the Pulsar sink share: a job whose rows come in another order each time."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from headgate import jvm
from headgate.connectors.log.files import Record, TopicFiles
from tests.kernel.support import SINKS, decode, read_stream, run
from tests.pulsar.client import Pulsar

TASKS = 3


def _shuffled(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    for frame in frames:
        yield frame.sample(frac=1, random_state=random.randrange(1 << 30))


class Job:
    """Ids from a log topic to Pulsar, by key in three tasks; each test has a name of its own."""

    def __init__(
        self, spark: SparkSession, pulsar: Pulsar, folder: Path, name: str | None = None
    ) -> None:
        self.name = name or f"job-{uuid.uuid4().hex[:8]}"
        self.spark = spark
        self.pulsar = pulsar
        self.folder = folder
        self.source = TopicFiles(folder / "source")
        if name is None:
            self.source.create(2)

    def add(self, ids: Sequence[int]) -> None:
        self.source.append([Record(json.dumps({"id": n})) for n in ids])

    def rows(self, **options: object) -> DataFrame:
        """The ids, a third of them in each task, in an order that no attempt repeats."""
        ids = decode(read_stream(self.spark, self.source.path, **options), "id BIGINT")
        keyed = ids.select("id", F.expr("CAST(id % 5 AS STRING)").alias("k"))
        placed = keyed.repartition(TASKS, "k")
        return placed.mapInPandas(_shuffled, placed.schema)

    def one(self, *columns: str, **options: object) -> DataFrame:
        """All ids to one sink; the columns of its rows are `id` unless told otherwise."""
        struct = ", ".join(columns or ("id",))
        return self.rows(**options).selectExpr("0 AS __hg_sink", f"struct({struct}) AS r0")

    def two(self, **options: object) -> DataFrame:
        """Even ids to the first sink, odd ones to the second; with keys."""
        return self.rows(**options).selectExpr(
            "CAST(id % 2 AS INT) AS __hg_sink",
            "IF(id % 2 = 0, struct(k AS __hg_lead_key, id), NULL) AS r0",
            "IF(id % 2 = 1, struct(k AS __hg_lead_key, id), NULL) AS r1",
        )

    def sink(self, topic: str, *hidden: str, **other: Any) -> dict[str, Any]:
        return {
            "name": topic, "kind": "pulsar", "path": f"persistent://public/default/{topic}",
            "hidden": list(hidden), "delivery": "exactly_once", "access": {"url": self.pulsar.url},
            "entry_rows": 2, **other,
        }  # fmt: skip

    def spec(self, *sinks: Mapping[str, Any] | str, run: str = "r1") -> str:
        made = [self.sink(s, "key") if isinstance(s, str) else dict(s) for s in sinks]
        journal = str(self.folder / f"journal-{run}")
        return json.dumps({"job": self.name, "run": run, "journal": journal, "sinks": made})

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

    def committed(self, spec: str) -> dict[str, int | None]:
        found: dict[str, int | None] = json.loads(jvm.committed_batches(self.spark, spec))
        return found

    def layouts(self, topic: str, run: str = "r1") -> list[tuple[int, int]]:
        """What is recorded of a topic: from which batch on it has how many partitions."""
        file = self.folder / f"journal-{run}" / f"pulsar-{topic}.json"
        found = json.loads(file.read_text())["layouts"]
        assert {told["tasks"] for told in found} == {TASKS}
        return [(told["from_batch"], told["partitions"]) for told in found]
