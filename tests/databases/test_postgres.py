"""A table of a real PostgreSQL, followed through its log: in the end the job has the same rows."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate import jvm
from headgate.connectors.log.files import Record, TopicFiles
from headgate.runtime.run import run
from tests.databases.capture import Capture
from tests.databases.postgres import Postgres

IDS = [n * n * 7 + 3 for n in range(60)]
COLUMNS = "id BIGINT, name STRING, score DECIMAL(9,2), city STRING, extra STRING, nick STRING"
NAMES = ("ann", "bob's", "grüße", "a:b [c]", "", "x\ny", "'", "null")


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    with Postgres() as server:
        yield server


class Users:
    """Writes to the table as an application does, from a seed."""

    def __init__(self, postgres: Postgres, seed: int) -> None:
        self._postgres, self._dice = postgres, random.Random(seed)
        self._columns = ["name", "score", "city", "extra"]
        postgres.sql(
            "CREATE TABLE users (id bigint PRIMARY KEY, name text, score numeric(9,2),"
            " city text, extra jsonb)",
            "CREATE TABLE others (id bigint PRIMARY KEY)",
        )

    def change(self, count: int) -> None:
        """Random statements, some in one transaction, some rolled back."""
        statements = [self._statement() for _ in range(count)]
        while statements:
            some = [statements.pop() for _ in range(min(len(statements), self._dice.randint(1, 6)))]
            end = "ROLLBACK" if self._dice.random() < 0.15 else "COMMIT"
            self._postgres.sql("BEGIN", *some, end)

    def alter(self, add: str, drop: str) -> None:
        self._postgres.sql(
            f"ALTER TABLE users ADD COLUMN {add} text", f"ALTER TABLE users DROP COLUMN {drop}"
        )
        self._columns = [one for one in [*self._columns, add] if one != drop]

    def _statement(self) -> str:
        dice, id = self._dice, self._dice.choice(IDS)
        kind = dice.random()
        if kind < 0.2:
            return f"DELETE FROM users WHERE id = {id}"
        if kind < 0.3:
            other = dice.choice(IDS)  # another key, if it is free
            return (
                f"UPDATE users SET id = {other} WHERE id = {id} AND {other} NOT IN"
                " (SELECT id FROM users)"
            )
        if kind < 0.35:
            return f"INSERT INTO others VALUES ({id}) ON CONFLICT DO NOTHING"
        if kind < 0.6:
            column = dice.choice(self._columns)
            return f"UPDATE users SET {column} = {self._value(column)} WHERE id = {id}"
        names = ", ".join(self._columns)
        values = ", ".join(self._value(column) for column in self._columns)
        sets = ", ".join(f"{column} = excluded.{column}" for column in self._columns)
        return (
            f"INSERT INTO users (id, {names}) VALUES ({id}, {values})"
            f" ON CONFLICT (id) DO UPDATE SET {sets}"
        )

    def _value(self, column: str) -> str:
        if self._dice.random() < 0.15:
            return "NULL"
        if column == "score":
            return str(Decimal(self._dice.randint(-(10**8), 10**8)).scaleb(-2))
        text = self._dice.choice(NAMES) + str(self._dice.randint(0, 99))
        text = json.dumps({"k": text}) if column == "extra" else text
        return "'" + text.replace("'", "''") + "'"


# What a change has of the row before it is in test_envelopes.py.
@pytest.mark.parametrize(
    "full",
    [
        pytest.param(False, marks=pytest.mark.slow, id="keys"),
        pytest.param(True, marks=pytest.mark.long, id="whole rows"),
    ],
)
def test_a_job_has_the_rows_of_the_database(
    spark: SparkSession, tmp_path: Path, postgres: Postgres, full: bool
) -> None:
    changes, probes = TopicFiles(tmp_path / "changes"), TopicFiles(tmp_path / "probes")
    changes.create(1)
    probes.create(2)
    table = hg.topic(f"log:{changes.path}", schema=COLUMNS, format="debezium-json")

    @hg.job("follow")
    def follow(job: hg.Job) -> None:
        users = job.table("users", table, key="id")
        asked = job.source(
            "asked", hg.topic(f"log:{probes.path}", schema="ask BIGINT, round INT")
        ).lookup("who", users, on="ask", missing="side")
        asked.sink("found", hg.topic(f"log:{tmp_path}/found"))
        asked.missing.sink("gone", hg.topic(f"log:{tmp_path}/gone"))
        changed = job.source("changed", table, key="id")
        changed.sink("copy", hg.topic(f"log:{tmp_path}/copy", key="id", partitions="3"))
        changed.where("score > 0").sink("good", hg.topic(f"log:{tmp_path}/good", key="id"))

    def go(*, crash: str | None = None) -> None:
        if crash is not None:
            jvm.arm_crash(spark, "r1", crash)
        outcome = run(follow, home=str(tmp_path / "home"), bounded=True, spark=spark)
        jvm.disarm_crash(spark, "r1")
        assert (outcome.error is None) is (crash is None), outcome.error

    postgres.sql("DROP TABLE IF EXISTS users, others")
    users = Users(postgres, seed=5 + full)
    users.change(60)
    if full:
        postgres.sql("ALTER TABLE users REPLICA IDENTITY FULL")
    capture = Capture(postgres, "users", ("id",))
    try:
        changes.append(capture.snapshot())
        before_drop = len(list(changes.read()))
        for number in range(4):
            if number == 2:
                before_drop = len(list(changes.read()))
                users.alter(add="nick", drop="city")
            users.change(120)
            changes.append(capture.changes(bare=bool(number % 2)))
            if number < 3:
                if number == 1:
                    go(crash="after_sink")
                go()
    finally:
        capture.close()
    probes.append([Record(json.dumps({"ask": id, "round": 9})) for id in [*IDS, -1, 5]])
    go()

    truth = {row["id"]: row for row in postgres.rows("SELECT *, score::text AS score FROM users")}
    assert len(truth) > 20
    values = [json.loads(r.value) for r in list(changes.read())[before_drop:] if r.value]
    payloads = [value.get("payload", value) for value in values]
    touched = {(p["after"] or p["before"])["id"] for p in payloads}
    found = {row["ask"]: row["users"] for row in _rows(tmp_path / "found") if row["round"] == 9}
    gone = {row["ask"] for row in _rows(tmp_path / "gone") if row["round"] == 9}
    assert gone == {*IDS, -1, 5} - set(truth)
    copy = {row["id"]: row for row in _compacted(tmp_path / "copy")}
    for rows in (found, copy):
        assert {id: _plain(row) for id, row in rows.items()} == {
            id: _plain(row) for id, row in truth.items()
        }
        assert all("city" not in rows[id] for id in touched & set(rows))
    good = {row["id"]: _plain(row) for row in _compacted(tmp_path / "good")}
    assert good == {
        id: _plain(row) for id, row in truth.items() if row["score"] and Decimal(row["score"]) > 0
    }


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(r.value, parse_float=Decimal) for r in TopicFiles(path).read() if r.value]


def _compacted(path: Path) -> list[dict[str, Any]]:
    last = {record.key: record.value for record in TopicFiles(path).read()}
    return [json.loads(value, parse_float=Decimal) for value in last.values() if value]


def _plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row without nulls, and without the column that was dropped."""
    kept = {name: value for name, value in row.items() if value is not None and name != "city"}
    if "score" in kept:
        kept["score"] = Decimal(kept["score"])
    if "extra" in kept:
        extra = kept["extra"]
        kept["extra"] = json.loads(extra) if isinstance(extra, str) else extra
    return kept
