"""The contract of a broker's source: where it starts, what it reads, and what stops it."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest

import headgate as hg
from headgate.base.errors import ExitCode, GraphError, JobFailedError, NotFoundError, RefusedError
from headgate.home.layout import Home, RunHome
from tests.brokers.systems import Message, System
from tests.reading import Reading, Running

IDS = "id BIGINT"


def numbered(numbers: range) -> list[Message]:
    return [Message(json.dumps({"id": n}), str(n)) for n in numbers]


def source(system: System, topic: str, **options: Any) -> hg.Source:
    return hg.topic(system.address(topic), schema=IDS, **options)


def current(reading: Reading) -> RunHome:
    run = Home(str(reading.folder / "home")).job("reading").current()
    assert run is not None
    return run


def test_should_read_what_is_there_and_go_on_from_there(system: System, reading: Reading) -> None:
    topic = system.topic(3)
    system.send(topic, numbered(range(0, 700, 7)))
    reading.go(source(system, topic))
    assert reading.ids() == list(range(0, 700, 7))
    system.send(topic, numbered(range(700, 900, 7)))
    reading.go(source(system, topic))
    assert reading.ids() == list(range(0, 900, 7))
    assert reading.checkpoints()[-1].sources["in"].end == system.ends(topic)


def test_should_start_at_a_time_or_with_what_comes_next(system: System, reading: Reading) -> None:
    topic = system.topic(2)
    system.send(topic, numbered(range(10)))
    time.sleep(0.05)
    middle = datetime.fromtimestamp(time.time(), UTC)
    time.sleep(0.05)
    system.send(topic, numbered(range(10, 30)))
    reading.go(system.source(topic, IDS, start=middle))
    assert reading.ids() == list(range(10, 30))
    latest = system.source(topic, IDS, start="latest")
    reading.go(latest, fresh=True)
    assert reading.ids() == list(range(10, 30))
    system.send(topic, numbered(range(30, 32)))
    reading.go(latest)  # goes on: "latest" is where it was when the run began
    assert reading.ids() == list(range(10, 32))


def test_should_read_raw_values_as_they_are(system: System, reading: Reading) -> None:
    topic = system.topic(1)
    text = "plain text, no JSON"
    system.send(topic, [Message(text, "k"), Message(None, "deleted"), Message("no key")])
    reading.go(hg.topic(system.address(topic), schema="line STRING", format="raw", metadata="key"))
    assert reading.rows() == [{"line": text, "key": "k"}, {"key": "deleted"}, {"line": "no key"}]


def test_should_name_the_record_that_does_not_parse(system: System, reading: Reading) -> None:
    topic = system.topic(1)
    system.send(topic, [*numbered(range(2)), Message("{oops", "1")])
    last = str(system.ends(topic)["0"]).rpartition(":")[0]  # of a message alone: ledger and entry
    place = {"kafka": "offset 2 ", "pulsar": f"message {last}:0 "}[system.name]
    with pytest.raises(JobFailedError, match=f"{system.address(topic)} partition 0 {place}"):
        reading.go(source(system, topic))
    reading.go(source(system, topic), malformed="side")
    assert reading.ids() == [0, 1]
    assert [row["value"] for row in reading.rows("bad")] == ["{oops"]


def test_should_read_partitions_that_came_later(system: System, reading: Reading) -> None:
    topic = system.topic(1)
    rows = system.source(topic, IDS, start="latest")
    system.send(topic, numbered(range(3)))
    reading.go(rows)
    assert reading.ids() == []
    system.grow(topic, 3)
    system.send(topic, numbered(range(10, 40)))
    assert len({m.partition for m in system.read(topic)}) == 3
    reading.go(rows)
    assert reading.ids() == list(range(10, 40))


def test_should_keep_the_latest_row_of_a_table(system: System, reading: Reading) -> None:
    users, orders = system.topic(2), system.topic(2)

    @hg.job("lookups")
    def lookups(job: hg.Job) -> None:
        changes = hg.topic(system.address(users), schema="id BIGINT, v INT")
        table = job.table("users", changes, key="id")
        found = job.source("orders", source(system, orders)).lookup(
            "who", table, on="id", missing="side"
        )
        found.sink("out", hg.LogSink(str(reading.folder / "out")))
        found.missing.sink("missing", hg.LogSink(str(reading.folder / "missing")))

    changes = [
        Message(json.dumps({"id": k, "v": v}), str(k)) for v in range(20) for k in (3, 30, 300)
    ]
    system.send(users, [*changes, Message(None, "30")])
    system.send(orders, numbered(range(0, 303, 3)))
    reading.run(lookups)
    assert sorted((r["id"], r["users"]["v"]) for r in reading.rows()) == [(3, 19), (300, 19)]
    assert len(reading.rows("missing")) == 101 - 2
    assert reading.checkpoints("lookups")[-1].totals["users"]["records_out"] == 61


def test_should_read_a_topic_that_was_made_again_only_if_records_may_be_lost(
    system: System, reading: Reading
) -> None:
    topic = system.topic(2)
    system.send(topic, numbered(range(100)))
    reading.go(source(system, topic))
    system.again(topic, 3)
    system.send(topic, numbered(range(1000, 1300)))
    for restore in (None, "latest"):
        with pytest.raises(RefusedError, match="deleted and recreated") as refused:
            reading.go(source(system, topic), restore=restore)
        assert refused.value.exit_code == ExitCode.REFUSED
        assert "--fresh" in str(refused.value) and "on_data_loss" in str(refused.value)
    assert reading.ids() == list(range(100)), "nothing was read"
    reading.go(source(system, topic, on_data_loss="continue"))
    assert reading.ids() == [*range(100), *range(1000, 1300)]
    (event,) = [e for e in current(reading).events() if e.kind == "reset"]
    assert event.details["source"] == "in" and topic in event.details["topics"][0]
    system.send(topic, numbered(range(1300, 1310)))
    reading.go(source(system, topic))
    assert reading.ids() == [*range(100), *range(1000, 1310)], "and no row twice"


@pytest.mark.parametrize("on_data_loss", ["fail", "continue"])
def test_should_notice_a_topic_that_is_made_again_while_the_job_runs(
    system: System, reading: Reading, on_data_loss: str
) -> None:
    topic = system.topic(2)
    system.send(topic, numbered(range(50)))
    job = Running(
        reading, source(system, topic, on_data_loss=on_data_loss),
        every="1 hour", restart=hg.fixed_delay(attempts=20, delay="100 ms"),
    )  # fmt: skip
    try:
        job.until(lambda: len(reading.ids()) == 50)
        system.again(topic, 2)
        system.send(topic, numbered(range(1000, 1300)))
        job.trigger()
        job.until(lambda: job.ended or len(reading.ids()) >= 350)
    finally:
        ended = job.stop()
    if on_data_loss == "fail":
        assert reading.ids() == list(range(50))
        assert ended.how == "failed" and "deleted and recreated" in str(ended.error)
    else:
        assert ended.how == "stopped" and ended.run == "r2", ended
        assert reading.ids() == [*range(50), *range(1000, 1300)]
        assert [e.kind for e in current(reading).events()] == ["reset", "started", "stopped"]


def test_should_say_which_topic_is_not_there(system: System, reading: Reading) -> None:
    said = rf"there is no topic {system.name}://.*/nowhere"
    with pytest.raises(NotFoundError, match=said) as missing:
        reading.go(source(system, "nowhere"))
    assert "headgate topic create" in str(missing.value)
    assert missing.value.step == "in"


@pytest.mark.parametrize(
    ("schema", "parts", "said"),
    [
        ("id INT", {"format": "xml"}, "'format' must be"),
        ("id INT, b INT", {"format": "raw"}, "one column"),
        ("id INT", {"metadata": "keys"}, "metadata must be one of"),
        ("id INT", {"metadata": "key AS id"}, "second column 'id'"),
        ("id INT", {"options": {"max_rows": "3"}}, "no option 'max_rows'"),
        ("id INT", {"options": {"max_records": "0"}}, "max_records must be"),
        ("id INT", {"options": {"on_data_loss": "x"}}, "on_data_loss"),
        ("id INT", {"start": "yesterday"}, "start must be 'earliest', 'latest' or a datetime"),
    ],
)
def test_should_say_what_is_wrong_with_a_source(
    system: System, reading: Reading, schema: str, parts: dict[str, Any], said: str
) -> None:
    with pytest.raises(GraphError, match=said):
        reading.go(system.source("t", schema, **parts))
