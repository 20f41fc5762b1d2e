"""What is in a letter is what was lost: the record's bytes, the row's values."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.base.errors import RefusedError
from headgate.cli.main import invoke
from headgate.connectors.letters import Letter
from headgate.connectors.log.files import TopicFiles
from headgate.connectors.records import Record
from headgate.connectors.topic_client import TopicRecord, as_text
from headgate.connectors.topics import open_topic
from headgate.runtime.run import run
from headgate.testing import JobDriver
from tests.kafka.client import Kafka, Send
from tests.pulsar.client import Pulsar

WIDE = (
    "id BIGINT, b BINARY, d DECIMAL(24, 6), f FLOAT, g DOUBLE, day DATE, at TIMESTAMP,"
    " n TIMESTAMP_NTZ, m MAP<STRING, DECIMAL(9, 2)>, a ARRAY<STRUCT<x: INT, y: STRING>>, s STRING"
)
ROWS = [
    {
        "id": 1, "b": "AP8=", "d": 123456789012345678.123456, "f": 0.1, "g": "NaN",
        "day": "1583-02-28", "at": "1969-12-31T23:59:59.999999Z", "n": "2026-03-29T02:30:00.000001",
        "m": {"a b": 1.25, "": 0}, "a": [{"x": 1}, {"y": 'q"\n\\'}], "s": "base64:AP8=",
    },
    {"id": 2, "g": "-Infinity", "a": [], "m": {}, "s": "é\u0000\t"},
    {"id": 3, "d": -0.000001, "g": 1e-300, "s": ""},
]  # fmt: skip


def test_a_replayed_row_is_the_row_that_was_lost(
    job_driver: Callable[..., JobDriver],
) -> None:
    @hg.job("wide", dead_letters="log:letters")
    def wide(job: hg.Job) -> None:
        users = job.table("users", hg.topic("log:users", schema="id BIGINT"), key="id")
        rows = job.source("rows", hg.topic("log:rows", schema=WIDE))
        rows.sink("as_read", hg.topic("log:as_read"))
        found = rows.lookup("known", users, on=["id"], take=["id AS user"], missing="side")
        found.drop("user").sink("found", hg.topic("log:found"))
        names = job.table("names", hg.topic("log:names", schema="s STRING"), key="s")
        rows.lookup("named", names, on="s", missing="side").sink("named_out", hg.topic("log:named"))

    t = job_driver(wide).send("rows", *map(json.dumps, ROWS)).run()
    made = [
        Letter.of(TopicRecord(0, 0, 0, r["key"], r["value"], tuple(r["headers"].items())))
        for r in t.rows("dead_letters")
    ]
    letters = [x for x in made if x is not None and x.step == "known"]
    assert len(letters) == len(ROWS)
    # a key is shown as bytes are, so that a topic gets the key that the row had
    keys = [x.key for x in made if x is not None and x.step == "named"]
    want = [as_text(str(row["s"]).encode()) for row in ROWS]
    assert sorted(map(str, keys)) == sorted(map(str, want))
    assert "base64:YmFzZTY0OkFQOD0=" in keys
    t.send("users", *({"id": row["id"]} for row in ROWS))
    for letter in letters:
        t.send("known.replay", letter.replayed("p1").value or "")
    t.run()
    as_read, found = (
        sorted(map(repr, t.rows(sink))) for sink in ("as_read", "found")
    )  # NaN is like no other
    assert found == as_read and len(found) == len(ROWS)


@pytest.mark.slow
def test_letters_in_kafka_have_the_bytes_of_their_records(
    spark: SparkSession, tmp_path: Path, kafka_servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka = Kafka(kafka_servers, calm=True)
    source, out, dlq, csv = (kafka.topic(1) for _ in range(4))
    at = f"kafka://{kafka_servers}/"
    sent = [
        (b"\xff\x00{", "k"), (b"base64:AP8=", None), ("ü{".encode(), "base64:k"), (None, "none"),
        (b"x\n\ty", "t\n"),
    ]  # fmt: skip
    kafka.send(source, [Send(value, key, headers=[("h", b"1")]) for value, key in sent])

    kafka.send(csv, [Send("1;two"), Send("3;4")])

    def go(lines: str) -> None:
        @hg.job("bytes", dead_letters=at + dlq)
        def job(job: hg.Job) -> None:
            rows = hg.topic(at + source, schema="id BIGINT", metadata="topic, offset AS place")
            job.source("rows", rows).sink("out", hg.topic(at + out))
            form = {"format": "csv", "csv_separator": ";", "metadata": "topic, offset AS place"}
            line = hg.topic(at + csv, schema=lines, **form)
            job.source("lines", line).sink("lines_out", hg.topic(at + out))

        outcome = run(job, home=str(tmp_path), bounded=True, spark=spark, parallelism=2)
        assert outcome.error is None, outcome.error

    def held() -> list[tuple[bytes | None, bytes | None, str]]:
        from confluent_kafka import Consumer, TopicPartition

        reader = Consumer({"bootstrap.servers": kafka_servers, "group.id": dlq,
                           "isolation.level": "read_committed"})  # fmt: skip
        reader.assign([TopicPartition(dlq, 0, 0)])
        found = []
        for _ in kafka.values(dlq):
            message = reader.poll(10)
            assert message is not None and message.error() is None
            headers = dict(message.headers() or [])
            if headers["__headgate.errors.step"] == b"lines":
                assert message.value() == b"1;two"
                continue
            assert headers["__headgate.errors.topic"] == (at + source).encode()
            place = headers["__headgate.errors.offset"]
            assert isinstance(place, bytes)
            found.append((message.value(), message.key(), place.decode()))
        reader.close()
        return sorted(found, key=repr)

    go("id BIGINT, n BIGINT")
    once = sorted(
        ((value, key and key.encode(), str(n)) for n, (value, key) in enumerate(sent)), key=repr
    )
    assert held() == once
    assert invoke(["replay", at + dlq, "--job", "bytes", "--home", str(tmp_path), "--quiet"]) == 0
    go("id BIGINT, n STRING")  # which takes the line; the others are as malformed as they were
    assert held() == sorted([*once, *once], key=repr)
    lines = [json.loads(value or "") for value in kafka.values(out)]
    assert lines == [
        {"id": 3, "n": 4, "topic": csv, "place": 1},
        {"id": 1, "n": "two", "topic": csv, "place": 0},
    ]

    topic = open_topic(f"{at}{dlq}.replay")
    with topic.alone() as first, topic.alone() as second:
        second([Record("{}")])
        with pytest.raises(RefusedError, match="another command appends"):
            first([Record("{}")])
    assert len(kafka.values(f"{dlq}.replay")) == len(sent) + 2

    words = ["replay", at + dlq, "--job", "bytes", "--home", str(tmp_path), "--dry-run"]
    capsys.readouterr()
    kafka.delete_before(f"{dlq}.replay", 0, 1)
    assert invoke(words) == 5 and "has lost records" in capsys.readouterr().err
    kafka.delete(f"{dlq}.replay")
    kafka.create(f"{dlq}.replay", 1, retention_ms="86400000")
    assert invoke(words) == 5 and "must keep its records for ever" in capsys.readouterr().err


@pytest.mark.long
def test_letters_in_pulsar_have_properties_and_are_not_replayed(
    spark: SparkSession, tmp_path: Path, pulsar_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    client = Pulsar(pulsar_url)
    address = f"{pulsar_url}/{client.topic(1)}"
    TopicFiles(tmp_path / "rows").create(1)
    TopicFiles(tmp_path / "rows").append([Record("{", "k"), Record("base64:AP8=")])

    @hg.job("letters", dead_letters=address)
    def job(job: hg.Job) -> None:
        rows = job.source("rows", hg.topic(f"log:{tmp_path / 'rows'}", schema="id BIGINT"))
        rows.sink("out", hg.topic(f"log:{tmp_path / 'out'}"))

    outcome = run(job, home=str(tmp_path / "h"), bounded=True, spark=spark, parallelism=2)
    assert outcome.error is None, outcome.error
    letters = [Letter.of(r) for r in open_topic(address).read("earliest") if r is not None]
    assert {(x.key, x.value, x.headers["offset"]) for x in letters if x is not None} == {
        ("k", "{", "0"),
        # as text that begins like base64 is shown
        (None, "base64:YmFzZTY0OkFQOD0=", "1"),
    }
    words = ["replay", address, "--job", "letters", "--home", str(tmp_path / "h")]
    assert invoke(words) == 5
    assert "letters in a Pulsar topic cannot be replayed" in capsys.readouterr().err
    client.close()
