"""A source of changes: the newest of each key in a batch, what may follow, what goes aside."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.base.errors import GraphError
from headgate.connectors.log.files import Record, TopicFiles
from headgate.runtime.run import run
from headgate.testing import Deleted

SCHEMA = "id BIGINT, name STRING, score INT"


def _change(op: str, id: int, name: str | None = None, score: int = 0) -> Record:
    row = {"id": id, "name": name, "score": score}
    before, after = (row, None) if op == "d" else (None, row)
    value = {"op": op, "before": before, "after": after}
    return Record(json.dumps(value), json.dumps({"id": id}))


@hg.job("scores")
def scores(job: hg.Job) -> None:
    users = hg.topic(job.param("users"), schema=SCHEMA, format="debezium-json")
    changed = job.source("changed", users, key="id", malformed="side")
    changed.sink("copy", hg.topic(job.param("out") + "/copy", key="id"))
    changed.malformed.select("offset", "reason").sink("bad", hg.topic(job.param("out") + "/bad"))
    best = changed.key_by().top("best", 2, by=F.desc("score"))
    best.sink("ranks", hg.topic(job.param("out") + "/best", key="rank"))
    asks = job.source("asks", hg.topic(job.param("asks"), schema="id BIGINT"))
    asks.lookup("who", changed.as_table("people"), on="id", take=["name"]).sink(
        "answers", hg.topic(job.param("out") + "/answers")
    )


def test_a_batch_has_the_newest_change_of_each_key(spark: SparkSession, tmp_path: Path) -> None:
    users, asks = TopicFiles(tmp_path / "users"), TopicFiles(tmp_path / "asks")
    users.create(2)
    asks.create(1)
    params = {"users": f"log:{users.path}", "asks": f"log:{asks.path}", "out": f"log:{tmp_path}"}

    def go() -> list[tuple[Any, Any]]:
        before = list(TopicFiles(tmp_path / "copy").read()) if (tmp_path / "copy").exists() else []
        outcome = run(scores, home=str(tmp_path / "home"), bounded=True, spark=spark, params=params)
        assert outcome.error is None, outcome.error
        records = list(TopicFiles(tmp_path / "copy").read())[len(before) :]
        return sorted((r.key or "", json.loads(r.value) if r.value else None) for r in records)

    users.append([_change("r", n, f"u{n}", n) for n in range(0, 50, 7)], partition=0)
    users.append(
        [
            _change("c", 1, "a", 5), Record("{}", "9"), _change("u", 1, "b", 99),
            _change("c", 3, "x"), _change("d", 3, "x"), Record(None, '{"id": 3}'),
            Record('{"op": "t"}', None),
        ],
        partition=1,
    )  # fmt: skip
    first = {n: {"id": n, "name": f"u{n}", "score": n} for n in range(0, 50, 7)}
    first[1] = {"id": 1, "name": "b", "score": 99}
    assert go() == sorted([(str(n), row) for n, row in first.items()] + [("3", None)])

    users.append([_change("u", 1, "c", 1), _change("d", 49), _change("c", 49, "new")], partition=1)
    asks.append([Record(json.dumps({"id": n})) for n in (1, 3, 7, 49)])
    assert go() == [
        ("1", {"id": 1, "name": "c", "score": 1}), ("49", {"id": 49, "name": "new", "score": 0})
    ]  # fmt: skip
    answers = [json.loads(r.value or "") for r in TopicFiles(tmp_path / "answers").read()]
    assert {row["id"]: row.get("name") for row in answers} == {1: "c", 3: None, 7: "u7", 49: "new"}
    best = {r.key: json.loads(r.value or "") for r in TopicFiles(tmp_path / "best").read()}
    assert {rank: row["id"] for rank, row in best.items()} == {"1": 42, "2": 35}
    bad = [json.loads(r.value or "") for r in TopicFiles(tmp_path / "bad").read()]
    assert sorted((row["offset"], row["reason"][:20]) for row in bad) == [
        (1, "not Debezium's envel"), (6, "the table was emptie")
    ]  # fmt: skip


def test_a_driver_sends_rows_and_deletions(job_driver: Callable[..., Any]) -> None:
    t = job_driver(scores, params={"users": "log:u", "asks": "log:a", "out": "log:o"})
    t.send("changed", {"id": 7, "name": "ann", "score": 3}, {"id": 8}, Deleted(8)).run()
    assert sorted(t.changes("copy")) == [("7", {"id": 7, "name": "ann", "score": 3}), ("8", None)]


def test_what_is_no_change_is_a_letter_and_does_not_come_again(
    job_driver: Callable[..., Any],
) -> None:
    @hg.job("letters", dead_letters="log:letters")
    def letters(job: hg.Job) -> None:
        users = hg.topic("log:users", schema=SCHEMA, format="debezium-json")
        changed = job.source("changed", users, key="id", malformed="side")
        changed.sink("copy", hg.topic("log:copy", key="id"))

    t = job_driver(letters)
    assert t.built.graph.sources == ("changed",)  # an old change must not replace a newer one
    t.send("changed", {"id": 1}, "{").run()
    assert t.changes("copy") == [("1", {"id": 1, "name": None, "score": None})]
    assert [row["value"] for row in t.rows("dead_letters")] == ["{"]


def test_a_topic_of_text_has_no_registry(spark: SparkSession) -> None:
    with pytest.raises(GraphError, match="the format json has no option 'registry'"):
        hg.topic("log:in", schema=SCHEMA, registry="http://a:1").check()


def test_a_table_has_the_key_of_the_database(spark: SparkSession) -> None:
    @hg.job("reading")
    def reading(job: hg.Job) -> None:
        users = hg.topic("log:users", schema=SCHEMA, format="debezium-json")
        job.table("users", users, key="id + 1")

    with pytest.raises(GraphError, match="the key of a database's table must be columns of it"):
        reading.build(spark=spark, check_connectors=False)


@pytest.mark.parametrize(
    ("options", "key", "sentence"),
    [
        ({"format": "debezium-json"}, None, "a source of changes must have a key"),
        ({"format": "debezium-json"}, ["id", "id + 1"], "a source of changes must have a key"),
        ({}, "id", "a source has a key only if its records are changes"),
        ({"format": "debezium-avro"}, "id", "debezium-avro must have the registry"),
        ({"format": "xml"}, None, "the option 'format' must be 'json' or"),
        ({"csv_quote": "'"}, None, "the format json has no option 'csv_quote'"),
        ({"json_text": "name, score"}, None, "json_text must name columns of the type STRING"),
        ({"format": "protobuf"}, None, "protobuf must have a descriptor file and the message"),
        ({"format": "protobuf", "descriptor": "/nowhere.desc", "message": "a.B"}, None,
         "descriptor must be a file that is there"),
        ({"format": "text"}, None, "the schema of a text record must be one column"),
        ({"format": "avro", "registry": "http://a", "avro_framing": "none"}, None,
         "registry and avro_framing exclude each other"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_refused(
    spark: SparkSession, options: dict[str, str], key: Any, sentence: str
) -> None:
    @hg.job("reading")
    def reading(job: hg.Job) -> None:
        source = hg.topic("kafka://h:9092/in", schema=SCHEMA, **options)
        job.source("in", source, key=key).sink("out", hg.topic("log:out", key="id"))

    with pytest.raises(GraphError, match=sentence):
        reading.build(spark=spark, check_connectors=False).nodes[0].operation.check()
