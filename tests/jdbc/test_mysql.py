"""What MySQL and MariaDB do otherwise: types, tables that do not fit, numbers of errors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate import jvm
from headgate.base.errors import HeadgateError
from tests.jdbc.server import Server
from tests.jdbc.shop import Shop
from tests.jdbc.test_document import jvm_object
from tests.jdbc.test_types import by_id, record, rows

ODD = [
    "",
    "tab\there",
    "back\\slash",
    "'quoted'",
    '"',
    "\\'",
    "%_",
    "ö 🐟",
    "\x00zero",
    "end\\",
    "),(",
]
COLUMNS = {
    "yes": ("BOOLEAN", "tinyint"),
    "tiny": ("TINYINT", "tinyint"),
    "small": ("SMALLINT", "smallint"),
    "plain": ("INT", "int"),
    "big": ("BIGINT", "bigint"),
    "half": ("FLOAT", "float"),
    "whole": ("DOUBLE", "double"),
    "price": ("DECIMAL(18,3)", "decimal(18,3)"),
    "money": ("DECIMAL(20,4)", "decimal(20,4)"),
    "text": ("STRING", "longtext"),
    "bytes": ("BINARY", "longblob"),
    "day": ("DATE", "date"),
    "at": ("TIMESTAMP", "datetime(6)"),
    "clock": ("TIMESTAMP_NTZ", "datetime(6)"),
    "numbers": ("ARRAY<BIGINT>", "json"),
    "words": ("ARRAY<STRING>", "json"),
    "grid": ("ARRAY<ARRAY<DOUBLE>>", "json"),
    "times": ("ARRAY<TIMESTAMP>", "json"),
    "one": ("STRUCT<a: BIGINT, b: STRING>", "json"),
    "named": ("MAP<STRING, BIGINT>", "json"),
    "many": ("ARRAY<STRUCT<a: BIGINT>>", "json"),
}
DOCUMENTS = [name for name, (_, made) in COLUMNS.items() if made == "json"]
SCHEMA = "id BIGINT, " + ", ".join(f"{name} {kind}" for name, (kind, _) in COLUMNS.items())


@pytest.fixture(params=["mariadb", "mysql"])
def shop(
    request: pytest.FixtureRequest, spark: SparkSession, tmp_path: Path,
    server_of: Callable[[str], Server],
) -> Shop:  # fmt: skip
    return Shop(spark, tmp_path, server_of(request.param))


def sent() -> list[dict[str, Any]]:
    odd = [{"id": 2000 + n, "text": text, "words": [text]} for n, text in enumerate(ODD)]
    return [*rows(), *odd, {"id": 3000, "day": "9999-12-31", "at": "2039-01-01T00:00:00.000001Z"}]


def instant(text: str) -> datetime:
    """In UTC; without a zone, as the database has it."""
    parsed = datetime.fromisoformat(text.replace("Z", "+00:00"))
    return parsed.astimezone(UTC).replace(tzinfo=None) if parsed.tzinfo else parsed


def stored(row: dict[str, Any]) -> dict[str, str | None]:
    """A row as the plain text of its values."""
    made: dict[str, Any] = dict.fromkeys(("id", *COLUMNS)) | row
    for name in ("at", "clock"):
        if made[name] is not None:
            made[name] = instant(made[name])
    for name, digits in (("price", 3), ("money", 4)):
        if made[name] is not None:
            made[name] = f"{float(made[name]):.{digits}f}" if len(made[name]) < 9 else made[name]
    if made["times"] is not None:
        made["times"] = [t and t.replace("Z", ".000Z") for t in made["times"]]
    for name in DOCUMENTS:
        made[name] = made[name] if made[name] is None else json.dumps(made[name], sort_keys=True)
    if made["yes"] is not None:
        made["yes"] = int(made["yes"])
    return {name: None if value is None else str(value) for name, value in made.items()}


def found(row: dict[str, Any]) -> dict[str, str | None]:
    made = dict(row)
    for name in DOCUMENTS:
        if made[name] is not None:
            made[name] = json.dumps(json.loads(made[name]), sort_keys=True)
    return {name: None if value is None else str(value) for name, value in made.items()}


def test_all_types_go_round_in_both_modes(shop: Shop) -> None:
    every, last = shop.table(""), shop.table("")
    sinks = [shop.sink(every, create=True), shop.sink(last, mode="upsert", key=["id"], create=True)]
    shop.send([record(row) for row in sent()], by="id")
    shop.go(shop.to(*sinks, schema=SCHEMA))
    mariadb = shop.server.product == "mariadb"
    for table in (every, last):
        kinds = shop.server.rows(
            "SELECT column_name, column_type FROM information_schema.columns"
            f" WHERE table_name = '{table}' ORDER BY ordinal_position"
        )
        wanted = {name: "longtext" if mariadb and made == "json" else made
                  for name, (_, made) in COLUMNS.items()}  # fmt: skip
        # without how wide the server shows an int, which only some versions say
        plain = [(name, re.sub(r"(int)\(\d+\)", r"\1", kind or "")) for name, kind in kinds]
        assert plain == [("id", "bigint"), *wanted.items()]
        assert [found(r) for r in by_id(shop.server.records(table))] == [
            stored(r) for r in by_id(sent())
        ]
    keys = shop.server.rows(f"SELECT column_name FROM information_schema.statistics"
                            f" WHERE table_name = '{last}' AND index_name = 'PRIMARY'")  # fmt: skip
    assert keys == [("id",)]


def test_keys_differ_by_case_and_accent(shop: Shop) -> None:
    table = shop.table("")
    users = ["ann", "Ann", "änn", "ANN"]
    shop.send([{"id": n, "user": user, "price": n} for n, user in enumerate(users)], by="id")
    shop.go(shop.to(shop.sink(table, mode="upsert", key=["user"], create=True)))
    assert {row["user"]: row["id"] for row in shop.server.records(table)} == {
        user: n for n, user in enumerate(users)
    }


def test_a_table_of_others_may_have_other_types_that_hold_the_values(shop: Shop) -> None:
    table = shop.table(
        "id decimal(12,2), name varchar(20) NOT NULL, kind enum('a','b'), doc json, list text,"
        " n double, at timestamp(3) NULL, made datetime DEFAULT current_timestamp,"
        " number bigint NOT NULL AUTO_INCREMENT PRIMARY KEY"
    )
    shop.send([{"id": 1, "name": "a", "kind": "b", "doc": '{"x": [1, 2]}', "list": [1, 2], "n": 3,
                "at": "2024-02-29T23:59:59.123Z"}], by="id")  # fmt: skip
    schema = "id BIGINT, name STRING, kind STRING, doc STRING, list ARRAY<INT>, n INT, at TIMESTAMP"
    shop.go(shop.to(shop.sink(f"shop.{table}"), schema=schema))
    (row,) = shop.server.records(table)
    assert row.pop("made") and row.pop("number") == 1
    assert json.loads(row.pop("doc")) == {"x": [1, 2]} and json.loads(row.pop("list")) == [1, 2]
    assert row.pop("at") == datetime(2024, 2, 29, 23, 59, 59, 123000)
    assert row == {"id": 1, "name": "a", "kind": "b", "n": 3}


@pytest.mark.parametrize(
    ("column", "expression", "said"),
    [
        ("x double", "double('NaN')", "'x' cannot hold NaN; the row with id=5, x=NaN"),
        ("x date", "date'0000-12-31'", "'x' cannot hold a day outside of the years 1 to 9999"),
        ("x date", "date'+12024-01-01'", "'x' cannot hold a day outside of the years 1 to 9999"),
        (
            "x datetime",
            "timestamp'2024-01-01 00:00:00.5'",
            "'x' cannot hold a time with more than 0 digits of a second; the row with id=5",
        ),
        ("x longtext", "cast(x'ff' AS STRING)", "'x' cannot hold text that is not UTF-8"),
        ("x longtext", "repeat('x', 3000000)", "larger than the server's max_allowed_packet"),
        ("x timestamp", "timestamp'1960-01-01 00:00:00'", "Incorrect datetime value"),
        ("x enum('a','b')", "'c'", "Data truncated for column 'x' .*; the row with id=5, x=c"),
    ],
)
def test_a_value_that_the_server_would_change_is_refused(
    shop: Shop, column: str, expression: str, said: str
) -> None:
    table = shop.table(f"id bigint, {column}")
    shop.send([{"id": n, "user": "a"} for n in range(9)], by="user")
    if "packet" in said:
        shop.server.sql("SET GLOBAL max_allowed_packet = 2097152")

    def build(rows: hg.SourceStream) -> None:
        made = rows.select("id", f"CASE id WHEN 5 THEN {expression} END AS x")
        made.sink("out", shop.sink(table))

    with pytest.raises(HeadgateError, match=said):
        shop.go(shop.job(build))
    assert shop.reason() == "VALUE_REFUSED"
    # another task may have committed its rows; the one with this row has not
    assert 5 not in {row["id"] for row in shop.server.records(table)}


@pytest.mark.parametrize(
    ("columns", "key", "said"),
    [
        ("id bigint, price bigint) ENGINE=MyISAM", "", "table of InnoDB, .* one of MyISAM: ALTER"),
        (
            'id bigint, price bigint, "user" varchar(9) COLLATE utf8mb4_general_ci PRIMARY KEY)',
            "user",
            "'user' of .* by utf8mb4_general_ci.*MODIFY `user` varchar.*COLLATE utf8mb4_bin",
        ),
        (
            'id bigint PRIMARY KEY, price bigint UNIQUE, "user" varchar(9))',
            "id",
            "another unique index, price, .*DROP INDEX `price`",
        ),
        (
            'id bigint, price bigint, "user" varchar(9), UNIQUE ("user"(3)))',
            "user",
            "no unique index on",
        ),
        ('id bigint, price decimal(9,2), "user" int)', "", "'user' of .* is int.*rows have STRING"),
    ],
)
def test_a_table_that_the_server_would_write_otherwise_is_refused(
    shop: Shop, columns: str, key: str, said: str
) -> None:
    name = shop.table("")
    shop.server.sql(f"CREATE TABLE {name} ({columns}")
    schema = (
        "id BIGINT, price BIGINT" if "MyISAM" in columns else "id BIGINT, user STRING, price BIGINT"
    )
    shop.send([{"id": 1, "user": "a", "price": 2}])
    mode = "upsert" if key else "append"
    with pytest.raises(HeadgateError, match=said):
        shop.go(shop.to(shop.sink(name, mode=mode, key=[key] if key else []), schema=schema))


def test_rows_of_a_key_that_others_count_up_replace_each_other(shop: Shop) -> None:
    table = shop.table(
        'number bigint AUTO_INCREMENT PRIMARY KEY, "user" varchar(9) UNIQUE, id bigint,'
        " price bigint"
    )
    job = shop.to(shop.sink(table, mode="upsert", key=["user"]))
    for price in (1, 2):
        shop.send([{"id": n, "user": f"u{n}", "price": price} for n in range(5)])
        shop.go(job)
    rows = shop.server.records(table, ["id"])
    assert [(r["user"], r["price"]) for r in rows] == [(f"u{n}", 2) for n in range(5)]


@pytest.mark.parametrize(
    ("numbers", "reason"),
    [
        ((1053, 1927), "DATABASE_UNREACHABLE"),
        ((1044, 1045, 1049, 1142), "DATABASE_DENIED"),
        ((1146,), "TABLE_MISSING"),
        ((1054, 1364), "TABLE_UNFIT"),
        ((1048, 1062, 1451, 1452, 3819, 4025), "CONSTRAINT_VIOLATED"),
        ((1264, 1292, 1366, 1406, 3140), "VALUE_REFUSED"),
        # too many connections, a lock that is not free, a deadlock, a server that only reads
        ((1040, 1205, 1213, 1290), "DATABASE"),
    ],
)
def test_a_number_of_an_error_has_its_reason(
    spark: SparkSession, numbers: tuple[int, ...], reason: str
) -> None:
    jvm.need_driver(spark, "jdbc:mysql://db/shop")
    dialect = jvm_object(spark, "sinks.jdbc.MySqlDialect")
    java: Any = spark._jvm
    for number in numbers:
        error = java.java.sql.SQLException("(conn=7) so it said", "HY000", number)
        assert dialect.kindOf(error) == reason, number
        assert dialect.said(error).text() == "so it said"
