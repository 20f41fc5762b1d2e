"""The decode step on lines of CSV, and on JSON of which a part is left as it is."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

from pyspark.sql import SparkSession

from tests.kernel.kafka_records import decoded, reasons


def test_should_read_lines_of_csv(spark: SparkSession) -> None:
    rows = decoded(
        spark, "id BIGINT, name STRING, at TIMESTAMP, price DECIMAL(9,2)",
        b'7,"ann, ""b""\xc3\xbc",2024-02-29 12:30:15,1.50', b"8,,,", b"9,x", b"x,a,,", b"",
        b"1,\xff,,", b"10,y,2024-02-29 12:30:15,-3.25", format="csv",
    )  # fmt: skip
    when = datetime(2024, 2, 29, 12, 30, 15)
    assert [tuple(row)[:4] for row in rows] == [
        (7, 'ann, "b"ü', when, Decimal("1.50")), (8, None, None, None), *[(None,) * 4] * 4,
        (10, "y", when, Decimal("-3.25")),
    ]  # fmt: skip
    assert reasons(rows) == [
        None, None, "not a line of 4 fields: it has 2", 'not valid CSV: For input string: "x"',
        "empty record", "not valid UTF-8", None,
    ]  # fmt: skip


def test_should_read_csv_as_its_options_say(spark: SparkSession) -> None:
    options = {"sep": ";", "quote": "'", "nullValue": "-", "dateFormat": "dd.MM.yyyy"}
    [row] = decoded(
        spark, "a STRING, b DATE, c INT", b"'x;y';29.02.2024;-", format="csv", csv=options
    )
    assert tuple(row)[:3] == ("x;y", date(2024, 2, 29), None)


def test_should_refuse_values_of_several_lines_of_csv(spark: SparkSession) -> None:
    rows = decoded(
        spark, "id BIGINT, name STRING",
        b"1,a\n2,b", b"3,c\n", b"4,d\r\n", b'5,"x\ny"', b'6,"x\ny"\n7,z\n', b"8,e\r\n9,f\r\n",
        b"\n", b"," * 30_000, b"10,g", format="csv",
    )  # fmt: skip
    several = "more than one line"
    assert [reason and reason.partition(":")[0] for reason in reasons(rows)] == [
        several, None, None, None, several, several, "empty record", "not valid CSV", None,
    ]  # fmt: skip
    assert [(row.id, row.name) for row in rows if row["__hg_bad"] is None] == [
        (3, "c"), (4, "d"), (5, "x\ny"), (10, "g"),
    ]  # fmt: skip


def test_should_keep_the_json_of_a_field_as_it_is(spark: SparkSession) -> None:
    texts = ['{ "a" : [1.50,{}] }', '"x\\u00e9"', "-1.50e+3", "null", "[]", "true"]
    values = [f'{{"n": {n}, "t" : {t} , "z": {{"t": 5}}}}'.encode() for n, t in enumerate(texts)]
    rows = decoded(
        spark, "n INT, t STRING, u STRING", *values, b'{"n": 7, "u":{}}', b'{"t": {"a": }', b"[]",
        format="json", json_text=["t", "u"],
    )  # fmt: skip
    good = rows[:7]
    assert [row.t for row in good] == [*texts, None]
    assert [(row.n, row.u) for row in good] == [*((n, None) for n in range(6)), (7, "{}")]
    assert [reason is None for reason in reasons(rows)] == [True] * 7 + [False] * 2
