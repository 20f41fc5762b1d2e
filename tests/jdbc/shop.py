"""A job from an embedded topic into tables of a database, which tests crash, restore and fork."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
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
from tests.jdbc.server import Server

POINTS = ("before_transaction", "in_transaction", "after_transaction", "before_sink", "after_sink")
SCHEMA = "id BIGINT, user STRING, price BIGINT"
_numbers = itertools.count()
Build = Callable[[hg.SourceStream], None]


class Shop:
    """Orders of a topic with three partitions, by their users; tables that nobody else has."""

    def __init__(self, spark: SparkSession, folder: Path, server: Server) -> None:
        self.spark, self.server, self.folder = spark, server, folder
        self.home = folder / "home"
        self.topic = TopicFiles(folder / "orders")
        self.topic.create(3)
        self.job_name = f"shop{next(_numbers)}"

    def table(self, columns: str = 'id bigint, "user" varchar(20), price bigint') -> str:
        """A new table with these columns; without any its name alone."""
        name = f"t{next(_numbers)}"
        if columns:
            self.server.sql(f"CREATE TABLE {name} ({columns})")
        return name

    def sink(self, table: str, **given: Any) -> hg.JdbcSink:
        options = {**self.server.login, **given.pop("options", {})}
        return hg.JdbcSink(given.pop("url", self.server.url), table, options=options, **given)

    def send(self, rows: Iterable[Mapping[str, Any]], by: str = "user") -> None:
        """Records of one key go to one partition, in their order."""
        parts: dict[int, list[Record]] = {}
        for row in rows:
            parts.setdefault(hash_of(str(row.get(by))) % 3, []).append(Record(json.dumps(row)))
        for partition, records in parts.items():
            self.topic.append(records, partition=partition)

    def job(self, build: Build, schema: str = SCHEMA) -> hg.JobDef:
        @hg.job(self.job_name)
        def shop(job: hg.Job) -> None:
            build(job.source("orders", hg.topic(f"log:{self.topic.path}", schema=schema)))

        return shop

    def to(self, *sinks: hg.Sink, schema: str = SCHEMA) -> hg.JobDef:
        """All orders to these sinks."""

        def build(orders: hg.SourceStream) -> None:
            for number, sink in enumerate(sinks):
                orders.sink(f"out{number}", sink)

        return self.job(build, schema)

    def go(self, job: hg.JobDef, **options: Any) -> RunOutcome:
        outcome = run(
            job, home=str(self.home), bounded=True,
            **{"spark": self.spark, "parallelism": 2, **options},
        )  # fmt: skip
        if outcome.error is not None:
            raise outcome.error
        return outcome

    def crash(self, job: hg.JobDef, point: str) -> None:
        """Run into a failure at a point of the commit of the next batch."""
        known = Home(str(self.home)).job(self.job_name)
        current = known.current() if known.exists() else None
        jvm.arm_crash(self.spark, current.id if current else "r1", point)
        with pytest.raises(HeadgateError, match="a test requested"):
            self.go(job)

    def reason(self) -> str:
        """Why the current run has failed last."""
        current = Home(str(self.home)).job(self.job_name).current()
        assert current is not None
        return [str(e.details["reason"]) for e in current.events() if e.kind == "failed"][-1]


def hash_of(text: str) -> int:
    """The same in every process."""
    return sum((n + 1) * b for n, b in enumerate(text.encode()))


def orders(numbers: Iterable[int], users: int = 7) -> list[dict[str, Any]]:
    """Orders with sparse ids and few users."""
    return [{"id": n * 37, "user": f"u{n * 11 % users}", "price": n * 7 % 23 - 9} for n in numbers]
