"""Dead letters go to their step again, each once, whoever dies in the middle."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.cli.main import invoke
from headgate.home.replays import replays, write_replay
from tests.dead_letters.shop import FIXED, Shop
from tests.kafka.client import Kafka

STRANGERS = 25
"""Users who never come."""


def replayed(shop: Shop, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    capsys.readouterr()
    assert invoke(shop.command("--json", *more)) == 0
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    return data


def counted(shop: Shop, capsys: pytest.CaptureFixture[str]) -> dict[str, dict[str, Any]]:
    capsys.readouterr()
    assert invoke(["show", "shop", "--steps", "--json", "--home", shop.home]) == 0
    return {step["step"]: step for step in json.loads(capsys.readouterr().out)["steps"]}


def letters_are_exact(shop: Shop) -> None:
    """Each order that was lost is in one letter, which can be traced to its record."""
    found = shop.found()
    lost = {("users_lookup", "missing"): shop.orders, ("orders", "malformed"): shop.wrong}
    for (step, output), rows in lost.items():
        own = [letter for letter in found if (letter.step, letter.output) == (step, output)]
        want = sorted(json.dumps(row) for row in rows)
        assert sorted(json.dumps(json.loads(letter.value or "")) for letter in own) == want
        for letter in own:
            row = json.loads(letter.value or "")
            assert letter.headers["topic"] == shop.address("orders")
            assert letter.key == str(row["user_id" if output == "missing" else "id"])
    places = Counter((x.headers["partition"], x.headers["offset"]) for x in found)
    assert len(places) == len(found) == 1040 and set(places.values()) == {1}
    assert len({letter.headers["time"] for letter in found}) == 1  # they are of one batch


def a_fix_and_a_replay(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.send("orders", [*shop.orders, *shop.wrong], "id")
    first = shop.job()
    shop.crash("mid_sink", first)
    shop.go(first)
    letters_are_exact(shop)
    assert not shop.rows("enriched")

    known = shop.users[STRANGERS:]
    shop.send("users", [{"id": user, "name": f"user {user}"} for user in known], "id")
    fixed = shop.job(FIXED)
    shop.killed(4)
    assert replays(shop.job_home)[-1].ended_at is None
    shop.crash("after_sink", fixed)
    again = replayed(shop, capsys)
    assert again["letters"] == {"users_lookup.missing": 1000, "orders.malformed": 40}
    assert again["before"] == 0
    # the same command tells the same if the first was killed between its last letter and its end
    ended = replays(shop.job_home)[-1]
    write_replay(shop.job_home, replace(ended, ended_at=None, letters={}))
    assert replayed(shop, capsys) == again
    assert replays(shop.job_home)[-1].letters == ended.letters == again["letters"]
    shop.crash("mid_sink", fixed)
    shop.go(fixed)

    truth = Counter(
        (row["id"], row["user_id"], float(row["price"]), f"user {row['user_id']}")
        for row in [*shop.orders, *shop.wrong]
        if row["user_id"] in set(known)
    )
    assert shop.enriched() == truth and truth.total() > 1000
    lost = 1040 - truth.total()
    assert len(shop.found()) == 1040 + lost  # what is missing again is a letter again
    told = counted(shop, capsys)
    assert told["users_lookup.replay"]["records_out"] == 1000
    assert told["orders.replay"]["records_out"] == 40
    assert told["dead_letters"]["records_in"] == 1040 + lost
    assert told["users_lookup"]["missing"] == 1000 + lost

    more = replayed(
        shop, capsys, "--where", "step = 'users_lookup' AND json_extract(value, '$.price') < 0"
    )
    assert more["replay"] is None and not more["letters"]
    only = replayed(shop, capsys, "--limit", "3", "--dry-run")
    assert only["letters"] == {"users_lookup.missing": 3} and only["before"] == 1040
    rest = replayed(shop, capsys)
    assert rest["letters"] == {"users_lookup.missing": lost}
    shop.go(fixed)
    assert shop.enriched() == truth and len(shop.found()) == 1040 + 2 * lost


@pytest.mark.slow
def test_a_thousand_letters_of_a_log_are_each_enriched_once(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a_fix_and_a_replay(Shop(spark, tmp_path, lambda name: f"log:{tmp_path / name}"), capsys)


@pytest.mark.long
def test_a_thousand_letters_in_kafka_are_each_enriched_once(
    spark: SparkSession, tmp_path: Path, kafka_servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    own = Kafka(kafka_servers, calm=True).topic(1)
    shop = Shop(spark, tmp_path, lambda name: f"kafka://{kafka_servers}/{own}.{name}")
    a_fix_and_a_replay(shop, capsys)
