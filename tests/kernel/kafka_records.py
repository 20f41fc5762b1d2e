"""Records as Kafka's source has them, and decoding them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType

from headgate import jvm

TOPIC = "kafka://host:9092/orders"
HEADERS = "ARRAY<STRUCT<key: STRING, value: BINARY>>"
COLUMNS = (
    "key BINARY, value BINARY, topic STRING, partition INT, offset LONG, timestamp TIMESTAMP, "
    f"timestampType INT, headers {HEADERS}"
)
ALL_METADATA = [
    ("k", "key"), ("t", "topic"), ("p", "partition"), ("o", "offset"), ("ts", "timestamp"),
    ("h", "headers"),
]  # fmt: skip
METADATA_COLUMNS = f"k STRING, t STRING, p INT, o BIGINT, ts TIMESTAMP, h {HEADERS}"
SOME_HEADERS = (("trace", b"\x01\xff"), ("none", None))
WHEN = datetime(2024, 2, 29, 12, 30, 15, 123000)


def kafka(
    spark: SparkSession,
    *records: tuple[bytes | None, bytes | None],
    topic: str = "orders",
    headers: Sequence[tuple[str, bytes | None]] | None = SOME_HEADERS,
) -> DataFrame:
    """Records (key, value) in partition 3 from offset 0."""
    given = None if headers is None else [(k, _bytes(v)) for k, v in headers]
    rows = [
        (_bytes(key), _bytes(value), topic, 3, n, WHEN, 0, given)
        for n, (key, value) in enumerate(records)
    ]
    return spark.createDataFrame(rows, COLUMNS).coalesce(1)


def decode(frame: DataFrame, schema: str, **options: Any) -> DataFrame:
    told: dict[str, Any] = {"topic": TOPIC, "step": "orders", "malformed": "side"} | options
    return jvm.decode(frame, StructType.fromDDL(schema), **told)


def decoded(spark: SparkSession, schema: str, *values: bytes | None, **options: Any) -> list[Row]:
    """The rows of records with these values."""
    return decode(kafka(spark, *[(b"k", value) for value in values]), schema, **options).collect()


def reasons(rows: list[Row]) -> list[str | None]:
    return [None if row["__hg_bad"] is None else row["__hg_bad"].reason for row in rows]


def metadata_of(row: Row) -> tuple[Any, ...]:
    """What a row has in the columns of ALL_METADATA."""
    headers = None if row.h is None else tuple((h.key, h.value) for h in row.h)
    return (row.k, row.t, row.p, row.o, row.ts, headers)


def _bytes(data: bytes | None) -> bytearray | None:
    return None if data is None else bytearray(data)
