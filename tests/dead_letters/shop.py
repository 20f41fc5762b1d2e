"""A store whose users come late and whose orders do not fit its first schema."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate import jvm
from headgate.base.errors import HeadgateError
from headgate.connectors.letters import Letter
from headgate.connectors.topic_client import NewTopic
from headgate.connectors.topics import open_topic
from headgate.home.layout import Home, JobHome
from headgate.runtime.run import run
from tests.kafka.client import Kafka, Send

FIRST = "id BIGINT, user_id BIGINT, price INT"
FIXED = "id BIGINT, user_id BIGINT, price DOUBLE"
Address = Callable[[str], str]


class Shop:
    """Orders of 1,000 users that nobody knows yet, some with prices of the wrong type."""

    def __init__(self, spark: SparkSession, folder: Path, address: Address) -> None:
        self.spark, self.home, self.address = spark, str(folder / "home"), address
        self.letters = address("dlq")
        for name in ("users", "orders", "enriched", "dlq"):
            open_topic(address(name)).create(NewTopic(2))
        dice = random.Random(21)
        self.users = dice.sample(range(10**9), 1000)
        self.orders = [
            {"id": at, "user_id": user, "price": at % 90 + 1}
            for at, user in zip(dice.sample(range(10**12), 1000), self.users, strict=True)
        ]
        self.wrong = [
            {"id": at, "user_id": dice.choice(self.users), "price": at % 90 + 0.5}
            for at in dice.sample(range(10**12, 10**13), 40)
        ]

    def send(self, topic: str, rows: Sequence[dict[str, Any]], key: str) -> None:
        lines = [(json.dumps(row), str(row[key])) for row in rows]
        if self.address(topic).startswith("kafka:"):
            servers, name = self.address(topic).removeprefix("kafka://").split("/")
            Kafka(servers, calm=True).send(name, [Send(value, key) for value, key in lines])
        else:
            from headgate.connectors.log.files import Record, TopicFiles

            path = self.address(topic).removeprefix("log:")
            TopicFiles(path).append([Record(value, key) for value, key in lines])

    def job(self, schema: str = FIRST, *, letters: bool = True, **options: Any) -> hg.JobDef:
        @hg.job("shop", dead_letters=self.letters if letters else None)
        def shop(job: hg.Job) -> None:
            user = hg.topic(self.address("users"), schema="id BIGINT, name STRING")
            users = job.table("users", user, key="id")
            order = hg.topic(self.address("orders"), schema=schema)
            orders = job.source("orders", order, **options)
            found = orders.lookup(
                "users_lookup", users, on="user_id", take=["name"], missing="side"
            )
            found.sink("enriched", hg.topic(self.address("enriched"), key="id"))

        return shop

    @property
    def job_home(self) -> JobHome:
        return Home(self.home).job("shop")

    def go(self, job: hg.JobDef) -> None:
        outcome = run(job, home=self.home, bounded=True, spark=self.spark, parallelism=2)
        if outcome.error is not None:
            raise outcome.error

    def crash(self, point: str, job: hg.JobDef) -> None:
        """Die at a point of the next batch, in the run that goes on or in one that begins."""
        runs = [r.id for r in self.job_home.runs()]
        names = [f"r{len(runs) + 1}", *runs[-1:]]
        for name in names:
            jvm.arm_crash(self.spark, name, point)
        try:
            with pytest.raises(HeadgateError, match="a test requested"):
                self.go(job)
        finally:
            for name in names:
                jvm.disarm_crash(self.spark, name)

    def rows(self, topic: str) -> list[dict[str, Any]]:
        records = [r for r in open_topic(self.address(topic)).read("earliest") if r is not None]
        return [json.loads(r.value or "") for r in records]

    def found(self) -> list[Letter]:
        records = [r for r in open_topic(self.letters).read("earliest") if r is not None]
        letters = [Letter.of(r) for r in records]
        assert None not in letters
        return [letter for letter in letters if letter is not None]

    def enriched(self) -> Counter[tuple[int, int, float, str]]:
        return Counter(
            (r["id"], r["user_id"], r["price"], r["name"]) for r in self.rows("enriched")
        )

    def command(self, *more: str) -> list[str]:
        return ["replay", self.letters, "--job", "shop", "--home", self.home, *more]

    def killed(self, chunks: int, *more: str) -> None:
        """The command, which dies at its n-th chunk."""
        program = [sys.executable, "-m", "tests.dead_letters.killed", str(chunks)]
        died = subprocess.run([*program, *self.command(*more)], capture_output=True, check=False)
        assert died.returncode == -9, died.stderr.decode()
