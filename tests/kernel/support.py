"""What the kernel's tests share: raw records as frames, decoding, and queries with our sinks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from headgate import jvm
from headgate.connectors.log.files import LogRecord, TopicFiles

SINKS = "org.apache.spark.sql.headgate.sinks.core.SinkProvider"
TOPIC = "log:orders"
STEP = "orders"


def raw(spark: SparkSession, values: Iterable[bytes | None], *, slices: int = 2) -> DataFrame:
    """Records with these values, numbered from 0 in partition 0; a value may be any bytes."""
    rows = [(n, v if v is None else bytearray(v)) for n, v in enumerate(values)]
    frame = spark.createDataFrame(rows, "n LONG, bytes BINARY").repartition(slices)
    return frame.selectExpr(
        "CAST(NULL AS STRING) AS key", "CAST(bytes AS STRING) AS value", "0 AS partition",
        "n AS offset", "timestamp_millis(0) AS timestamp",
    )  # fmt: skip


def decode(
    frame: DataFrame,
    schema: str,
    *,
    malformed: str = "side",
    table: bool = False,
    key: Sequence[str] = (),
) -> DataFrame:
    return jvm.decode(
        frame, StructType.fromDDL(schema), topic=TOPIC, step=STEP, malformed=malformed,
        table=table, key_columns=key,
    )  # fmt: skip


def read_stream(spark: SparkSession, topic: Path, **options: object) -> DataFrame:
    reader = spark.readStream.format(jvm.LOG_SOURCE).option("path", str(topic))
    for name, value in options.items():
        reader = reader.option(name, str(value))
    return reader.load()


def spec(run: str, *sinks: dict[str, Any], journal: Path | None = None) -> str:
    return json.dumps(
        {"job": "store", "run": run, "journal": str(journal or ""), "sinks": list(sinks)}
    )


def log_sink(name: str, path: Path, *, keyed: bool = False, partitions: int = 1) -> dict[str, Any]:
    return {
        "name": name, "kind": "log", "path": str(path), "key": "__hg_key" if keyed else None,
        "hidden": ["key"] if keyed else [], "partitions": partitions,
    }  # fmt: skip


def start(frame: DataFrame, sinks: str, checkpoint: Path) -> StreamingQuery:
    return (
        frame.writeStream.format(SINKS)
        .option("spec", sinks)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )


def run(frame: DataFrame, sinks: str, checkpoint: Path) -> StreamingQuery:
    """Run to the end of the sources; raises what the query raises."""
    query = start(frame, sinks, checkpoint)
    query.awaitTermination()
    return query


def records(topic: Path) -> list[LogRecord]:
    return list(TopicFiles(topic).read())


def values(topic: Path) -> list[str | None]:
    return [r.value for r in records(topic)]


def assert_contiguous(topic: Path) -> None:
    """Offsets of every partition are 0, 1, 2, ... as its files' lines say."""
    for partition in sorted(topic.glob("partition-*")):
        found = []
        for file in sorted(partition.glob("*.jsonl")):
            base, count, _ = file.name.split(".")[0].split("-")
            lines = file.read_bytes().split(b"\n")[:-1]
            assert len(lines) == int(count)
            found += list(range(int(base), int(base) + len(lines)))
        assert found == list(range(len(found)))
