"""Mistakes in process functions: reported with the user's line, before a run if possible."""

from __future__ import annotations

import os
import signal
import sys
import threading
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

import headgate as hg
from headgate.base.errors import GraphError, JobFailedError
from headgate.testing import JobDriver, ProcessDriver

HERE = __file__


def line_of(text: str) -> int:
    """Where some code is in this file."""
    with open(__file__) as file:
        return next(n for n, line in enumerate(file, 1) if text in line and "line_of" not in line)


@dataclass
class Checked:
    key: str
    n: int

    def __post_init__(self) -> None:
        if self.n < 0:
            raise ValueError("negative")


@dataclass
class Reported:
    key: str
    n: int


def job_of(function: hg.Process, on_error: Any = "fail") -> hg.JobDef:
    @hg.job("mistakes")
    def made(job: hg.Job) -> None:
        rows = job.source("rows", hg.topic("log:rows", schema="key STRING, n BIGINT"))
        given = job.process("faulty", function, on_error=on_error, rows=rows.key_by("key"))
        given.sink("out", hg.topic("log:out"))
        if on_error == "side":
            given.errors.sink("errors", hg.topic("log:errors"))

    return made


class Picky(hg.Process):
    def on_rows(self, row: Checked, ctx: hg.Context) -> hg.Out[Reported]:
        yield Reported(row.key, row.n)


def test_a_row_that_its_dataclass_refuses_goes_aside(spark: SparkSession) -> None:
    rows = [{"key": "a", "n": n} for n in (1, -1, 2)]
    with JobDriver(job_of(Picky(), "side")) as t:
        t.send("rows", *rows).run()
        assert [r["n"] for r in t.rows("out")] == [1, 2]
        [error] = t.rows("errors")
        assert error["row"] == "{'key': 'a', 'n': -1}"
        assert error["error"] == "ValueError: negative"
        assert error["location"] == f"{HERE}:{line_of('raise ValueError(')}"
        driver = ProcessDriver(Picky(), on_error="side")
        assert [o.n for row in rows for o in driver.send("rows", row, key={"key": "a"})] == [1, 2]
        assert driver.errors == [error]
    with JobDriver(job_of(Picky())) as t:
        t.send("rows", *rows)
        with pytest.raises(JobFailedError, match="on_rows failed") as caught:
            t.run()
        assert "ValueError: negative, for the key key='a' and the row" in str(caught.value)
        assert caught.value.step == "faulty"


class Slip(hg.Process):
    def on_rows(self, row: Reported, ctx: hg.Context) -> hg.Out[Reported]:
        yield from self.more(row)

    def more(self, row: Reported) -> hg.Out[Reported]:
        yield Reported(row.key, str(row.n))  # type: ignore[arg-type]


def test_a_wrong_value_is_told_with_the_line_that_yields_it(spark: SparkSession) -> None:
    line = line_of("yield Reported(row.key, str(row.n))")
    with JobDriver(job_of(Slip())) as t:
        t.send("rows", {"key": "a", "n": 1})
        with pytest.raises(JobFailedError, match=rf"on_rows failed at {HERE}:{line} with"):
            t.run()
    driver = ProcessDriver(Slip(), on_error="side")
    driver.send("rows", Reported("a", 1), key="a")
    assert driver.errors[0]["location"] == f"{HERE}:{line}"


class OneText(hg.Process):
    def on_rows(self, row: Reported, ctx: hg.Context) -> hg.Out[str]:
        return row.key  # a text is many texts, of a letter each


class OneRow(hg.Process):
    def on_rows(self, row: Reported, ctx: hg.Context) -> hg.Out[Reported]:
        return row  # type: ignore[return-value]


class SomeRows(hg.Process):
    again = hg.timer("processing")

    def on_rows(self, row: Reported, ctx: hg.Context) -> hg.Out[Reported]:
        self.again.set(ctx.processing_time + timedelta(seconds=1))
        return [row, Reported(row.key, -row.n)] if row.n else None  # type: ignore[return-value]

    def on_again(self, ctx: hg.Context) -> hg.Out[Reported]:
        return map(Reported, ctx.key, [0])


@pytest.mark.parametrize("function", [OneText(), OneRow()])
def test_a_handler_that_returns_one_row_is_refused(
    spark: SparkSession, function: hg.Process
) -> None:
    line = line_of(f"class {type(function).__name__}(") + 1
    said = rf"on_rows failed at {HERE}:{line} with .*what on_rows returns must be rows, yielded or"
    with JobDriver(job_of(function)) as t:
        t.send("rows", {"key": "abc", "n": 1})
        with pytest.raises(JobFailedError, match=said):
            t.run()
    driver = ProcessDriver(function, on_error="side")
    driver.send("rows", Reported("abc", 1), key="abc")
    assert driver.errors[0]["location"] == f"{HERE}:{line}"


def test_a_handler_may_return_rows() -> None:
    driver = ProcessDriver(SomeRows())
    assert driver.send("rows", Reported("a", 2), key="a") == [Reported("a", 2), Reported("a", -2)]
    assert driver.send("rows", Reported("b", 0), key="b") == []
    fired = driver.advance_processing_time("1 second")
    assert sorted(fired, key=lambda reported: reported.key) == [Reported("a", 0), Reported("b", 0)]


HALF = "\ud800"  # of a pair of UTF-16: json.loads gives it, and nothing can write it


class Half(hg.Process):
    def on_rows(self, row: Reported, ctx: hg.Context) -> hg.Out[str]:
        yield "ü" if row.n else HALF


class HalfState(hg.Process):
    seen = hg.map_state(str, list[str])

    def on_rows(self, row: Reported, ctx: hg.Context) -> hg.Out[str]:
        yield "ü"
        self.seen["ü"] = ["ü"] if row.n else [HALF]


class Leaves(hg.Process):
    def on_rows(self, row: Reported, ctx: hg.Context) -> hg.Out[str]:
        if row.n == 0:
            sys.exit("good bye")
        yield "ü"


class Slammed(hg.Process):
    def close(self) -> None:
        raise OSError("the door is stuck")

    def on_rows(self, row: Reported, ctx: hg.Context) -> hg.Out[str]:
        yield row.key


class Returned(hg.ArrowProcess):
    gives = "key STRING, n BIGINT"

    def on_rows(self, rows: pa.RecordBatch, ctx: hg.ArrowContext) -> Any:
        return rows


class Converted(hg.ArrowProcess):
    gives = "key STRING, n BIGINT"

    def on_rows(self, rows: pa.RecordBatch, ctx: hg.ArrowContext) -> Any:
        yield pa.record_batch({"key": rows["n"], "n": rows["n"]})


class Closed(hg.Process):
    def open(self) -> None:
        raise OSError("no such door")

    def on_rows(self, row: Reported, ctx: hg.Context) -> hg.Out[str]:
        yield row.key


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (Half(), f"on_rows failed at {HERE}:.*what on_rows yields must be str that fits STRING"),
        (HalfState(), f"on_rows failed at {HERE}:.* must be str that fits STRING"),
        (Leaves(), f"on_rows failed at {HERE}:.* with SystemExit: good bye, for the key key='a'"),
        (Closed(), f"open failed at {HERE}:.*no such door"),
        (Slammed(), f"close failed at {HERE}:.*the door is stuck, after the last row"),
        (
            Returned(),
            f"on_rows failed at {HERE}:.*on_rows returns must be rows, yielded or in a list",
        ),
        (
            Converted(),
            f"on_rows failed at {HERE}:.*the column key .* fits STRING, got .*int64",
        ),
    ],
)
def test_the_step_is_named_whatever_fails(
    spark: SparkSession, function: hg.Process, said: str
) -> None:
    with JobDriver(job_of(function)) as t:
        t.send("rows", {"key": "a", "n": 0})
        with pytest.raises(JobFailedError, match=said) as caught:
            t.run()
        assert caught.value.step == "faulty"


@pytest.mark.parametrize("function", [Half(), HalfState(), Leaves()])
def test_whatever_fails_for_a_row_goes_aside(spark: SparkSession, function: hg.Process) -> None:
    with JobDriver(job_of(function, "side")) as t:
        t.send("rows", {"key": "a", "n": 0}, {"key": "a", "n": 1}).run()
        assert t.rows("out") == [{"value": "ü"}]
        assert [row["handler"] for row in t.rows("errors")] == ["on_rows"]


class Locked(hg.Process):
    def __init__(self) -> None:
        self.lock = threading.Lock()

    def on_rows(self, row: Reported, ctx: hg.Context) -> hg.Out[str]:
        yield row.key


class Silent(hg.Process):
    def on_rows(self, row: Reported, ctx: hg.Context) -> None: ...


class SaysNothing(hg.Process):
    def on_rows(self, row: Reported, ctx: hg.Context) -> None:
        yield row  # type: ignore[misc]


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (Locked(), "Locked.lock cannot be sent to the workers"),
        (Silent(), "'faulty' gives no rows here"),
        (SaysNothing(), "SaysNothing.on_rows yields, but its annotation says"),
    ],
)
def test_it_is_refused_before_anything_runs(
    spark: SparkSession, function: hg.Process, said: str
) -> None:
    with pytest.raises(GraphError, match=said) as caught:
        job_of(function).describe()
    assert caught.value.location is not None


class Overdue(hg.Process):
    due = hg.timer("event")

    def on_rows(self, row: Checked, ctx: hg.Context) -> hg.Out[Reported]:
        if row.n == 0:
            raise ValueError("none")
        assert ctx.timestamp is not None
        self.due.set(ctx.timestamp + timedelta(minutes=row.n))
        yield Reported(row.key, row.n)

    def on_due(self, ctx: hg.Context) -> None:
        raise ValueError("too late")


@hg.job("overdue")
def overdue(job: hg.Job) -> None:
    rows = job.source(
        "rows", hg.topic("log:rows", schema="key STRING, n BIGINT, at TIMESTAMP"),
        event_time=hg.event_time("at"),
    )  # fmt: skip
    checked = job.process("check", Overdue(), on_error="side", rows=rows.key_by("key"))
    checked.sink("out", hg.topic("log:out"))
    per_hour = checked.errors.key_by("error").window(
        "per_hour", hg.tumbling("1 hour"), F.count("*").alias("n")
    )
    per_hour.sink("errors", hg.topic("log:errors"))


def test_errors_have_the_time_of_their_row_or_timer(spark: SparkSession) -> None:
    with JobDriver(overdue) as t:
        for key, n, at in (
            ("a", -1, "12:10"),  # refused by its dataclass
            ("b", 0, "12:20"),  # refused by the handler
            ("c", 0, "13:20"),
            ("d", 100, "12:30"),  # whose timer fails at ten past two
        ):
            t.send("rows", {"key": key, "n": n, "at": f"2026-01-01T{at}:00"})
        t.advance_watermark("rows", "2026-01-01T14:30:00").run()
        t.advance_watermark("rows", "2026-01-01T21:00:00").run()
        counted = {(r["error"], r["window_start"].hour, r["n"]) for r in t.rows("errors")}
    assert counted == {
        ("ValueError: negative", 12, 1),
        ("ValueError: none", 12, 1),
        ("ValueError: none", 13, 1),
        ("ValueError: too late", 14, 1),
    }


class Shot(hg.Process):
    def on_rows(self, row: Reported, ctx: hg.Context) -> hg.Out[Reported]:
        if row.n == 1500:
            os.kill(os.getpid(), signal.SIGKILL)
        yield row


@pytest.mark.parametrize("count", [1501, 30_000])
def test_a_worker_that_is_killed_is_no_failure_of_files(spark: SparkSession, count: int) -> None:
    """With many rows the JVM is writing to the worker when it dies, with few it is reading."""
    with JobDriver(job_of(Shot())) as t:
        t.send("rows", *({"key": "k" * 500, "n": n} for n in range(count)))
        with pytest.raises(JobFailedError, match="a Spark Python worker died") as caught:
            t.run()
        assert caught.value.step == "faulty" and "dmesg" in str(caught.value.remedy)
