"""What is wrong with a table, a row or the way to the database is said in one sentence."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.base.errors import GraphError, HeadgateError
from headgate.brokers.process import free_port
from tests.jdbc.server import FEW, PASSWORD, PRODUCTS, Postgres, Server
from tests.jdbc.shop import Shop, orders


@pytest.fixture
def shop(spark: SparkSession, tmp_path: Path, server: Server) -> Shop:
    return Shop(spark, tmp_path, server)


@pytest.fixture
def any_shop(spark: SparkSession, tmp_path: Path, postgres: Postgres) -> Shop:
    """For what is found before a server is asked."""
    return Shop(spark, tmp_path, postgres)


URL = "jdbc:postgresql://db:5432/shop"


@pytest.mark.parametrize(
    ("sink", "said"),
    [
        (hg.JdbcSink("postgresql://db/shop", "t"), "url must be the JDBC address"),
        (hg.JdbcSink("jdbc:oracle://db/shop", "t"), "of a PostgreSQL, MySQL or MariaDB database"),
        (hg.JdbcSink("jdbc:mysql://db/shop", "t", options={"pool": "true"}), "set by Headgate"),
        (hg.JdbcSink("jdbc:mariadb://db/shop?autocommit=1", "t"), "'autocommit' .* is set by"),
        (hg.JdbcSink(URL, "a.b.c"), "table must be the name of a table"),
        (hg.JdbcSink(URL, "t", mode="replace"), "'append' or 'upsert'"),  # type: ignore[arg-type]
        (hg.JdbcSink(URL, "t", mode="upsert"), "must have a key"),
        (hg.JdbcSink(URL, "t", key=["id"]), "a key is for mode='upsert'"),
        (
            hg.JdbcSink(URL, "t", mode="upsert", key=["no"]),
            "there is no column 'no' in the sink's key",
        ),
        (hg.JdbcSink(URL, "t", options={"ApplicationName": "x"}), "set by Headgate"),
        (
            hg.JdbcSink(f"{URL}?ssl=true&ApplicationName=shop", "t"),
            "'ApplicationName' .* is set by",
        ),
    ],
)
def test_a_sink_that_cannot_work_is_refused(any_shop: Shop, sink: hg.JdbcSink, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        any_shop.to(sink).build({}, spark=any_shop.spark)


def test_changes_need_a_key_of_their_own_columns(any_shop: Shop) -> None:
    shop = any_shop

    def job(sink: hg.JdbcSink) -> hg.JobDef:
        def build(rows: hg.SourceStream) -> None:
            rows.key_by("user", "id").aggregate("n", F.count("*").alias("n")).sink("out", sink)

        return shop.job(build)

    with pytest.raises(GraphError, match="cannot delete or replace a row"):
        job(hg.JdbcSink(URL, "t")).build({}, spark=shop.spark)
    with pytest.raises(GraphError, match="must be made of user, id") as refused:
        job(hg.JdbcSink(URL, "t", mode="upsert", key="user")).build({}, spark=shop.spark)
    assert "key=['user', 'id']" in str(refused.value)
    job(hg.JdbcSink(URL, "t", mode="upsert", key=["id", "user"])).build({}, spark=shop.spark)


@pytest.mark.parametrize("server", FEW, indirect=True)
@pytest.mark.parametrize(
    ("columns", "mode", "said"),
    [
        (None, "append", "a table does not exist .*there is no table"),
        ("id bigint, price bigint", "append", "has no column 'user', but id, price"),
        ('id bigint, "USER" text, price bigint', "append", "has no column 'user', but 'USER'"),
        (
            'id bigint, "user" text, price date',
            "append",
            "'price' of .* is date, and the rows have",
        ),
        (
            'id bigint, "user" text, price bigint, shop int NOT NULL',
            "append",
            "'shop' of .* must have a value",
        ),
        (
            'id bigint, "user" text, price bigint GENERATED ALWAYS AS (id * 2) STORED',
            "append",
            "'price' of .* is generated",
        ),
        (
            'id bigint, "user" text, price bigint, UNIQUE (id, price)',
            "upsert",
            'no unique index on .*ALTER TABLE ["`]t.*["`] ADD PRIMARY KEY',
        ),
    ],
)
def test_a_table_that_does_not_fit_is_found_before_the_start(
    shop: Shop, columns: str | None, mode: str, said: str
) -> None:
    table = shop.table(columns or "id bigint")
    if columns is None:
        shop.server.sql(f"DROP TABLE {table}")
    key = ["id"] if mode == "upsert" else []
    shop.send(orders(range(3)))
    with pytest.raises(HeadgateError, match=said) as refused:
        shop.go(shop.to(shop.sink(table, mode=mode, key=key)))
    assert refused.value.step == "out0"
    assert not (shop.home / "jobs" / shop.job_name / "runs" / "r1" / "events.jsonl").exists()


BAD = {"id": 1777, "user": "long one", "price": 99999}
ROW = "the row with id=1777, user=long one, price=99999"
REFUSED = [
    (
        'id bigint UNIQUE, "user" varchar(3), price bigint',
        "VALUE_REFUSED",
        "value too long for type character varying.3.; the row with id=1777, user=long one"
        f"|Data too long for column 'user' at row .*; {ROW}",
        f"value too long .*; {ROW}|Data too long for column 'user' at row .*; {ROW}",
    ),
    (
        'id bigint UNIQUE, "user" varchar(20), price bigint, CHECK (price < 500)',
        "CONSTRAINT_VIOLATED",
        f"violates check constraint .*; {ROW}|CONSTRAINT .* failed .*; {ROW}",
        r"violates check constraint .*row contains \(1777, long one, 99999\)"
        f"|CONSTRAINT .* failed .*; {ROW}",
    ),
    (
        'id bigint UNIQUE, "user" varchar(20), price smallint',
        "VALUE_REFUSED",
        f"out of range .*; {ROW}|Out of range value for column 'price' .*; {ROW}",
        f"out of range .*; {ROW}|Out of range value for column 'price' .*; {ROW}",
    ),
]


# MySQL 8.0.15 reads a CHECK, and does not obey it
@pytest.mark.parametrize(
    ("server", "columns", "reason", "said", "also"),
    [
        (product, *case)
        for product in PRODUCTS
        for case in REFUSED
        if product != "mysql" or "CHECK" not in case[0]
    ],
    indirect=["server"],
)
def test_a_row_that_the_table_refuses_is_shown(
    shop: Shop, columns: str, reason: str, said: str, also: str
) -> None:
    shop.send([*orders(range(40)), BAD, *orders(range(50, 90))])
    table = shop.table(columns)
    upsert = shop.sink(table, mode="upsert", key=["id"])
    for sink, words in ((shop.sink(table), said), (upsert, also)):
        with pytest.raises(HeadgateError, match=words):
            shop.go(shop.to(sink), fresh=True)
        assert shop.reason() == reason
        assert shop.server.records(table) == [] or len(shop.server.records(table)) < 81
        shop.server.sql(f"TRUNCATE {table}")


@pytest.mark.parametrize("server", FEW, indirect=True)
def test_a_key_must_have_a_value(shop: Shop) -> None:
    table = shop.table('"user" varchar(20) UNIQUE, id bigint, price bigint')
    shop.send([*orders(range(5)), {"id": 5, "price": 3}])
    with pytest.raises(
        HeadgateError, match=r"'user' must have a value in the row with user=(\\N|NULL), id=5"
    ):
        shop.go(shop.to(shop.sink(table, mode="upsert", key=["user"])))
    assert shop.reason() == "CONSTRAINT_VIOLATED"


def test_the_way_to_the_database_is_blamed_and_no_password_is_shown(shop: Shop) -> None:
    table = shop.table()
    shop.send(orders(range(3)))
    wrong = {"password": "wrong horse battery"}
    nobody = f"jdbc:{shop.server.product}://127.0.0.1:{free_port()}/shop"
    refused = "password authentication|Access denied"
    for sink, said in (
        (shop.sink(table, options=wrong), f"denied the job access .*({refused})"),
        (shop.sink(table, url=shop.server.url + "2"), "denied the job access .*shop2"),
        (shop.sink(table, url=nobody), "the database does not answer .*refused"),
    ):
        with pytest.raises(HeadgateError, match=said) as failed:
            shop.go(shop.to(sink))
        assert "wrong horse" not in str(failed.value)
    # MariaDB's driver takes what stands there as it is
    written = quote if shop.server.product == "postgresql" else str
    login = "&".join(f"{name}={written(value)}" for name, value in shop.server.login.items())
    shop.go(shop.to(hg.JdbcSink(f"{shop.server.url}?{login}", table)), fresh=True)
    assert len(shop.server.records(table)) == 3
    for file in shop.home.rglob("*"):
        text = file.read_bytes() if file.is_file() else b""
        assert PASSWORD.encode() not in text and b"let%20me" not in text, file
