"""The decode step on Kafka's bytes: JSON and raw values, metadata, deletions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import SparkSession

from headgate.base.coded import find_coded
from headgate.connectors.log.files import Record, TopicFiles
from tests.kernel import avro_bytes as avro
from tests.kernel.kafka_records import (
    ALL_METADATA,
    HEADERS,
    METADATA_COLUMNS,
    SOME_HEADERS,
    TOPIC,
    WHEN,
    decode,
    decoded,
    kafka,
    metadata_of,
    reasons,
)
from tests.kernel.support import read_stream

NOT_TEXT = b"\xff\x00\xfe"

# json


def test_should_read_json_from_bytes(spark: SparkSession) -> None:
    rows = decoded(
        spark, "a BIGINT, b STRING", b'{"a":1,"b":"gr\xc3\xbc\xc3\x9fe"}', b'{"b":"\\u0061","a":2}'
    )
    assert [(r.a, r.b, r["__hg_position"]) for r in rows] == [
        (1, "grüße", 3 << 48), (2, "a", (3 << 48) + 1),
    ]  # fmt: skip
    assert reasons(rows) == [None, None]


@pytest.mark.parametrize(
    "bad", [b'{"a":1,"b":"\xff"}', b'{"a":1,"x":"\xc3"}', b"\xff", b'{"a":1}\xc3']
)
def test_should_take_json_that_is_not_utf8_as_malformed(spark: SparkSession, bad: bytes) -> None:
    [row] = decoded(spark, "a BIGINT, b STRING", bad)
    assert row["__hg_bad"].reason == "not valid UTF-8"
    assert row["__hg_bad"].value.startswith("base64:")
    assert (row.a, row.b) == (None, None)


def test_should_show_bytes_that_are_no_text_as_base64(spark: SparkSession) -> None:
    frame = kafka(spark, (NOT_TEXT, b"7"), (b"k\xc3\xa9", NOT_TEXT), (None, None))
    bad = [r["__hg_bad"] for r in decode(frame, "a BIGINT").collect()]
    assert [(b.key, b.value) for b in bad] == [
        ("base64:/wD+", "7"), ("ké", "base64:/wD+"), (None, None),
    ]  # fmt: skip


# the topic of a bad record


@pytest.mark.parametrize(
    ("told", "own", "expected"),
    [
        (TOPIC, "orders", TOPIC),
        ("kafka://host:9092/orders-*", "orders-eu", "kafka://host:9092/orders-eu"),
        ("orders", "orders-eu", "orders-eu"),
    ],
)
def test_should_name_the_own_topic_of_a_bad_record(
    spark: SparkSession, told: str, own: str, expected: str
) -> None:
    frame = kafka(spark, (None, b"{"), topic=own)
    [row] = decode(frame, "a BIGINT", topic=told).collect()
    assert row["__hg_bad"].topic == expected
    with pytest.raises(Exception, match='"code":"MALFORMED_RECORD"') as error:
        decode(frame, "a BIGINT", topic=told, malformed="fail").collect()
    found = find_coded(str(error.value))
    assert found is not None and found.fields["topic"] == expected


def test_should_name_the_source_where_records_have_no_topic(spark: SparkSession) -> None:
    [row] = decode(kafka(spark, (None, b"{")).drop("topic"), "a BIGINT").collect()
    assert row["__hg_bad"].topic == TOPIC


# metadata


@pytest.mark.parametrize(
    ("columns", "value"),
    [
        ("a BIGINT", b'{"a":7}'),  # the fast reader
        ("a BIGINT", b'{"a":7,"x":"\\n"}'),  # Spark's parser, for the escape
        ("a ARRAY<INT>", b'{"a":[7]}'),
    ],
)
def test_should_give_the_metadata_of_json_records(
    spark: SparkSession, columns: str, value: bytes
) -> None:
    frame = kafka(spark, (b"key", value), (None, value))
    rows = decode(frame, f"{columns}, {METADATA_COLUMNS}", metadata=ALL_METADATA).collect()
    assert [metadata_of(r) for r in rows] == [
        ("key", "orders", 3, 0, WHEN, SOME_HEADERS), (None, "orders", 3, 1, WHEN, SOME_HEADERS),
    ]  # fmt: skip
    assert [r.a for r in rows] == ([7, 7] if columns == "a BIGINT" else [[7], [7]])
    assert [r["__hg_position"] for r in rows] == [3 << 48, (3 << 48) + 1]


def test_should_give_the_metadata_of_every_format(spark: SparkSession) -> None:
    for format, value in (("raw", b"x"), ("avro", avro.long(0) + avro.text("x"))):
        frame = kafka(spark, (b"key", value))
        [row] = decode(
            frame, f"a STRING, {METADATA_COLUMNS}", format=format, metadata=ALL_METADATA
        ).collect()
        assert (row.a, *metadata_of(row)) == ("x", "key", "orders", 3, 0, WHEN, SOME_HEADERS)


def test_should_give_a_key_as_bytes_and_records_without_headers(spark: SparkSession) -> None:
    frame = kafka(spark, (NOT_TEXT, b"{}"), (None, b'{"x":"\\n"}'), (b"", b"{}"), headers=None)
    schema = f"a INT, k BINARY, h {HEADERS}"
    rows = decode(frame, schema, metadata=[("k", "key"), ("h", "headers")]).collect()
    assert [(r.a, r.k, r.h) for r in rows] == [
        (None, bytearray(NOT_TEXT), None), (None, None, None), (None, bytearray(), None),
    ]  # fmt: skip


def test_should_refuse_a_text_key_that_is_none(spark: SparkSession) -> None:
    frame = kafka(spark, (NOT_TEXT, b"{}"), (b"k", b"{}"))
    bad, good = decode(frame, "a INT, k STRING", metadata=[("k", "key")]).collect()
    assert bad["__hg_bad"].reason == "the key is not valid UTF-8: its column must be BINARY"
    assert bad["__hg_bad"].key == "base64:/wD+"
    assert good.k == "k"


def test_should_give_the_metadata_of_a_log_topic(spark: SparkSession, tmp_path: Path) -> None:
    topic = TopicFiles(tmp_path / "t")
    topic.create(1)
    topic.append([Record('{"a":1}', key="k"), Record('{"a":2}')])
    frame = decode(
        read_stream(spark, topic.path), "a INT, k STRING, o BIGINT",
        metadata=[("k", "key"), ("o", "offset")],
    )  # fmt: skip
    seen: list[tuple[Any, ...]] = []
    frame.writeStream.foreachBatch(
        lambda f, _: seen.extend(tuple(r) for r in f.select("a", "k", "o").collect())
    ).option("checkpointLocation", str(tmp_path / "ck")).trigger(
        availableNow=True
    ).start().awaitTermination()
    assert seen == [(1, "k", 0), (2, None, 1)]


@pytest.mark.parametrize(
    ("schema", "metadata", "sentence"),
    [
        ("a INT, k INT", [("k", "key")], "'k' is the record's key, a STRING or BINARY, not a INT"),
        ("a INT, o INT", [("o", "offset")], "'o' is the record's offset, a BIGINT, not a INT"),
        ("a INT, k STRING", [("k", "colour")], "a record has no 'colour'"),
        ("a INT, k STRING", [("a", "key")], "the last columns are k, not the metadata's a"),
    ],
)
def test_should_refuse_metadata_that_does_not_fit_its_column(
    spark: SparkSession, schema: str, metadata: list[tuple[str, str]], sentence: str
) -> None:
    with pytest.raises(IllegalArgumentException, match=sentence):
        decode(kafka(spark), schema, metadata=metadata)


def test_should_refuse_metadata_that_the_source_does_not_give(spark: SparkSession) -> None:
    frame = kafka(spark).drop("headers")
    with pytest.raises(IllegalArgumentException, match="'orders' gives no column 'headers'"):
        decode(frame, f"a INT, h {HEADERS}", metadata=[("h", "headers")])


# raw


@pytest.mark.parametrize(("column", "make"), [("a STRING", bytes.decode), ("a BINARY", bytearray)])
def test_should_give_raw_values(spark: SparkSession, column: str, make: Any) -> None:
    values = [b"", b"plain", "grüße 🙂".encode(), b'{"a":1}', None]
    rows = decoded(spark, column, *values, format="raw")
    assert [r.a for r in rows] == [None if v is None else make(v) for v in values]
    assert reasons(rows) == [None] * 5
    assert not any(r["__hg_deleted"] for r in rows)


def test_should_give_raw_bytes_that_are_no_text_only_as_binary(spark: SparkSession) -> None:
    [row] = decoded(spark, "a BINARY", NOT_TEXT, format="raw")
    assert row.a == bytearray(NOT_TEXT)
    [row] = decoded(spark, "a STRING", NOT_TEXT, format="raw")
    assert (row.a, row["__hg_bad"].reason) == (None, "not valid UTF-8")
    assert row["__hg_bad"].value == "base64:/wD+"


@pytest.mark.parametrize("schema", ["a INT", "a STRING, b STRING"])
def test_should_refuse_other_columns_for_raw_values(spark: SparkSession, schema: str) -> None:
    with pytest.raises(IllegalArgumentException, match="one STRING or BINARY column"):
        decode(kafka(spark), schema, format="raw")


def test_should_refuse_a_format_that_is_none(spark: SparkSession) -> None:
    with pytest.raises(IllegalArgumentException, match=r"one of json, .*, not xml"):
        decode(kafka(spark), "a STRING", format="xml")


# tables


def test_should_delete_from_a_table_with_the_metadata_filled(spark: SparkSession) -> None:
    frame = kafka(spark, (b"7", None), (b"8", b'{"id":8,"name":"x"}'))
    gone, there = decode(
        frame, f"id BIGINT, name STRING, {METADATA_COLUMNS}", metadata=ALL_METADATA, table=True,
        key_columns=["id"],
    ).collect()  # fmt: skip
    assert (gone.id, gone.name, gone["__hg_deleted"]) == (7, None, True)
    assert metadata_of(gone) == ("7", "orders", 3, 0, WHEN, SOME_HEADERS)
    assert (there.id, there.name, there["__hg_deleted"]) == (8, "x", False)


@pytest.mark.parametrize("key", [b"k", b'"k"', b"7"])
@pytest.mark.parametrize("format", ["raw", "json"])
def test_should_delete_by_a_key_that_is_metadata_as_it_is(
    spark: SparkSession, format: str, key: bytes
) -> None:
    value = b"x" if format == "raw" else b'{"a":"x"}'
    rows = decode(
        kafka(spark, (key, value), (key, None)), "a STRING, id STRING", format=format,
        metadata=[("id", "key")], table=True, key_columns=["id"],
    ).collect()  # fmt: skip
    assert [(r.a, r.id, r["__hg_deleted"]) for r in rows] == [
        ("x", key.decode(), False), (None, key.decode(), True),
    ]  # fmt: skip


def test_should_delete_by_a_key_of_any_bytes(spark: SparkSession) -> None:
    rows = decode(
        kafka(spark, (NOT_TEXT, None), (None, None)), "a BINARY, id BINARY", format="raw",
        metadata=[("id", "key")], table=True, key_columns=["id"],
    ).collect()  # fmt: skip
    assert (rows[0].id, rows[0]["__hg_deleted"]) == (bytearray(NOT_TEXT), True)
    assert reasons(rows) == [None, "a deletion without a key"]


def test_should_refuse_a_deletion_whose_key_is_no_text(spark: SparkSession) -> None:
    frame = kafka(spark, (NOT_TEXT, None))
    rows = decode(frame, "name STRING", table=True, key_columns=["name"]).collect()
    assert reasons(rows) == ["the key of a deletion is not valid UTF-8"]
