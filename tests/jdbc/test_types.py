"""Values of every type arrive as they are, in tables that the sink makes and in those of others."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from tests.jdbc.server import Postgres
from tests.jdbc.shop import Shop

ODD = [
    "",
    "tab\there",
    "line\nbreak\r",
    "back\\slash",
    "\\N",
    '"quoted"',
    "{x,y}",
    "NULL",
    "ö 🐟",
    "\\.",
    "a,b",
]
COLUMNS = {
    "yes": ("BOOLEAN", "boolean"),
    "tiny": ("TINYINT", "smallint"),
    "small": ("SMALLINT", "smallint"),
    "plain": ("INT", "integer"),
    "big": ("BIGINT", "bigint"),
    "half": ("FLOAT", "real"),
    "whole": ("DOUBLE", "double precision"),
    "price": ("DECIMAL(18,3)", "numeric(18,3)"),
    "money": ("DECIMAL(20,4)", "numeric(20,4)"),
    "text": ("STRING", "text"),
    "bytes": ("BINARY", "bytea"),
    "day": ("DATE", "date"),
    "at": ("TIMESTAMP", "timestamp with time zone"),
    "clock": ("TIMESTAMP_NTZ", "timestamp without time zone"),
    "numbers": ("ARRAY<BIGINT>", "bigint[]"),
    "words": ("ARRAY<STRING>", "text[]"),
    "grid": ("ARRAY<ARRAY<DOUBLE>>", "double precision[]"),
    "times": ("ARRAY<TIMESTAMP>", "timestamp with time zone[]"),
    "one": ("STRUCT<a: BIGINT, b: STRING>", "jsonb"),
    "named": ("MAP<STRING, BIGINT>", "jsonb"),
    "many": ("ARRAY<STRUCT<a: BIGINT>>", "jsonb"),
}
SCHEMA = ", ".join(
    f"{name} {kind}" for name, (kind, _) in {"id": ("BIGINT", ""), **COLUMNS}.items()
)


def rows() -> list[dict[str, Any]]:
    """Rows with values at the edges, and one without any."""
    full = {
        "yes": True, "tiny": -128, "small": 32767, "plain": -(2**31), "big": -(2**63), "half": 1.5,
        "whole": 1e-300, "price": "-999999999999999.001", "money": "1234567890123456.7891",
        "text": "x", "bytes": b"\x00\xff\\\n",
        "day": "2024-02-29", "at": "2024-02-29T23:59:59.123456Z", "clock": "1969-12-31T23:59:59.5",
        "numbers": [1, None, -3], "words": ODD, "grid": [[1.5, -0.25], [3.0, 4e20]],
        "times": ["2024-02-29T12:00:00Z", None], "one": {"a": 5, "b": 'say "\\" \t'},
        "named": {"k\\": 1, "two words": 2}, "many": [{"a": 1}, {"a": 2}],
    }  # fmt: skip
    made: list[dict[str, Any]] = [{"id": 0, **full}, {"id": 7}]
    for number, text in enumerate(ODD):
        made.append({"id": 100 + number * 13, "text": text, "words": [], "named": {}, "yes": False})
    made.append({"id": 999, "day": "0001-01-01", "at": "0001-01-01T00:00:00Z", "whole": 1e22,
                 "big": 2**63 - 1, "money": "-0.0001", "price": "-0.050",
                 "numbers": []})  # fmt: skip
    return made


def record(row: dict[str, Any]) -> dict[str, Any]:
    value = row.get("bytes")
    return row if value is None else {**row, "bytes": b64encode(value).decode()}


def stored(row: dict[str, Any]) -> dict[str, Any]:
    """A row as to_jsonb shows it, with UTC as the session's zone."""
    made: dict[str, Any] = dict.fromkeys(("id", *COLUMNS)) | row
    if made["bytes"] is not None:
        made["bytes"] = "\\x" + made["bytes"].hex()
    for name in ("money", "price"):
        if made[name] is not None:
            made[name] = float(made[name])
    if made["at"] is not None:
        made["at"] = made["at"].replace("Z", "+00:00")
    if made["times"] is not None:
        made["times"] = [t and t.replace("Z", "+00:00") for t in made["times"]]
    return made


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path, postgres: Postgres) -> Shop:
    return Shop(spark, tmp_path, postgres)


def by_id(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: int(row["id"]))


def test_all_types_go_round_in_both_modes(shop: Shop) -> None:
    every, last = shop.table(""), shop.table("")
    sinks = [shop.sink(every, create=True), shop.sink(last, mode="upsert", key=["id"], create=True)]
    shop.send([record(row) for row in rows()], by="id")
    job = shop.to(*sinks, schema=SCHEMA)
    shop.go(job)
    for table in (every, last):
        kinds = shop.server.rows(
            "SELECT attname, format_type(atttypid, atttypmod) FROM pg_attribute"
            f" WHERE attrelid = '{table}'::regclass AND attnum > 0 ORDER BY attnum"
        )
        assert kinds == [("id", "bigint"), *((name, kind) for name, (_, kind) in COLUMNS.items())]
        assert by_id(shop.server.records(table)) == by_id([stored(row) for row in rows()])
    primary = (
        f"SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE conrelid = '{last}'::regclass"
    )
    assert ("PRIMARY KEY (id)",) in shop.server.rows(primary)
    exact = shop.server.rows(f"SELECT money, price, whole FROM {every} WHERE id = 0")
    assert exact == [("1234567890123456.7891", "-999999999999999.001", "1e-300")]


def test_a_table_of_others_may_have_other_types_that_hold_the_values(shop: Shop) -> None:
    table = shop.table(
        "id numeric, name varchar(20) NOT NULL, mark uuid, doc jsonb, list json, n real,"
        " made timestamptz DEFAULT now(), number bigint GENERATED ALWAYS AS IDENTITY"
    )
    mark = "0e3a1b52-6a3f-4d3b-9b53-2a3a1b526a3f"
    sent = [{"id": 1, "name": "a", "mark": mark, "doc": '{"x": [1, 2]}', "list": [1, 2], "n": 3}]
    shop.send(sent, by="id")
    schema = "id BIGINT, name STRING, mark STRING, doc STRING, list ARRAY<INT>, n INT"
    shop.go(shop.to(shop.sink(f"public.{table}"), schema=schema))
    (row,) = shop.server.records(table)
    assert row.pop("made") and row.pop("number") == 1
    assert row == {**sent[0], "doc": json.loads(str(sent[0]["doc"]))}


def test_numbers_that_are_none_arrive_as_such(shop: Shop) -> None:
    table = shop.table("id bigint, x double precision, y real")
    shop.send([{"id": 1, "user": "1"}, {"id": 2, "user": "-1"}, {"id": 3, "user": "0"}], by="id")

    def build(rows: hg.SourceStream) -> None:
        made = rows.select("id", "CASE id WHEN 1 THEN double('Infinity') WHEN 2 THEN"
                           " double('-Infinity') ELSE double('NaN') END AS x")  # fmt: skip
        made.with_columns(y="float(x)").sink("out", shop.sink(table))

    shop.go(shop.job(build))
    found = shop.server.rows(f"SELECT x, y FROM {table} ORDER BY id")
    assert found == [("Infinity", "Infinity"), ("-Infinity", "-Infinity"), ("NaN", "NaN")]
