"""Rows that would be lost become dead letters, and come back when they are replayed."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import headgate as hg
from headgate.connectors.letters import Letter
from headgate.connectors.topic_client import TopicRecord
from headgate.testing import JobDriver

Make = Callable[..., JobDriver]
USER = "id BIGINT, name STRING"
ORDER = "id BIGINT, user_id BIGINT, at TIMESTAMP"
IN_HEADERS = "__headgate.errors."


@hg.job("letters", dead_letters="log:letters")
def letters(job: hg.Job) -> None:
    users = job.table("users", hg.topic("log:users", schema=USER), key="id")
    orders = job.source(
        "orders", hg.topic("log:orders", schema=ORDER), event_time=hg.event_time("at")
    )
    found = orders.lookup("users_lookup", users, on="user_id", take=["name"], missing="side")
    found.sink("enriched", hg.topic("log:enriched"))


def told(row: dict[str, Any]) -> dict[str, str]:
    return {k.removeprefix(IN_HEADERS): v for k, v in row["headers"].items()}


def again(t: JobDriver, row: dict[str, Any], replay: str = "p1") -> None:
    """Replay a letter as the command does."""
    headers = tuple(row["headers"].items())
    letter = Letter.of(TopicRecord(0, 0, 0, row["key"], row["value"], headers))
    assert letter is not None
    t.send(f"{letter.step}.replay", letter.replayed(replay).value or "")


def test_letters_say_what_was_lost_and_come_back_as_they_were(job_driver: Make) -> None:
    t = job_driver(letters)
    t.send("users", {"id": 1, "name": "Ann"})
    t.send("orders", {"id": 7, "user_id": 1, "at": "2026-01-01T12:00:00.123456Z"})
    t.send("orders", {"id": 8, "user_id": 2, "at": "2026-01-01T12:00:00.123456Z"}, "{not json")
    t.run()
    assert [row["id"] for row in t.rows("enriched")] == [7]
    found = {told(row)["step"]: row for row in t.rows("dead_letters")}
    print(json.dumps(found, indent=1, default=str))
    assert set(found) == {"orders", "users_lookup"}
    for row in found.values():
        again(t, row)
    t.send("users", {"id": 2, "name": "Bob"})
    t.run()
    print(t.rows("enriched"), t.rows("dead_letters"))
    assert False
