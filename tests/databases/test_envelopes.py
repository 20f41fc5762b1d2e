"""Debezium's envelopes as rows and deletions: as JSON, as JSON beside its schema, and as Avro."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.kernel.kafka_records import decode, kafka
from tests.registry.records import avro, framed, record
from tests.registry.server import RegistryServer

COLUMNS = "id BIGINT, name STRING, city STRING"
VALUE = record("Value", ("id", "long"), ("name", ["null", "string"], None))
ENVELOPE = record(
    "Envelope", ("before", ["null", VALUE], None), ("after", ["null", "Value"], None),
    ("op", "string"), ("ts_ms", ["null", "long"], None),
)  # fmt: skip
KEY = record("Key", ("id", "long"))


class Json:
    """One JSON object a record."""

    settings = {"format": "debezium-json"}  # noqa: RUF012

    def value(self, envelope: dict[str, Any]) -> bytes:
        return json.dumps(envelope).encode()

    def key(self, id: int) -> bytes:
        return self.value({"id": id})


class Beside(Json):
    """The same as the payload beside its schema."""

    def value(self, envelope: dict[str, Any]) -> bytes:
        return json.dumps({"schema": {"type": "struct"}, "payload": envelope}).encode()


class Avro:
    """Avro, whose schemas a registry keeps."""

    def __init__(self, registry: RegistryServer) -> None:
        self._value = registry.add("users-value", ENVELOPE)
        self._key = registry.add("users-key", KEY)
        self.settings = {"format": "debezium-avro", "registry": registry.access}

    def value(self, envelope: dict[str, Any]) -> bytes:
        return framed(self._value, avro(ENVELOPE, envelope))

    def key(self, id: int) -> bytes:
        return framed(self._key, avro(KEY, {"id": id}))


@pytest.fixture(params=["json", "beside", "avro"])
def form(request: pytest.FixtureRequest) -> Iterator[Any]:
    with RegistryServer() as registry:
        yield {"json": Json, "beside": Beside}.get(request.param, lambda: Avro(registry))()


def _row(id: int, name: str | None) -> dict[str, Any]:
    return {"id": id, "name": name}


def test_should_read_changes_and_deletions(spark: SparkSession, form: Any) -> None:
    def value(op: str, before: Any = None, after: Any = None) -> bytes:
        data: bytes = form.value({"before": before, "after": after, "op": op, "ts_ms": 5})
        return data

    gone = "the table was emptied (op 't'): there is no key whose rows could be deleted"
    unsent = "__debezium_unavailable_value"
    unknown = (
        "the database did not send the column 'name', as it did not change: "
        "set REPLICA IDENTITY FULL for the table"
    )
    cases: list[tuple[bytes | None, bytes | None, Any]] = [
        (form.key(1), value("r", after=_row(1, "ann")), (1, "ann", False)),
        (form.key(2), value("c", after=_row(2, None)), (2, None, False)),
        (form.key(1), value("u", _row(1, "ann"), _row(1, "bob")), (1, "bob", False)),
        (form.key(1), value("d", _row(1, "bob")), (1, None, True)),
        (form.key(1), None, (1, None, True)),  # the tombstone behind it
        (form.key(3), value("d"), (3, None, True)),  # the key alone says which row
        (form.key(4), value("u", _row(4, "x")), "a change of op 'u' has no row in 'after'"),
        (form.key(5), value("t"), gone),
        (form.key(6), value("m"), "not Debezium's envelope: op must be c, r, u, d or t, not 'm'"),
        (form.key(8), value("u", after=_row(8, unsent)), unknown),
        (form.key(8), value("d", _row(8, unsent)), (8, None, True)),  # only its key counts
        (None, value("d"), "a deletion without a key"),
        (None, None, "a deletion without a key"),
        (form.key(7), value("c", after=_row(7, "eve")), (7, "eve", False)),
    ]
    frame = kafka(spark, *[(key, data) for key, data, _ in cases])
    rows = decode(frame, COLUMNS, table=True, key_columns=["id"], **form.settings).collect()
    found = [
        (row.id, row.name, row["__hg_deleted"])
        if row["__hg_bad"] is None
        else row["__hg_bad"].reason
        for row in rows
    ]
    assert found == [expected for _, _, expected in cases]
    assert {row.city for row in rows} == {None}  # a column that the database has no more


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        (b"1", b'{"id": 1}', "not Debezium's envelope: it has no 'op'"),
        (b"1", b'{"op": "c", "after": {"id": "x"}}', "field 'id' is not a BIGINT: \"x\""),
        (b"1", b"{", "not valid JSON: Unexpected end-of-input"),
        (b"1", None, "the key of a deletion: not a JSON object"),
        (b'{"name": "x"}', None, "the key of a deletion has no 'id'"),
        (b"\xff", None, "the key of a deletion: not valid UTF-8"),
    ],
)
def test_should_say_what_is_no_envelope(
    spark: SparkSession, key: bytes, value: bytes | None, reason: str
) -> None:
    frame = kafka(spark, (key, value))
    [row] = decode(frame, COLUMNS, table=True, key_columns=["id"], format="debezium-json").collect()
    assert row["__hg_bad"].reason.startswith(reason)
