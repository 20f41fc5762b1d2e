"""A schema that changes while its topic lives on: each change has the right rows, or a sentence."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from tests.kernel.kafka_records import decoded, reasons
from tests.registry.records import avro, framed, record, resolved
from tests.registry.server import RegistryServer

STATE = {"type": "enum", "name": "State", "symbols": ["NEW", "SENT"]}
WIDER_ENUM = {"type": "enum", "name": "State", "symbols": ["NEW", "SENT", "LOST"]}
ORDER = record("Order", ("id", "long"), ("user", "string"))


@dataclass(frozen=True)
class Change:
    """What was written first, and what is written now.

    `reader` is the job's avro_schema, without which it goes by the columns. `sentences` are the
    ends of the reasons of records that are malformed, by their number; the others have rows.
    """

    old: Any
    new: Any
    columns: str
    reader: Any
    first: dict[str, Any]
    then: list[dict[str, Any]]
    sentences: dict[int, str] = field(default_factory=dict)


WITH_PRICE = record("Order", ("id", "long"), ("user", "string"), ("price", "double", 1.5))
LINE = record("Line", ("sku", "string"))
LINE_2 = record("Line", ("sku", "string"), ("n", "int", 1))
FIRST = {"id": 1 << 40, "user": "ann"}
MISFIT = "not valid Avro: it does not resolve into the reader's schema: "

CHANGES = {
    "a field is added with a default": Change(
        ORDER, WITH_PRICE, "id BIGINT, user STRING, price DOUBLE", WITH_PRICE,
        FIRST, [{"id": 2, "user": "bob", "price": 9.25}],
    ),
    "a field is added without a default": Change(
        ORDER, record("Order", ("id", "long"), ("user", "string"), ("price", "double")),
        "id BIGINT, user STRING, price DOUBLE",
        record("Order", ("id", "long"), ("user", "string"), ("price", "double")),
        FIRST, [{"id": 2, "user": "bob", "price": 9.25}],
        {0: MISFIT + "reader field missing default value: price (/fields/2)"},
    ),
    "a field is removed that has a default": Change(
        WITH_PRICE, ORDER, "id BIGINT, user STRING, price DOUBLE", WITH_PRICE,
        {**FIRST, "price": 3.0}, [{"id": 2, "user": "bob"}],
    ),
    "a number becomes wider": Change(
        record("Order", ("id", "int"), ("user", "string")), ORDER, "id BIGINT, user STRING", ORDER,
        {"id": -7, "user": "ann"}, [{"id": 1 << 40, "user": "bob"}],
    ),
    "a number becomes wider than the reader's": Change(
        record("Order", ("id", "int"), ("user", "string")), ORDER, "id INT, user STRING",
        record("Order", ("id", "int"), ("user", "string")),
        {"id": -7, "user": "ann"}, [{"id": 3, "user": "bob"}],
        {1: MISFIT + "type mismatch: reader type: INT not compatible with writer type: LONG"
            " (/fields/0/type)"},
    ),
    "a field is renamed and has an alias": Change(
        ORDER, record("Order", ("id", "long"), ("buyer", "string")), "id BIGINT, buyer STRING",
        {**ORDER, "fields": [ORDER["fields"][0],
                             {"name": "buyer", "type": "string", "aliases": ["user"]}]},
        FIRST, [{"id": 2, "buyer": "bob"}],
    ),
    "a symbol is added that the reader replaces": Change(
        record("Order", ("id", "long"), ("state", STATE)),
        record("Order", ("id", "long"), ("state", WIDER_ENUM)), "id BIGINT, state STRING",
        record("Order", ("id", "long"), ("state", {**STATE, "default": "NEW"})),
        {"id": 1, "state": "SENT"}, [{"id": 2, "state": "LOST"}, {"id": 3, "state": "SENT"}],
    ),
    "a symbol is added that the reader does not know": Change(
        record("Order", ("id", "long"), ("state", STATE)),
        record("Order", ("id", "long"), ("state", WIDER_ENUM)), "id BIGINT, state STRING",
        record("Order", ("id", "long"), ("state", STATE)),
        {"id": 1, "state": "SENT"}, [{"id": 2, "state": "LOST"}, {"id": 3, "state": "SENT"}],
        {1: MISFIT + "missing enum symbols: [LOST] (/fields/1/type/symbols)"},
    ),
    "a field may be null from now on": Change(
        ORDER, record("Order", ("id", "long"), ("user", ["null", "string"])),
        "id BIGINT, user STRING", record("Order", ("id", "long"), ("user", ["null", "string"])),
        FIRST, [{"id": 2, "user": None}, {"id": 3, "user": "bob"}],
    ),
    "a record inside gets a field": Change(
        record("Order", ("id", "long"), ("lines", {"type": "array", "items": LINE})),
        record("Order", ("id", "long"), ("lines", {"type": "array", "items": LINE_2})),
        "id BIGINT, lines ARRAY<STRUCT<sku: STRING, n: INT>>",
        record("Order", ("id", "long"), ("lines", {"type": "array", "items": LINE_2})),
        {"id": 1, "lines": [{"sku": "a"}, {"sku": "b"}]},
        [{"id": 2, "lines": [{"sku": "c", "n": 4}]}],
    ),
    "a text becomes a number": Change(
        ORDER, record("Order", ("id", "long"), ("user", "long")), "id BIGINT, user STRING", ORDER,
        FIRST, [{"id": 2, "user": 5}],
        {1: MISFIT + "type mismatch: reader type: STRING not compatible with writer type: LONG"
            " (/fields/1/type)"},
    ),
    "fields come and go, and the job goes by its columns": Change(
        WITH_PRICE, record("Order", ("note", "string"), ("id", "long"), ("user", "string")),
        "id BIGINT, price DOUBLE, note STRING", None,
        {**FIRST, "price": 3.0}, [{"id": 2, "user": "bob", "note": "x"}],
    ),
    "a text becomes a number, and the job goes by its columns": Change(
        ORDER, record("Order", ("id", "long"), ("user", "long")), "id BIGINT, user STRING", None,
        FIRST, [{"id": 2, "user": 5}],
        {1: "schema 2 of the registry does not fit the columns: Cannot convert Avro field 'user' to"
            " SQL field 'user' because schema is incompatible (avroType = \"long\","
            " sqlType = STRING)"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CHANGES)
def test_should_read_what_was_written_before_and_after(
    spark: SparkSession, registry: RegistryServer, name: str
) -> None:
    change = CHANGES[name]
    old, new = (registry.add("orders-value", schema) for schema in (change.old, change.new))
    written = [(old, change.old, change.first), *((new, change.new, one) for one in change.then)]
    written.append(written[0])  # what is left of one record must not get into the next
    bodies = [(id, schema, avro(schema, value)) for id, schema, value in written]
    rows = decoded(
        spark, change.columns, *(framed(id, body) for id, _, body in bodies), format="avro",
        registry=registry.access,
        avro_schema=None if change.reader is None else json.dumps(change.reader),
    )  # fmt: skip
    last = len(bodies) - 1
    bad = {**change.sentences, **({last: change.sentences[0]} if 0 in change.sentences else {})}
    assert reasons(rows) == [bad.get(n) for n in range(len(bodies))]
    for n, (_, schema, body) in enumerate(bodies):
        if n not in bad:
            reader = schema if change.reader is None else change.reader
            truth = resolved(body, schema, reader)
            columns = rows[n].__fields__[:-3]
            assert {c: _plain(rows[n][c]) for c in columns} == {c: truth.get(c) for c in columns}


def _plain(value: Any) -> Any:
    if isinstance(value, Row):
        return value.asDict(recursive=True)
    return [_plain(one) for one in value] if isinstance(value, list) else value
