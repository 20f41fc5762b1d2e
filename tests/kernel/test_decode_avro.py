"""The decode step on Avro values: what it reads, what is malformed, which schemas it refuses."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import pytest
from pyspark.errors import IllegalArgumentException
from pyspark.sql import Row, SparkSession

from headgate.base.errors import GraphError
from tests.kernel import avro_bytes as avro
from tests.kernel.kafka_records import WHEN, decode, decoded, kafka, reasons

ORDER = json.dumps({
    "type": "record", "name": "Order", "namespace": "shop", "fields": [
        {"name": "id", "type": "long"},
        {"name": "ignored", "type": {"type": "array", "items": "string"}},
        {"name": "user", "type": ["null", "string"]},
        {"name": "price", "type": "double"},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "paid", "type": {
            "type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "SENT"]}},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {"name": "lines", "type": {"type": "array", "items": {
            "type": "record", "name": "Line", "fields": [
                {"name": "sku", "type": "string"}, {"name": "n", "type": "int"}]}}},
    ],
})  # fmt: skip
ORDER_COLUMNS = (
    "lines ARRAY<STRUCT<sku: STRING, n: INT>>, id BIGINT, user STRING, price DOUBLE, at TIMESTAMP, "
    "day DATE, paid DECIMAL(9,2), state STRING, tags MAP<STRING, INT>"
)
WHEN_MILLIS = round(WHEN.timestamp() * 1000)


def _order(user: str | None) -> bytes:
    return b"".join([
        avro.long(-(1 << 62)), avro.array(avro.text("not"), avro.text("used")),
        avro.long(0) if user is None else avro.long(1) + avro.text(user),
        avro.double(0.1), avro.long(WHEN_MILLIS), avro.long(-1),
        avro.raw((-12345).to_bytes(3, "big", signed=True)), avro.long(1),
        avro.array(avro.text("a") + avro.long(1)), avro.array(avro.text("x") + avro.long(-7)),
    ])  # fmt: skip


@pytest.mark.parametrize(
    ("framing", "frame"), [("none", b""), ("confluent", b"\x00\x00\x01\x02\x03")]
)
def test_should_read_avro(spark: SparkSession, framing: str, frame: bytes) -> None:
    rows = decoded(
        spark, ORDER_COLUMNS, frame + _order("grüße"), frame + _order(None), format="avro",
        avro_schema=ORDER, avro_framing=framing,
    )  # fmt: skip
    for row, user in zip(rows, ["grüße", None], strict=True):
        assert row["__hg_bad"] is None
        assert tuple(row)[:4] == ([Row(sku="x", n=-7)], -(1 << 62), user, 0.1)
        assert row.at == WHEN
        assert (row.day, row.paid) == (date(1969, 12, 31), Decimal("-123.45"))
        assert (row.state, row.tags) == ("SENT", {"a": 1})


def test_should_derive_the_avro_schema_from_the_columns(spark: SparkSession) -> None:
    value = avro.long(5) + avro.long(0) + avro.text("x")
    [row] = decoded(spark, "a INT NOT NULL, b STRING", value, format="avro")
    assert (row.a, row.b) == (5, "x")
    [row] = decoded(spark, "a INT NOT NULL, b STRING", avro.long(5) + avro.long(1), format="avro")
    assert (row.a, row.b) == (5, None)


SMALL = json.dumps({
    "type": "record", "name": "S", "fields": [
        {"name": "n", "type": "long"}, {"name": "s", "type": "string"},
        {"name": "u", "type": ["null", "boolean"]},
        {"name": "l", "type": {"type": "array", "items": "string"}},
    ],
})  # fmt: skip
SMALL_COLUMNS = "n BIGINT, s STRING, u BOOLEAN, l ARRAY<STRING>"
GOOD = avro.long(300) + avro.text("ab") + avro.long(1) + b"\x01" + avro.array(avro.text("c"))


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "empty record"),
        (b"", "not valid Avro: it ends too early"),
        (GOOD + b"\x00", "not valid Avro: 1 bytes are left over"),
        (b'{"n":1}', "not valid Avro: it ends too early"),
        (b"\xff" * 10, "not valid Avro: a number is too long"),
        (avro.long(1) + avro.long(-3), "not valid Avro: a length is negative"),
        (avro.long(1) + avro.long((1 << 31) - 9), "not valid Avro: it ends too early"),
        (avro.long(1) + avro.raw(b"\xff"), "not valid Avro: a text is not valid UTF-8"),
        (
            avro.long(1) + avro.text("") + avro.long(2),
            "not valid Avro: no branch of a union or symbol of an enum has its number",
        ),
        (avro.long(1) + avro.text("") + avro.long(1) + b"\x02", "not valid Avro: 2 is no boolean"),
        (
            avro.long(1) + avro.text("") + avro.long(0) + avro.long(1 << 30),
            "not valid Avro: it ends too early",
        ),
        (
            avro.long(1) + avro.text("") + avro.long(0) + avro.long(-(1 << 63)),
            "not valid Avro: it ends too early",
        ),
    ],
)
def test_should_take_bytes_that_are_not_avro_as_malformed(
    spark: SparkSession, value: bytes | None, reason: str
) -> None:
    # between two good ones: what is left of a bad record must not get into the next
    rows = decoded(
        spark, SMALL_COLUMNS, GOOD, value, GOOD, format="avro", avro_schema=SMALL
    )  # fmt: skip
    assert reasons(rows) == [None, reason, None]
    assert [tuple(r)[:4] for r in (rows[0], rows[2])] == [(300, "ab", True, ["c"])] * 2
    assert tuple(rows[1])[:4] == (None, None, None, None)


def test_should_refuse_every_cut_of_an_avro_value(spark: SparkSession) -> None:
    cuts = [GOOD[:n] for n in range(len(GOOD))]
    rows = decoded(spark, SMALL_COLUMNS, *cuts, format="avro", avro_schema=SMALL)
    assert reasons(rows) == ["not valid Avro: it ends too early"] * len(cuts)


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x01\x00\x00\x00\x07" + GOOD, "the first byte is 0x01, not 0x00"),
        (b"\x00\x00\x00", "3 bytes are less than its 5"),
        (b"", "0 bytes are less than its 5"),
    ],
)
def test_should_refuse_another_framing(spark: SparkSession, value: bytes, reason: str) -> None:
    [row] = decoded(
        spark, SMALL_COLUMNS, value, format="avro", avro_schema=SMALL, avro_framing="confluent"
    )
    assert row["__hg_bad"].reason == f"not in Confluent's framing: {reason}"


def test_should_delete_from_an_avro_table(spark: SparkSession) -> None:
    frame = kafka(spark, (b"7", None))
    [row] = decode(
        frame, "n BIGINT, s STRING", format="avro", avro_schema=SMALL, table=True, key_columns=["n"]
    ).collect()
    assert (row.n, row.s, row["__hg_deleted"]) == (7, None, True)


@pytest.mark.parametrize(
    ("schema", "columns", "sentence"),
    [
        ("{", "n BIGINT", "the Avro schema is not valid: "),
        ('{"type":"record","name":"S"}', "n BIGINT", "the Avro schema is not valid: "),
        ('"long"', "n BIGINT", "the Avro schema is of type long, and a record is needed"),
        (SMALL, "n BIGINT, z INT", "no field for the column 'z', only 'n', 's', 'u', 'l'"),
        (SMALL, "n STRING", "the Avro schema does not fit the columns: .*'n'"),
        (SMALL, "l ARRAY<INT>", "the Avro schema does not fit the columns: .*'l.element'"),
        (None, "`a b` INT", "no Avro schema can be derived from the columns: "),
    ],
)
def test_should_refuse_an_avro_schema_that_cannot_work_before_anything_runs(
    spark: SparkSession, schema: str | None, columns: str, sentence: str
) -> None:
    with pytest.raises(GraphError, match=sentence) as error:
        decode(kafka(spark), columns, format="avro", avro_schema=schema)
    assert error.value.step == "orders"
    assert isinstance(error.value.__cause__, IllegalArgumentException)
    assert '"code":"AVRO_SCHEMA"' in str(error.value.__cause__)


def test_should_refuse_a_framing_that_is_none(spark: SparkSession) -> None:
    with pytest.raises(IllegalArgumentException, match="none or confluent, not glue"):
        decode(kafka(spark), "n INT", format="avro", avro_framing="glue")
