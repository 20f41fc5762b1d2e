"""The decode step on Protobuf, written by Google's own library for Python."""

from __future__ import annotations

import base64
import random
import struct
from datetime import UTC
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field
from pyspark.sql import Row, SparkSession

from headgate.base.errors import GraphError
from tests.kernel.kafka_records import decode, decoded, kafka, reasons
from tests.registry.server import RegistryServer, Schema

NUMBERS = {
    "int32": "INT", "int64": "BIGINT", "uint32": "BIGINT", "uint64": "DECIMAL(20,0)",
    "sint32": "INT", "sint64": "BIGINT", "fixed32": "BIGINT", "fixed64": "DECIMAL(20,0)",
    "sfixed32": "INT", "sfixed64": "BIGINT", "bool": "BOOLEAN", "string": "STRING",
    "bytes": "BINARY", "float": "FLOAT", "double": "DOUBLE",
}  # fmt: skip
OTHERS = (
    "state STRING, state_n INT, line STRUCT<sku: STRING, n: INT, line: STRUCT<sku: STRING>>, "
    "packed ARRAY<BIGINT>, words ARRAY<STRING>, lines ARRAY<STRUCT<n: INT>>, "
    "counts MAP<STRING, INT>, by_id MAP<BIGINT, STRUCT<sku: STRING>>, maybe INT, one STRING, "
    "other INT, at TIMESTAMP, wrapped STRING"
)
COLUMNS = ", ".join(f"v_{name} {kind}" for name, kind in NUMBERS.items()) + ", " + OTHERS


def _files() -> descriptor_pb2.FileDescriptorSet:
    """The types of a file, and those that it imports."""
    made = descriptor_pb2.FileDescriptorProto(name="shop.proto", package="shop", syntax="proto3")
    made.dependency.extend(["google/protobuf/timestamp.proto", "google/protobuf/wrappers.proto"])
    state = made.enum_type.add(name="State")
    for number, name in enumerate(("NEW", "SENT", "LOST")):
        state.value.add(name=name, number=number)
    line = made.message_type.add(name="Line")
    line.field.add(name="sku", number=1, type=Field.TYPE_STRING, label=1)
    line.field.add(name="n", number=2, type=Field.TYPE_INT32, label=1)
    line.field.add(name="line", number=3, type=Field.TYPE_MESSAGE, type_name=".shop.Line", label=1)
    order = made.message_type.add(name="Order")
    number = iter((3, 1, *range(4, 40), 7000))

    def field(name: str, kind: int, type_name: str = "", *, label: int = 1, **more: Any) -> None:
        named = {"type_name": type_name} if type_name else {}
        order.field.add(name=name, number=next(number), type=kind, label=label, **named, **more)

    def map_of(name: str, key: int, value: int, type_name: str = "") -> None:
        entry = order.nested_type.add(name=f"{name.title().replace('_', '')}Entry")
        entry.options.map_entry = True
        entry.field.add(name="key", number=1, type=key, label=1)
        named = {"type_name": type_name} if type_name else {}
        entry.field.add(name="value", number=2, type=value, label=1, **named)
        field(name, Field.TYPE_MESSAGE, f".shop.Order.{entry.name}", label=3)

    for name in NUMBERS:
        field(f"v_{name}", getattr(Field, f"TYPE_{name.upper()}"))
    field("state", Field.TYPE_ENUM, ".shop.State")
    field("state_n", Field.TYPE_ENUM, ".shop.State")
    field("line", Field.TYPE_MESSAGE, ".shop.Line")
    field("packed", Field.TYPE_SINT64, label=3)
    field("words", Field.TYPE_STRING, label=3)
    field("lines", Field.TYPE_MESSAGE, ".shop.Line", label=3)
    map_of("counts", Field.TYPE_STRING, Field.TYPE_INT32)
    map_of("by_id", Field.TYPE_INT64, Field.TYPE_MESSAGE, ".shop.Line")
    order.oneof_decl.add(name="choice")
    field("one", Field.TYPE_STRING, oneof_index=0)
    field("other", Field.TYPE_INT32, oneof_index=0)
    order.oneof_decl.add(name="_maybe")
    field("maybe", Field.TYPE_INT32, oneof_index=1, proto3_optional=True)
    field("at", Field.TYPE_MESSAGE, ".google.protobuf.Timestamp")
    field("wrapped", Field.TYPE_MESSAGE, ".google.protobuf.StringValue")
    field("nobody_asks", Field.TYPE_MESSAGE, ".shop.Order")
    old = descriptor_pb2.FileDescriptorProto(name="old.proto", package="old", syntax="proto2")
    thing = old.message_type.add(name="Thing")
    thing.field.add(name="a", number=1, type=Field.TYPE_INT32, label=1, default_value="7")
    thing.field.add(name="b", number=2, type=Field.TYPE_STRING, label=1)
    thing.field.add(name="c", number=3, type=Field.TYPE_INT32, label=3)  # not packed
    files = descriptor_pb2.FileDescriptorSet(file=[made, old])
    for other in (timestamp_pb2, wrappers_pb2):
        other.DESCRIPTOR.CopyToProto(files.file.add())
    return files


FILES = _files()
POOL = descriptor_pool.DescriptorPool()
for _file in reversed(FILES.file):
    POOL.Add(_file)
Order = message_factory.GetMessageClass(POOL.FindMessageTypeByName("shop.Order"))
Thing = message_factory.GetMessageClass(POOL.FindMessageTypeByName("old.Thing"))
HOW = {
    "format": "protobuf", "message": "shop.Order",
    "descriptor": base64.b64encode(FILES.SerializeToString()).decode(),
}  # fmt: skip
EDGES = {
    "int32": (-(1 << 31), (1 << 31) - 1), "int64": (-(1 << 63), (1 << 63) - 1),
    "uint32": (0, (1 << 32) - 1), "uint64": (0, (1 << 64) - 1),
}  # fmt: skip


def _number(dice: random.Random, name: str) -> Any:
    if name == "bool":
        return dice.random() < 0.5
    if name == "string":
        return dice.choice(("", "grüße", "a\0b"))
    if name == "bytes":
        return dice.randbytes(dice.randrange(4))
    if name == "double":
        return dice.choice((0.0, -1.5, 1e300, dice.random()))
    if name == "float":
        return struct.unpack("<f", struct.pack("<f", dice.uniform(-9, 9)))[0]
    sized = name.removeprefix("s").replace("fixed", "int")
    first, last = EDGES[("u" if name.startswith("fixed") else "") + sized]
    return dice.choice((0, 1, first, last, dice.randint(first, last)))


def _order(seed: int) -> Any:
    """A message in which each field may be missing."""
    dice = random.Random(seed)
    order = Order()
    for name in NUMBERS:
        if dice.random() < 0.7:
            setattr(order, f"v_{name}", _number(dice, name))
    order.state, order.state_n = dice.randrange(5), dice.randrange(5)
    if dice.random() < 0.5:
        order.line.sku = "x"
        order.line.line.sku = "y"
    order.packed.extend(_number(dice, "sint64") for _ in range(dice.randrange(4)))
    order.words.extend("ab" * n for n in range(dice.randrange(3)))
    for n in range(dice.randrange(3)):
        order.lines.add(n=n)
        order.counts[f"k{n}"] = n
        order.by_id[-n].sku = f"s{n}"
    if dice.random() < 0.5:
        order.maybe = dice.randrange(2)
        order.at.FromMicroseconds(dice.randint(-(10**15), 10**15))
        order.wrapped.value = "w" * dice.randrange(2)
    if dice.random() < 0.6:
        order.one = ""
    elif dice.random() < 0.6:
        order.other = 0
    order.nobody_asks.v_string = "not read"
    return order


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
    orders = [_order(seed) for seed in range(150)]
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
        data = bytearray(_order(seed).SerializeToString())
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
