"""Rows that would be lost become dead letters, and come back when they are replayed."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from pyspark.sql import Row
from pyspark.sql import functions as F

import headgate as hg
from headgate.base.errors import GraphError, UsageError
from headgate.connectors.letters import Letter
from headgate.connectors.topic_client import TopicRecord
from headgate.testing import JobDriver, assert_crash_safe

Make = Callable[..., JobDriver]
USER = "id BIGINT, name STRING"
ORDER = "id BIGINT, user_id BIGINT, price DOUBLE, at TIMESTAMP"


@dataclass
class Checked:
    id: int


class Check(hg.Process):
    """Fails for orders that cost less than nothing."""

    def on_orders(self, order: Row, ctx: hg.Context) -> hg.Out[Checked]:
        if order.price < 0:
            raise ValueError(f"order {order.id} costs {order.price}")
        yield Checked(order.id)


def shop(job: hg.Job) -> None:
    users = job.table("users", hg.topic("log:users", schema=USER), key="id")
    orders = job.source(
        "orders", hg.topic("log:orders", schema=ORDER), event_time=hg.event_time("at")
    )
    found = orders.lookup("users_lookup", users, on="user_id", take=["name"], missing="side")
    found.sink("enriched", hg.topic("log:enriched"))
    keyed = found.key_by("user_id")
    minutes = keyed.window("minutes", hg.tumbling("1 minute"), F.count("*").alias("n"))
    minutes.select("user_id", "n").sink("counts", hg.topic("log:counts"))
    job.process("checks", Check(), orders=keyed, on_error="side").sink(
        "checked", hg.topic("log:checked")
    )
    other = orders.where("price > 100").lookup("dear", users, on="user_id", missing="side")
    other.sink("dear_known", hg.topic("log:dear"))
    other.missing.sink("dear_unknown", hg.topic("log:unknown"))


plain = hg.job("letters")(shop)
lettered = hg.job("letters", dead_letters="log:letters")(shop)


def order(id: int, user: int, at: str, price: float = 1.5) -> dict[str, Any]:
    return {"id": id, "user_id": user, "price": price, "at": f"2026-01-01T{at}Z"}


def letters(t: JobDriver) -> list[Letter]:
    """The new letters, by step."""
    found = []
    for row in t.rows("dead_letters"):
        headers = tuple(row["headers"].items())
        letter = Letter.of(TopicRecord(0, 0, 0, row["key"], row["value"], headers))
        assert letter is not None and letter.job == "letters"
        found.append(letter)
    return sorted(found, key=lambda letter: (letter.step, letter.value or ""))


def again(t: JobDriver, *given: Letter) -> None:
    """Replay letters as the command does."""
    for letter in given:
        t.send(f"{letter.step}.replay", letter.replayed("p1").value or "")


def ids(t: JobDriver, sink: str) -> list[int]:
    return sorted(row["id"] for row in t.rows(sink))


def test_letters_say_what_was_lost_and_come_back_as_they_were(job_driver: Make) -> None:
    t = job_driver(lettered).send("users", {"id": 1, "name": "Ann"})
    t.send("orders", order(1, 1, "12:00:10"), order(2, 2, "12:00:20.123456"), "{not json")
    t.send("orders", order(3, 1, "12:00:25", -1), order(4, 9, "12:00:26", 500)).run()
    failed, malformed, lost, dear = letters(t)
    assert ids(t, "enriched") == [1, 3] and ids(t, "dear_unknown") == [4]

    told = dict(lost.headers)
    assert told.pop("time") == malformed.headers["time"] == failed.headers["time"]
    assert told == {
        "job": "letters", "step": "users_lookup", "output": "missing",
        "exception": "TABLE_ROW_MISSING",
        "message": "the table 'users' has no row of this key",
        "topic": "log:orders", "partition": "0", "offset": "1",
        "event_time": "2026-01-01T12:00:20.123456Z",
    }  # fmt: skip
    assert (lost.key, dear.key) == ("2", "9")
    assert json.loads(lost.value or "") == order(2, 2, "12:00:20.123456")
    assert (malformed.key, malformed.value) == (None, "{not json")
    assert malformed.headers["exception"] == "MALFORMED_RECORD"
    assert (malformed.headers["partition"], malformed.headers["offset"]) == ("0", "2")
    assert malformed.headers["message"].startswith("not valid JSON")
    assert (failed.step, failed.output) == ("checks", "errors")
    assert failed.headers["message"].startswith("ValueError: order 3 costs -1.0 at ")

    t.send("users", {"id": 2, "name": "Bob"})
    again(t, lost, malformed)
    t.run()
    (row,) = t.rows("enriched")
    assert (row["id"], row["name"]) == (2, "Bob")
    (same,) = letters(t)  # it is as malformed as it was
    assert same.value == malformed.value
    for name in ("step", "output", "topic", "partition", "offset", "timestamp"):
        assert same.headers[name] == malformed.headers[name], name

    # the replayed row was counted in its minute, and moved no watermark
    t.send("orders", order(5, 1, "12:10:00")).run()
    t.send("orders", order(6, 1, "12:00:30")).run()
    counts = {(row["user_id"], row["n"]) for row in t.rows("counts")}
    assert counts == {(1, 2), (2, 1)}
    (late,) = letters(t)
    assert (late.step, late.output, late.key) == ("minutes", "late", "1")
    assert json.loads(late.value or "") == {**order(6, 1, "12:00:30"), "name": "Ann"} | {
        "at": "2026-01-01T12:00:30.000000Z"
    }
    assert "topic" not in late.headers  # windows do not know it

    again(t, lost)  # with the time that it had, for which it is late now
    t.run()
    (late,) = letters(t)
    assert late.step == "minutes" and json.loads(late.value or "")["id"] == 2
    assert t.metrics("users_lookup.replay")["records_out"] == 2
    assert t.metrics("orders.replay")["records_out_malformed"] == 1
    assert t.metrics("dead_letters")["records_in"] == 7


def test_a_running_job_gets_dead_letters_and_loses_nothing(job_driver: Make) -> None:
    t = job_driver(plain).send("users", {"id": 1, "name": "Ann"})
    t.send("orders", order(1, 1, "12:00:10"), order(2, 2, "12:00:20")).run()
    before = t.state("users_lookup").all()
    t.restore(job=lettered)
    t.send("orders", order(3, 1, "12:00:30"), "{not json", order(4, 2, "12:00:40")).run()
    assert t.state("users_lookup").all() == before
    assert ids(t, "enriched") == [1, 3]
    assert [letter.step for letter in letters(t)] == ["orders", "users_lookup"]
    t.restore(job=plain)
    t.send("orders", order(5, 1, "12:05:00")).run()
    t.send("orders", order(6, 1, "12:05:00")).run()
    assert [(row["user_id"], row["n"]) for row in t.rows("counts")] == [(1, 2)]
    assert ids(t, "enriched") == [5, 6]


@pytest.mark.slow
def test_letters_are_the_same_wherever_the_job_dies() -> None:
    script: list[tuple[str, Any]] = [("users", {"id": 1, "name": "Ann"})]
    for at in range(12):
        script.append(("orders", order(at, at % 3, f"12:0{at % 5}:00", at - 6)))
    assert_crash_safe(lettered, [*script, ("orders", "{not json")])


def test_a_source_that_says_fail_fails_in_spite_of_dead_letters(job_driver: Make) -> None:
    @hg.job("strict", dead_letters="log:letters")
    def strict(job: hg.Job) -> None:
        orders = hg.topic("log:orders", schema=ORDER)
        job.source("orders", orders, malformed="fail").sink("out", hg.topic("log:out"))

    assert [step.id for step in strict.describe().steps] == ["orders", "out"]
    t = job_driver(strict).send("orders", "{not json")
    with pytest.raises(hg.JobFailedError, match="order"):
        t.run()


def test_the_steps_of_a_job_keep_their_identity() -> None:
    was, now = plain.describe(), lettered.describe()
    assert len(was.warnings) == 3 and not now.warnings
    for step in was.steps:
        same = now.step(step.id)
        assert (same.operator_id, same.state_schema) == (step.operator_id, step.state_schema)
        if step.id != "orders":
            assert same.config == step.config
    assert (was.step("orders").config["malformed"], now.step("orders").config["malformed"]) == (
        "fail",
        "side",
    )
    new = {step.id: step for step in now.steps if step.named and step.id not in map(_id, was.steps)}
    assert {id: step.kind for id, step in new.items()} == {
        "orders.replay": "replay", "users_lookup.replay": "replay", "dead_letters": "sink",
    }  # fmt: skip
    assert new["orders.replay"].address == "log:letters.replay"


def _id(step: Any) -> str:
    return str(step.id)


def test_dead_letters_go_to_any_topic() -> None:
    def of(given: Any, **params: str) -> Any:
        return hg.job("letters", dead_letters=given)(shop).describe(params)

    graph = of("kafka://{servers}/dlq", servers="a:9092")
    assert graph.step("dead_letters").address == "kafka://a:9092/dlq"
    assert graph.step("users_lookup.replay").address == "kafka://a:9092/dlq.replay"
    graph = of(lambda job: hg.topic(job.param("letters", "pulsar://a:6650/dlq")))
    assert graph.step("dead_letters").address == "pulsar://a:6650/dlq"
    assert not [step for step in graph.steps if step.kind == "replay"]
    with pytest.raises(UsageError, match="the parameter 'servers' is not set"):
        of("kafka://{servers}/dlq")
    with pytest.raises(GraphError, match="dead_letters must be a topic"):
        of(hg.FilesSink("letters"))


def test_changes_of_a_database_are_not_replayed() -> None:
    def changes(job: hg.Job, **how: Any) -> None:
        rows = hg.topic("kafka://a:9092/users", schema=USER, format="debezium-json")
        source = job.source("users", rows, key="id", **how)
        source.sink("out", hg.topic("log:out", key="id"))

    @hg.job("strict", dead_letters="log:letters")
    def strict(job: hg.Job) -> None:
        changes(job)

    @hg.job("aside", dead_letters="log:letters")
    def aside(job: hg.Job) -> None:
        changes(job, malformed="side")

    assert [step.id for step in strict.describe().steps] == ["users", "out"]
    assert [step.kind for step in aside.describe().steps if step.kind in ("letter", "replay")] == [
        "letter"
    ]
