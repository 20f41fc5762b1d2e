"""Vectorised process functions: batches in and out, state as columns, keys over several batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.base.errors import GraphError, JobFailedError, UsageError
from headgate.testing import JobDriver, ProcessDriver

VISIT = "page STRING, user STRING, number BIGINT"


@dataclass
class Counted:
    page: str
    seen: int
    total: float
    last_user: str | None


class Count(hg.ArrowProcess):
    """Counts the visits of each page; a row of the other input resets it."""

    gives = Counted
    seen = hg.column_state(int)
    total = hg.column_state(float)
    last_user = hg.column_state(str)

    def on_resets(self, rows: pa.RecordBatch, ctx: hg.ArrowContext) -> None:
        gone = np.isin(np.arange(len(ctx.keys)), ctx.key_of.to_numpy())
        for state in (self.seen, self.total, self.last_user):
            state.set(pc.if_else(pa.array(gone), None, state.get()))
        ctx.count("resets", len(rows))

    def on_visits(self, rows: pa.RecordBatch, ctx: hg.ArrowContext) -> Iterator[pa.RecordBatch]:
        if pc.any(pc.equal(rows["number"], -1)).as_py():
            raise ValueError("minus one")
        size = len(ctx.keys)
        of = ctx.key_of.to_numpy()
        there = np.isin(np.arange(size), of)
        numbers = rows["number"].to_numpy()
        more = pa.array(np.bincount(of, minlength=size))
        sums = pa.array(np.bincount(of, weights=numbers, minlength=size))
        seen = pc.add(pc.fill_null(self.seen.get(), 0), more)
        total = pc.add(pc.fill_null(self.total.get(), 0.0), sums)
        users = self.last_user.get().to_pylist()
        for key, user in zip(of.tolist(), rows["user"].to_pylist(), strict=True):
            users[key] = user
        mask = pa.array(there)
        self.seen.set(pc.if_else(mask, seen, self.seen.get()))
        self.total.set(pc.if_else(mask, total, self.total.get()))
        self.last_user.set(users)
        reported = pa.record_batch(
            {
                "last_user": pa.array(users, pa.string()),
                "page": ctx.keys["page"],
                "seen": seen,
                "total": total,
            }
        )
        yield reported.filter(mask)


@hg.job("arrow")
def arrow(job: hg.Job) -> None:
    visits = job.source("visits", hg.topic("log:visits", schema=VISIT))
    resets = job.source("resets", hg.topic("log:resets", schema="page STRING"))
    job.process("count", Count(), resets=resets.key_by("page"), visits=visits.key_by("page")).sink(
        "out", hg.topic("log:out")
    )


def visits(number: int, count: int) -> list[dict[str, Any]]:
    """Pages of which some have many rows, and others one."""
    return [
        {"page": f"p{n % 7 if n % 3 else n % 40}", "user": f"u{number}.{n}", "number": n}
        for n in range(count)
    ]


def test_batches_give_what_rows_would(spark: SparkSession) -> None:
    truth: dict[str, dict[str, Any]] = {}
    limit = "spark.sql.execution.arrow.maxRecordsPerBatch"
    with JobDriver(arrow) as t:
        # the rows of most keys are in several batches
        t.spark.conf.set(limit, "6")
        for number, parallelism in ((0, None), (1, 3)):
            rows = visits(number, 120)
            t.send("visits", *rows)
            if parallelism:
                t.restore(t.savepoint(), parallelism=parallelism)
                t.send("resets", {"page": "p1"}, {"page": "p39"}, {"page": "new"})
                for gone in ("p1", "p39"):
                    truth.pop(gone, None)
            t.run()
            for row in rows:
                kept = truth.setdefault(
                    row["page"], {"page": row["page"], "seen": 0, "total": 0.0, "last_user": None}
                )
                kept["seen"] += 1
                kept["total"] += row["number"]
                kept["last_user"] = row["user"]
            latest: dict[str, dict[str, Any]] = {}
            for row in t.rows("out"):
                before = latest.get(row["page"])
                if before is None or row["seen"] > before["seen"]:
                    latest[row["page"]] = row
            assert latest == {row["page"]: truth[row["page"]] for row in rows}
        for name in ("seen", "total", "last_user"):
            found = {row["key"]["page"]: row[name] for row in t.state("count", name).all()}
            assert found == {page: kept[name] for page, kept in truth.items()}
        assert t.metrics("count")["resets"] == 3
        t.spark.conf.unset(limit)
        t.send("visits", {"page": "p1", "user": "x", "number": -1})
        with pytest.raises(JobFailedError) as caught:
            t.run()
        said = str(caught.value)
        assert "on_visits failed at " in said and f"{__file__}:" in said
        assert "ValueError: minus one, for 1 rows of 1 keys" in said


class Wrong(hg.ArrowProcess):
    gives = "page STRING, seen BIGINT"

    def on_visits(self, rows: pa.RecordBatch, ctx: hg.ArrowContext) -> None: ...


class WithValue(Wrong):
    seen = hg.value_state(int)


class NoColumns(Wrong):
    gives = "page SOMETHING"


class OfRows(hg.Process):
    seen = hg.column_state(int)

    def on_visits(self, row: Any, ctx: hg.Context) -> None: ...


@pytest.mark.parametrize(
    ("function", "options", "said"),
    [
        (WithValue(), {}, "'seen' is for functions of rows, and WithValue is one of batches"),
        (NoColumns(), {}, "NoColumns.gives must be columns"),
        (OfRows(), {}, "'seen' is for functions of batches, and OfRows is one of rows"),
        (Wrong(), {"on_error": "side"}, "on_error='side' needs a function of rows"),
    ],
)
def test_what_does_not_fit_is_refused(
    function: hg.Process, options: Any, said: str, spark: SparkSession
) -> None:
    @hg.job("wrong")
    def wrong(job: hg.Job) -> None:
        source = job.source("visits", hg.topic("log:visits", schema=VISIT))
        job.process("count", function, visits=source.key_by("page"), **options)

    with pytest.raises(GraphError) as caught:
        wrong.describe()
    assert said in str(caught.value) and caught.value.location is not None
    with pytest.raises((UsageError, GraphError)):
        ProcessDriver(function)


def test_its_rows_have_no_event_time(spark: SparkSession) -> None:
    from pyspark.sql import functions as F

    @hg.job("wrong")
    def wrong(job: hg.Job) -> None:
        source = job.source("visits", hg.topic("log:visits", schema=VISIT))
        made = job.process("count", Wrong(), visits=source.key_by("page"))
        made.key_by("page").window("w", hg.tumbling("1 minute"), F.count("*").alias("n"))

    with pytest.raises(GraphError, match="its function gives whole batches"):
        wrong.describe()


class Pages(hg.ArrowProcess):
    """As in the documents: columns by DDL, a count for each key of the rows."""

    gives = "page STRING, seen BIGINT, input STRING"
    seen = hg.column_state(int)

    def on_visits(self, rows: pa.RecordBatch, ctx: hg.ArrowContext) -> Iterator[pa.RecordBatch]:
        more = np.bincount(ctx.key_of, minlength=len(ctx.keys))
        seen = pc.add(pc.fill_null(self.seen.get(), 0), pa.array(more))
        self.seen.set(seen)
        yield self.reported(ctx, "visits")

    def on_looks(self, rows: pa.RecordBatch, ctx: hg.ArrowContext) -> Iterator[pa.RecordBatch]:
        yield self.reported(ctx, "looks")

    def reported(self, ctx: hg.ArrowContext, input: str) -> pa.RecordBatch:
        inputs = pa.array([input] * len(ctx.keys))
        return pa.record_batch({"page": ctx.keys["page"], "seen": self.seen.get(), "input": inputs})


@hg.job("pages")
def pages(job: hg.Job) -> None:
    visits = job.source("visits", hg.topic("log:visits", schema="page STRING"))
    looks = job.source("looks", hg.topic("log:looks", schema="page STRING"))
    given = job.process("pages", Pages(), visits=visits.key_by("page"), looks=looks.key_by("page"))
    given.sink("out", hg.topic("log:out"))


@pytest.mark.parametrize("together", [True, False])
def test_a_handler_sees_the_keys_of_its_own_rows(spark: SparkSession, together: bool) -> None:
    with JobDriver(pages, parallelism=1) as t:
        t.send("visits", *[{"page": page} for page in ("x", "y", "x")])
        if not together:
            t.run()
        t.send("looks", {"page": "q"}, {"page": "x"}).run()
        rows = sorted((r["input"], r["page"], r["seen"]) for r in t.rows("out") if r["page"] != "q")
        assert rows == [("looks", "x", 2), ("visits", "x", 2), ("visits", "y", 1)]
        kept = {row["key"]["page"]: row["seen"] for row in t.state("pages", "seen").all()}
        assert kept == {"x": 2, "y": 1}
