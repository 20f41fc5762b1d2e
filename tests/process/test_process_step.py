"""Process steps in jobs on the real kernel: the example, chains, errors, and what check says."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

import headgate as hg
from examples.settle.sensors import sensor_jumps
from examples.settle.settle import Order, Payment, SettleOrders, settle_orders
from headgate.base.errors import GraphError, JobFailedError
from headgate.testing import JobDriver, ProcessDriver

NOON = datetime(2026, 1, 1, 12)


def test_orders_are_settled_or_not(spark: SparkSession) -> None:
    with JobDriver(settle_orders) as t:
        t.send("payments", Payment("o1", "card", 4.0), Payment("o2", "card", 5.0))
        t.send("orders", Order("o1", 10.0, NOON), Order("o2", 5.0, NOON)).run()
        assert t.rows("settled") == [
            {"order_id": "o2", "paid": 5.0, "attempts": 1, "methods": ["card"]}
        ]
        assert t.state("settle", "order").get(order_id="o1")["amount"] == 10.0
        assert t.state("settle", "order").get(order_id="o2") is None
        assert [p["method"] for p in t.state("settle", "payments").get(order_id="o1")] == ["card"]
        assert t.state("settle", "paid_by").get(order_id="o1") == {"card": 4.0}
        deadline = t.state("settle", "deadline").get(order_id="o1")
        assert deadline.replace(tzinfo=None) == NOON + timedelta(minutes=30)
        t.send("orders", Order("o3", 1.0, NOON + timedelta(minutes=31))).run()
        assert [r["order_id"] for r in t.rows("unpaid")] == ["o1"]
        assert t.metrics("settle") == {
            "records_in": 5, "records_out": 1, "records_out_unpaid": 1, "unpaid": 1,
        }  # fmt: skip
        assert [r["key"]["order_id"] for r in t.state("settle").all()] == ["o3"]


def test_a_sensor_that_jumps_is_told_of() -> None:
    from examples.settle.sensors import Alert, Jumps, Reading

    driver = ProcessDriver(Jumps())
    driver.send("readings", Reading("a", 10.0, NOON), key="a", at=NOON)
    later = NOON + timedelta(seconds=59)
    assert driver.send("readings", Reading("a", 31.0, later), key="a", at=later) == [
        Alert("a", 10.0, 31.0, later)
    ]
    driver.advance_watermark(NOON + timedelta(minutes=3))
    assert driver.state("last", key="a") is None
    assert sensor_jumps.name == "sensor_jumps"


EVENT = "key STRING, number INT, at TIMESTAMP"


@dataclass
class Numbered:
    key: str
    total: int


class Sum(hg.Process):
    total = hg.value_state(int)

    def on_events(self, row: Row, ctx: hg.Context) -> hg.Out[Numbered]:
        total = (self.total.get() or 0) + row.number
        self.total.set(total)
        if row.number < 0:
            raise ValueError(f"{row.number} is below zero")
        yield Numbered(ctx.key.name, total)


class Last(hg.Process):
    """Follows on another process function: sees its rows in their order."""

    before = hg.value_state(int)

    def __init__(self, log: str) -> None:
        self.log = log

    def open(self) -> None:
        self.form = "%M:%S"
        self._note("opened")

    def close(self) -> None:
        self._note("closed")

    def _note(self, what: str) -> None:
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(f"{what}\n")

    def on_sums(self, row: Numbered, ctx: hg.Context) -> hg.Out[str]:
        assert ctx.timestamp is not None
        yield f"{self.before.get()} {row.total} {ctx.timestamp.strftime(self.form)}"
        self.before.set(row.total)


@hg.job("sums")
def sums(job: hg.Job) -> None:
    on_error = job.param("on_error", "side")
    events = job.source(
        "events", hg.topic("log:events", schema=EVENT), event_time=hg.event_time("at")
    )
    made = job.process(
        "sum",
        Sum(),
        on_error=on_error,
        events=events.key_by("upper(key) AS name"),  # type: ignore[arg-type]
    )
    if on_error == "side":
        made.errors.sink("errors", hg.topic("log:errors"))
    log = job.param("log", "")
    job.process("last", Last(log), sums=made.key_by("key")).sink("lasts", hg.topic("log:last"))
    made.key_by("key").window(
        "per_minute", hg.tumbling("1 minute"), F.max("total").alias("most")
    ).sink("windows", hg.topic("log:windows"))


def event(key: str, number: int, second: int) -> dict[str, object]:
    return {"key": key, "number": number, "at": (NOON + timedelta(seconds=second)).isoformat()}


def test_functions_follow_on_functions_and_errors_go_aside(
    spark: SparkSession, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with JobDriver(sums, params={"log": str(log)}) as t:
        t.send("events", event("a", 1, 1), event("A", -5, 2), event("a", 2, 3), event("b", 7, 4))
        t.run()
        t.send("events", event("a", 4, 65)).run()
        assert sorted(r["value"] for r in t.rows("lasts")) == [
            "1 3 00:03", "3 7 01:05", "None 1 00:01", "None 7 00:04",
        ]  # fmt: skip
        (error,) = t.rows("errors")
        assert error["error"] == "ValueError: -5 is below zero"
        assert error["handler"] == "on_events" and error["key"] == "name='A'"
        assert "number=-5" in error["row"] and error["location"].startswith(__file__)
        assert sorted((r["key"], r["most"]) for r in t.rows("windows")) == [("A", 3), ("B", 7)]
        assert t.metrics("sum") == {"records_in": 5, "records_out": 4, "records_out_errors": 1}
    noted = log.read_text().splitlines()
    assert noted.count("opened") == noted.count("closed") >= 2


def test_an_error_names_the_line_the_key_and_the_row_and_keeps_nothing(spark: SparkSession) -> None:
    with JobDriver(sums, params={"on_error": "fail"}) as t:
        t.send("events", event("a", 1, 1)).run()
        t.send("events", event("a", 2, 2), event("a", -5, 3))
        with pytest.raises(JobFailedError) as caught:
            t.run()
        said = str(caught.value)
        assert "step 'sum': on_events failed at " in said and f"{__file__}:" in said
        assert "ValueError: -5 is below zero, for the key name='A' and the row Row(" in said
        assert t.state("sum", "total").get(name="A") == 1


@dataclass
class Other:
    key: str
    missing: int


class Wants(hg.Process):
    def on_events(self, row: Other, ctx: hg.Context) -> hg.Out[str]:
        yield row.key


class Two(Sum):
    def on_others(self, row: Row, ctx: hg.Context) -> None: ...


class Timed(Sum):
    alarm = hg.timer("event")

    def on_alarm(self, ctx: hg.Context) -> None: ...


def _job(make: object) -> hg.JobDef:
    @hg.job("wrong")
    def wrong(job: hg.Job) -> None:
        events = job.source("events", hg.topic("log:events", schema=EVENT))
        make(job, events).sink("out", hg.topic("log:out"))  # type: ignore[operator]

    return wrong


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda j, e: j.process("p", Sum()), "step 'p': a process step must have an input"),
        (lambda j, e: j.process("p", Sum(), events=e), "the input 'events' must have a key"),
        (lambda j, e: j.process("p", Sum(), events=e.key_by()),
         "the input 'events' must have a key"),
        (lambda j, e: j.process("p", Sum(), event=e.key_by("key")),
         "step 'p': Sum has no handler for the input 'event'"),
        (lambda j, e: j.process("p", Wants(), events=e.key_by("key")),
         "the input 'events' has no column 'missing', which Other has"),
        (lambda j, e: j.process(
            "p", Wants(), events=e.select("key", "at AS missing").key_by("key")),
         "the column 'missing' of the input 'events' does not fit Other.missing (expected int, got "
         "TIMESTAMP)"),
        (lambda j, e: j.process("p", Timed(), events=e.key_by("key")),
         "the timer 'alarm' is of event time, which none of the inputs has"),
        (lambda j, e: j.process("p", Two(), events=e.key_by("key"), others=e.key_by("number")),
         "the keys of the inputs 'events' and 'others' must have the same types"),
        (lambda j, e: j.process("p", Sum(), events=e.key_by("key")).side(SettleOrders.unpaid),
         "the side output 'unpaid' is not declared by the step's process function"),
        (lambda j, e: j.process("p", Sum(), events=e.key_by("key")).errors,
         "there is no side output 'errors'"),
        (lambda j, e: j.process("p", Sum(), events=e.key_by("key"), on_error="drop"),
         "on_error must be 'fail' or 'side'"),
    ],
)  # fmt: skip
def test_what_does_not_fit_the_graph_is_refused(
    make: object, said: str, spark: SparkSession
) -> None:
    with pytest.raises(GraphError) as caught:
        _job(make).describe()
    assert said in str(caught.value)
    assert caught.value.location is not None
