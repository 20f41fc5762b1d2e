"""A job with two sinks of a broker, which tests crash, restore and fork."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate import jvm
from headgate.base.errors import HeadgateError
from headgate.connectors.log.files import Record, TopicFiles
from headgate.home.layout import Home
from headgate.runtime.run import RunOutcome, run
from tests.brokers.systems import System

SCHEMA = "id BIGINT, url STRING"
TASK_POINTS = ("before_transaction", "in_transaction", "after_transaction")


class Pipe:
    """Visits to two topics of the system: those of known users to one, the others to the other."""

    def __init__(self, spark: SparkSession, folder: Path, system: System) -> None:
        self.spark, self.system, self.home = spark, system, str(folder / "home")
        self.users, self.visits = TopicFiles(folder / "users"), TopicFiles(folder / "visits")
        self.users.create(2)
        self.visits.create(3)
        self.users.append([Record(json.dumps({"id": n}), str(n)) for n in range(0, 500, 5)])
        self.known, self.unknown = system.topic(2), system.topic(1)
        self.sent: list[int] = []

    def job(self, *, stateless: bool = False, **options: str) -> hg.JobDef:
        @hg.job("pipe")
        def pipe(job: hg.Job) -> None:
            visits = job.source("visits", hg.topic(f"log:{self.visits.path}", schema=SCHEMA))
            if stateless:
                known = visits.where("id % 5 = 0")
                unknown = visits.where("id % 5 <> 0")
            else:
                users = job.table(
                    "users", hg.topic(f"log:{self.users.path}", schema="id BIGINT"), key="id"
                )
                found = visits.lookup("who", users, on="id", missing="side")
                known, unknown = found, found.missing
            for name, rows, topic in (
                ("known", known, self.known), ("unknown", unknown, self.unknown)
            ):  # fmt: skip
                rows.sink(name, hg.topic(self.system.address(topic), key="id", **options))

        return pipe

    def sinking(self, *sinks: hg.Sink, schema: str = SCHEMA) -> hg.JobDef:
        """All visits to these sinks."""

        @hg.job("pipe")
        def job(job: hg.Job) -> None:
            visits = job.source("visits", hg.topic(f"log:{self.visits.path}", schema=schema))
            for number, sink in enumerate(sinks):
                visits.sink(f"out{number}", sink)

        return job

    def sink(self, topic: str, **parts: Any) -> hg.Sink:
        return self.system.sink(topic, **parts)

    def send(self, numbers: range) -> None:
        self.visits.append([Record(json.dumps({"id": n, "url": f"/{n}"}), str(n)) for n in numbers])
        self.sent += numbers

    def go(self, job: hg.JobDef | None = None, **options: Any) -> RunOutcome:
        outcome = run(
            job or self.job(), home=self.home, bounded=True, spark=self.spark, parallelism=3,
            **options,
        )  # fmt: skip
        if outcome.error is not None:
            raise outcome.error
        return outcome

    def crash(self, point: str, job: hg.JobDef | None = None) -> None:
        """Run into a failure at a point of the commit of the next batch."""
        current = Home(self.home).job("pipe").current()
        jvm.arm_crash(self.spark, current.id if current else "r1", point)
        with pytest.raises(HeadgateError, match="a test requested"):
            self.go(job)

    def reasons(self) -> list[str]:
        """Why the current run has failed, each time that it has."""
        current = Home(self.home).job("pipe").current()
        assert current is not None
        return [e.details["reason"] for e in current.events() if e.kind == "failed"]

    def ids(self, topic: str) -> list[int]:
        """The field `id` of all values, sorted."""
        return sorted(json.loads(m.value or "")["id"] for m in self.system.read(topic))

    def written(self) -> Counter[int]:
        """How often each visit is in an output; one in the wrong topic counts as -1."""
        found: Counter[int] = Counter()
        for topic, right in ((self.known, True), (self.unknown, False)):
            for message in self.system.read(topic):
                row = json.loads(message.value or "")
                number = row["id"]
                in_place = (number % 5 == 0 and number < 500) is right
                assert message.key == str(number) and row["url"] == f"/{number}"
                found[number if in_place else -1] += 1
        return found

    def assert_exact(self) -> None:
        assert self.written() == Counter(self.sent)
