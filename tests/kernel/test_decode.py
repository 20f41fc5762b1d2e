"""The decode step: columns, positions, deletions, bad records and counts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from headgate.base.coded import find_coded
from headgate.connectors.log.files import Record, TopicFiles
from tests.kernel.support import decode, raw, read_stream


def _keyed(spark: SparkSession, rows: list[tuple[str | None, str | None]]) -> DataFrame:
    numbered = [(key, value, 3, n) for n, (key, value) in enumerate(rows)]
    frame = spark.createDataFrame(numbered, "key STRING, value STRING, partition INT, offset LONG")
    return frame.coalesce(1).withColumn("timestamp", F.timestamp_millis(F.lit(1700000000123)))


def test_should_give_the_columns_and_the_position(spark: SparkSession) -> None:
    frame = decode(_keyed(spark, [("k", '{"b":"x","a":1}'), (None, "{}")]), "a BIGINT, b STRING")
    assert frame.columns == ["a", "b", "__hg_position", "__hg_deleted", "__hg_bad"]
    assert frame.collect() == [
        (1, "x", 3 << 48, False, None), (None, None, (3 << 48) + 1, False, None),
    ]  # fmt: skip


def test_should_find_the_raw_columns_by_name(spark: SparkSession) -> None:
    frame = _keyed(spark, [("k", '{"a":1}')]).selectExpr(
        "timestamp", "'more' AS headers", "offset", "value", "partition", "key"
    )
    assert decode(frame, "a INT").selectExpr("a", "__hg_position").collect() == [(1, 3 << 48)]
    with pytest.raises(Exception, match="no column 'offset'"):
        decode(frame.drop("offset"), "a INT").collect()


def test_should_let_a_bad_record_out_raw(spark: SparkSession) -> None:
    frame = decode(_keyed(spark, [("k", '{"a":"x"}'), (None, '{"a":2}')]), "a BIGINT")
    bad, good = frame.collect()
    assert good.a == 2
    assert (bad.a, bad["__hg_deleted"]) == (None, False)
    assert bad["__hg_position"] == 3 << 48
    assert bad["__hg_bad"].asDict() | {"timestamp": 0} == {
        "topic": "log:orders", "partition": 3, "offset": 0, "timestamp": 0, "key": "k",
        "value": '{"a":"x"}', "reason": "field 'a' is not a BIGINT: \"x\"",
    }  # fmt: skip
    assert bad["__hg_bad"].timestamp.timestamp() == 1700000000.123


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "empty record"),
        ("", "empty record"),
        ("  ", "empty record"),
        ("[1]", "not a JSON object"),
        ('[{"a":1}]', "not a JSON object"),
        ("7", "not a JSON object"),
        ('"a"', "not a JSON object"),
        ("null", "not a JSON object"),
        ("order lost", "not valid JSON: Unrecognized token 'order'"),
        ('{"a":1', "not valid JSON: Unexpected end-of-input"),
        ('{"a":1.5}', "field 'a' is not a BIGINT: 1.5"),
        ('{"a":""}', "an empty text is not a BIGINT"),
        ('{"d":"big"}', "field 'd' is not a DOUBLE: \"big\""),
        (
            '{"a":99999999999999999999}',
            "not valid JSON: Numeric value (99999999999999999999) out of",
        ),
        ('{"s":{"x":"y"}}', "field 'x' is not a INT: \"y\""),
        ('{"a":"' + "z" * 500 + '"}', "field 'a' is not a BIGINT: \"zzz"),
    ],
)
def test_should_say_in_a_few_words_what_is_wrong(
    spark: SparkSession, text: str | None, reason: str
) -> None:
    frame = raw(spark, [None if text is None else text.encode()])
    [row] = decode(frame, "a BIGINT, d DOUBLE, s STRUCT<x: INT>").select("__hg_bad.*").collect()
    assert row.reason.startswith(reason)
    assert len(row.reason) <= 200
    assert "\n" not in row.reason
    assert row.value == text


def test_should_fail_with_the_place_of_a_bad_record(spark: SparkSession) -> None:
    frame = _keyed(spark, [(None, '{"a":1}'), (None, '{"a":tru' + "e" * 1000)])
    with pytest.raises(Exception, match='"code":"MALFORMED_RECORD"') as error:
        decode(frame, "a BIGINT", malformed="fail").collect()
    found = find_coded(str(error.value))
    assert found is not None
    told = found.fields
    assert {k: told[k] for k in ("step", "topic", "partition", "offset")} == {
        "step": "orders", "topic": "log:orders", "partition": 3, "offset": 1,
    }  # fmt: skip
    assert told["reason"].startswith("not valid JSON")
    assert told["text"] == '{"a":tru' + "e" * 192


KEY = "id BIGINT, name STRING, day DATE, price DOUBLE"


@pytest.mark.parametrize(
    ("columns", "key", "expected"),
    [
        (["id"], "7", {"id": 7}),
        (["id"], " 7 ", {"id": 7}),
        (["name"], "seven", {"name": "seven"}),
        (["name"], "7", {"name": "7"}),
        (["name"], '"seven"', {"name": "seven"}),
        (["name"], '"half', {"name": '"half'}),
        (["name"], "", {"name": ""}),
        (["name"], '{"a":1}', {"name": '{"a":1}'}),
        (["price"], "1.5", {"price": 1.5}),
        (["day"], "2024-02-29", {"day": "2024-02-29"}),
        (["day"], '"2024-02-29"', {"day": "2024-02-29"}),
        (["id", "name"], '{"name":"x","id":1}', {"id": 1, "name": "x"}),
    ],
)
def test_should_fill_the_key_of_a_deletion(
    spark: SparkSession, columns: list[str], key: str, expected: dict[str, Any]
) -> None:
    [row] = decode(_keyed(spark, [(key, None)]), KEY, table=True, key=columns).collect()
    assert row["__hg_bad"] is None
    assert row["__hg_deleted"]
    got = {c: row[c] for c in ("id", "name", "day", "price") if row[c] is not None}
    assert {c: str(v) if c == "day" else v for c, v in got.items()} == expected


@pytest.mark.parametrize(
    ("columns", "key", "reason"),
    [
        (["id"], None, "a deletion without a key"),
        (["id"], "seven", "the key of a deletion is not a BIGINT: seven"),
        (["id"], "null", "the key of a deletion is not a BIGINT: null"),
        (["id"], '1,"name":"x"', "the key of a deletion is not a BIGINT"),
        (["id"], "1 2", "the key of a deletion is not a BIGINT"),
        (["id", "name"], "1", "the key of a deletion is not a JSON object with"),
        (["id", "name"], '{"id":1}', "the key of a deletion is not a JSON object with"),
    ],
)
def test_should_refuse_a_deletion_whose_key_does_not_fit(
    spark: SparkSession, columns: list[str], key: str | None, reason: str
) -> None:
    [row] = decode(_keyed(spark, [(key, None)]), KEY, table=True, key=columns).collect()
    assert row["__hg_bad"].reason.startswith(reason)
    assert not row["__hg_deleted"]


def test_should_take_an_empty_record_of_a_stream_as_malformed(spark: SparkSession) -> None:
    [row] = decode(_keyed(spark, [("7", None)]), KEY, key=["id"]).collect()
    assert row["__hg_bad"].reason == "empty record"
    assert (row["__hg_bad"].key, row["__hg_bad"].value) == ("7", None)


def test_should_go_on_rightly_when_most_records_are_unusual(spark: SparkSession) -> None:
    # more misses than the fast reader is given, then plain records again
    texts = [b'{"a":%d,"b":"\\u0061"}' % n for n in range(1500)]
    texts += [b'{"a":%d,"b":"a"}' % n for n in range(1500, 2000)]
    frame = decode(raw(spark, texts, slices=1), "a BIGINT, b STRING")
    good = frame.where("b = 'a' AND a = __hg_position AND __hg_bad IS NULL")
    assert good.count() == 2000


def test_should_read_the_scan_without_a_copy_and_still_count_its_rows(
    spark: SparkSession, tmp_path: Path
) -> None:
    topic = TopicFiles(tmp_path / "t")
    topic.create(2)
    topic.append([Record(json.dumps({"a": n})) for n in range(1000)])
    seen: list[int] = []
    query = (
        decode(read_stream(spark, topic.path), "a BIGINT")
        .writeStream.foreachBatch(lambda f, n: seen.extend(r.a for r in f.collect()))
        .option("checkpointLocation", str(tmp_path / "ck"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert sorted(seen) == list(range(1000))
    assert query.recentProgress[0].numInputRows == 1000


def test_should_plan_two_uses_of_a_source_alike(spark: SparkSession) -> None:
    frame = decode(_keyed(spark, [("k", '{"a":1}')]), "a BIGINT").repartition(2, "a")
    both = frame.where("a > 0").unionAll(frame.where("a > 0"))
    assert both._jdf.queryExecution().executedPlan().toString().count("Decode") <= 2
    assert "ReusedExchange" in _executed(both)


def _executed(frame: DataFrame) -> str:
    spark = frame.sparkSession
    spark.conf.set("spark.sql.adaptive.enabled", "false")
    try:
        again = frame.select("*")
        return str(again._jdf.queryExecution().executedPlan().toString())
    finally:
        spark.conf.unset("spark.sql.adaptive.enabled")
