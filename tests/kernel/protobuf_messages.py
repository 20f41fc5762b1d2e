"""Messages of Protobuf by Google's own library for Python, with fields of every kind."""

from __future__ import annotations

import base64
import random
import struct
from typing import Any

from google.protobuf import (
    descriptor_pb2,
    descriptor_pool,
    message_factory,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

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


def order_of(seed: int) -> Any:
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
