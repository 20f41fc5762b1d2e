"""The decode step on Protobuf, written by Google's own library for Python."""

from __future__ import annotations

import random
import struct
from datetime import UTC
from decimal import Decimal
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from headgate.base.errors import GraphError
from tests.kernel.kafka_records import decode, decoded, kafka, reasons
from tests.kernel.protobuf_messages import COLUMNS, HOW, NUMBERS, Order, Thing, order_of
from tests.registry.server import RegistryServer, Schema


def _truth(order: Any) -> dict[str, Any]:
    """What Google's library says that a message has."""

    def line(found: Any) -> Any:
        inner = Row(sku=found.line.sku) if found.HasField("line") else None
        return Row(sku=found.sku, n=found.n, line=inner)

    made: dict[str, Any] = {f"v_{name}": getattr(order, f"v_{name}") for name in NUMBERS}
    for name in ("uint64", "fixed64"):
        made[f"v_{name}"] = Decimal(made[f"v_{name}"])
    names = {0: "NEW", 1: "SENT", 2: "LOST"}
    at = order.at.ToDatetime(tzinfo=UTC).astimezone().replace(tzinfo=None)
    return made | {
        "state": names.get(order.state, str(order.state)), "state_n": order.state_n,
        "line": line(order.line) if order.HasField("line") else None,
        "packed": list(order.packed), "words": list(order.words),
        "lines": [Row(n=one.n) for one in order.lines], "counts": dict(order.counts),
        "by_id": {key: Row(sku=one.sku) for key, one in order.by_id.items()},
        "maybe": order.maybe if order.HasField("maybe") else None,
        "one": order.one if order.HasField("one") else None,
        "other": order.other if order.HasField("other") else None,
        "at": at if order.HasField("at") else None,
        "wrapped": order.wrapped.value if order.HasField("wrapped") else None,
    }  # fmt: skip


def test_should_read_what_googles_library_writes(spark: SparkSession) -> None:
    orders = [order_of(seed) for seed in range(150)]
    rows = decoded(spark, COLUMNS, *(one.SerializeToString() for one in orders), **HOW)
    assert reasons(rows) == [None] * len(orders)
    names = rows[0].__fields__[:-3]
    for row, order in zip(rows, orders, strict=True):
        assert {name: row[name] for name in names} == _truth(order)


def test_should_take_messages_apart_and_merge_them_as_protobuf_does(spark: SparkSession) -> None:
    first, then = Order(v_int32=1, words=["a"]), Order(v_int32=2, words=["b"])
    first.line.sku, then.line.n = "x", 5
    [row] = decoded(
        spark, "v_int32 INT, words ARRAY<STRING>, line STRUCT<sku: STRING, n: INT>",
        first.SerializeToString() + then.SerializeToString(), **HOW,
    )  # fmt: skip
    assert tuple(row)[:3] == (2, ["a", "b"], Row(sku="x", n=5))


def test_should_give_the_defaults_of_proto2(spark: SparkSession) -> None:
    values = [Thing(), Thing(a=0, b="", c=[3, 4])]
    rows = decoded(
        spark, "a INT, b STRING, c ARRAY<INT>", *(one.SerializeToString() for one in values),
        **{**HOW, "message": "old.Thing"},
    )  # fmt: skip
    assert [tuple(row)[:3] for row in rows] == [(7, None, []), (0, "", [3, 4])]


def test_should_refuse_bytes_that_are_no_message(spark: SparkSession) -> None:
    whole = Order(v_int32=5, v_string="grüße", packed=[1, 1 << 40]).SerializeToString()
    cases = {
        b"\x00": "a field has no number",
        b"\x17": "a field has a wire type that does not exist",
        b"\xff" * 11: "a number is too long",
        b"\x1a\x00": "the field 'v_int32' is written as another type",
        whole[:-1]: "it ends too early",
    }
    columns = "v_int32 INT, v_string STRING, packed ARRAY<BIGINT>"
    rows = decoded(spark, columns, whole, *cases, whole, **HOW)
    assert reasons(rows) == [None, *(f"not valid Protobuf: {why}" for why in cases.values()), None]
    # whatever is cut off or turned around, nothing but a row or a reason comes of it
    dice = random.Random(7)
    broken = []
    for seed in range(200):
        data = bytearray(order_of(seed).SerializeToString())
        for _ in range(dice.randrange(1, 4)):
            data[dice.randrange(len(data))] = dice.randrange(256)
        broken.append(bytes(data))
    assert len(decoded(spark, COLUMNS, *broken, **HOW)) == len(broken)


def test_should_read_protobuf_behind_an_id(spark: SparkSession) -> None:
    with RegistryServer() as registry:
        proto = registry.register("orders-value", Schema("PROTOBUF", 'syntax = "proto3";'))
        avro = registry.add("others-value", '"int"')
        body = Order(v_int32=5).SerializeToString()
        values = [
            struct.pack(">bI", 0, id) + indexes + body
            for id, indexes in (
                (proto, b"\x00"), (proto, b"\x04\x02\x00"), (avro, b"\x00"), (9, b"")
            )
        ]  # fmt: skip
        rows = decoded(spark, "v_int32 INT", *values, registry=registry.access, **HOW)
        assert [row.v_int32 for row in rows] == [5, 5, None, None]
        assert reasons(rows) == [
            None, None, f"schema {avro} of the registry is of type AVRO, not PROTOBUF",
            "the registry has no schema with the id 9",
        ]  # fmt: skip


@pytest.mark.parametrize(
    ("columns", "message", "sentence"),
    [
        (
            "z INT",
            "shop.Line",
            "no field for the column 'z', only 'sku', 'n', 'line'",
        ),
        ("n STRING", "shop.Line", "the field 'n' is not read as STRING"),
        ("words STRING", "shop.Order", "the field 'words' is not read as STRING"),
        ("n INT", "shop.Nothing", "the descriptor has no message shop.Nothing, only google"),
    ],
)
def test_should_refuse_columns_that_the_message_does_not_have(
    spark: SparkSession, columns: str, message: str, sentence: str
) -> None:
    with pytest.raises(GraphError, match=sentence):
        decode(kafka(spark), columns, **{**HOW, "message": message})
