"""Windows anywhere in a graph: beside sinks, behind lookups and selects, on other windows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pytest
from pyspark.sql import Column
from pyspark.sql import functions as F

import headgate as hg
from headgate.base.errors import GraphError, RefusedError
from headgate.testing import JobDriver
from tests.steps.test_window import VISIT, counting, record

Make = Callable[..., JobDriver]
EVENTS = [(k, "abc"[k % 3], k * 20, k) for k in range(60)]  # twenty minutes


@hg.job("shapes")
def shapes(job: hg.Job) -> None:
    visits = job.source(
        "visits",
        hg.topic("log:visits", schema=VISIT),
        event_time=hg.event_time("at", out_of_orderness="1 minute"),
    )
    pages = job.table("pages", hg.topic("log:pages", schema="page STRING, kind STRING"), key="page")
    visits.where("value >= 50").sink("dear", hg.topic("log:dear"))
    found = visits.lookup("kinds", pages, on="page", take=["kind"], missing="side")
    found.missing.select("id").sink("unknown", hg.topic("log:unknown"))
    short = found.select("kind", "value").transform(
        "double", lambda df: df.selectExpr("*", "value * 2 AS twice")
    )
    minutes = short.key_by("upper(kind) AS kind").window(
        "minutes", hg.tumbling("1 minute"), F.count("*").alias("n"), F.sum("twice").alias("twice")
    )
    minutes.sink("minutes_out", hg.topic("log:minutes"))
    minutes.late.sink("too_late", hg.topic("log:too_late"))
    minutes.key_by("kind").window(
        "fives", hg.tumbling("5 minutes"), F.sum("n").alias("n"), F.max("twice").alias("most")
    ).sink("fives_out", hg.topic("log:fives"))
    visits.key_by("page").window(
        "pages_10m", hg.tumbling("10 minutes"), F.avg("value").alias("mean")
    ).sink("means", hg.topic("log:means"))


def test_windows_stand_beside_sinks_behind_lookups_and_on_windows(job_driver: Make) -> None:
    t = job_driver(shapes)
    t.send("pages", {"page": "a", "kind": "x"}, {"page": "b", "kind": "y"})
    t.send("visits", *[record(e) for e in EVENTS[:40]]).run()
    t.send("visits", *[record(e) for e in EVENTS[40:]]).run(drain=True)
    assert sorted(r["id"] for r in t.rows("dear")) == list(range(50, 60))
    assert sorted(r["id"] for r in t.rows("unknown")) == [e[0] for e in EVENTS if e[1] == "c"]
    assert t.rows("too_late") == []
    known = [("XY"["ab".index(e[1])], e[2], e[3]) for e in EVENTS if e[1] in "ab"]
    minutes = Counter((kind, at // 60) for kind, at, _ in known)
    found = {
        (r["kind"], r["window_start"].minute): (r["n"], r["twice"]) for r in t.rows("minutes_out")
    }
    assert {w: n for w, (n, _) in found.items()} == dict(minutes)
    fives = {
        (r["kind"], r["window_start"].minute): (r["n"], r["most"]) for r in t.rows("fives_out")
    }
    assert {w: n for w, (n, _) in fives.items()} == dict(
        Counter((kind, at // 300 * 5) for kind, at, _ in known)
    )
    for (kind, start), (_, most) in fives.items():
        assert most == max(
            s for (k, m), (_, s) in found.items() if k == kind and m // 5 * 5 == start
        )
    means = {(r["page"], r["window_start"].minute): r["mean"] for r in t.rows("means")}
    assert means == {
        (page, ten): sum(v) / len(v)
        for page in "abc"
        for ten in (0, 10)
        if (v := [e[3] for e in EVENTS if e[1] == page and e[2] // 600 * 10 == ten])
    }
    for step in ("minutes", "fives", "pages_10m"):
        assert t.state(step).all() == []


def test_state_survives_a_restore_with_another_parallelism_and_one_more_aggregate(
    job_driver: Make,
) -> None:
    @hg.job("counting")
    def more(job: hg.Job) -> None:
        visits = job.source(
            "visits",
            hg.topic("log:visits", schema=VISIT),
            event_time=hg.event_time("at", out_of_orderness="1 minute"),
        )
        visits.key_by("page").window(
            "counts",
            hg.tumbling("5 minutes"),
            F.max("value").alias("most"),
            F.count("*").alias("n"),
            F.count("value").alias("values"),
            F.sum("value").alias("total"),
            F.collect_set(F.concat(F.lit("v"), F.col("value") % 5)).alias("names"),
        ).sink("out", hg.topic("log:out"))

    t = job_driver(counting(hg.tumbling("5 minutes")))
    t.send("visits", record((1, "a", 10, 1)), record((2, "b", 20, 2))).run()
    longer = counting(hg.tumbling("5 minutes"), allowed_lateness="1 hour")
    with pytest.raises(RefusedError, match="and is 1 hour, so windows that were") as refused:
        t.restore(t.checkpoint(), job=longer).run()
    assert str(refused.value.remedy).startswith("keep it as it was, or give the step a new name")
    other = counting(hg.tumbling("5 minutes"), panes="discarding")
    with pytest.raises(RefusedError, match="its panes were accumulating and are discarding"):
        t.restore(t.checkpoint(), job=other).run()
    with pytest.raises(RefusedError, match="its windows were tumbling 5 minutes and are"):
        t.restore(t.checkpoint(), job=counting(hg.tumbling("6 minutes"))).run()
    t.restore(t.checkpoint(), job=more, parallelism=3)
    t.send("visits", record((3, "a", 30, 3))).run(drain=True)
    rows = {
        r["page"]: (r["n"], r["total"], r["most"], r["values"], r["names"]) for r in t.rows("out")
    }
    assert rows == {"a": (2, 4, 3, 1, ["v1", "v3"]), "b": (1, 2, None, 0, ["v2"])}


def test_a_shorter_lateness_lets_go_of_the_windows_that_were_kept(job_driver: Make) -> None:
    t = job_driver(counting(hg.tumbling("5 minutes"), allowed_lateness="1 day"))
    t.send("visits", record((1, "a", 10, 1)), record((2, "b", 20, 2)), record((3, "a", 400, 1)))
    t.run()
    assert len(t.rows("out")) == 2 and len(t.state("counts").all()) == 3
    t.restore(t.checkpoint(), job=counting(hg.tumbling("5 minutes"))).run()
    assert [r["key"]["page"] for r in t.state("counts").all()] == ["a"]


def test_what_depends_on_the_order_of_rows_is_refused_where_a_batch_may_be_replayed(
    spark: object,
) -> None:
    @hg.job("ordered")
    def define(job: hg.Job) -> None:
        topic = hg.topic("log:visits", schema=VISIT)
        visits = job.source("visits", topic, event_time=hg.event_time("at"))
        ranked = F.expr("max_by(id, value, 2)").alias("best")  # which of equal ones are in it?
        visits.key_by("page").window("w", hg.tumbling("1 h"), ranked).sink(
            "out", hg.topic("log:out")
        )

    with pytest.raises(GraphError, match="another value when a batch is replayed"):
        define.describe()


def count() -> Column:
    """An aggregate; a Column needs a session to be made."""
    return F.count("*").alias("n")


WRONG = {
    "one value of each row": lambda v, p: v.key_by("explode(array(page)) AS e"),
    "got count": lambda v, p: v.key_by("count(*) AS n"),
    "got \\*": lambda v, p: v.key_by("*"),
    "must be a column or a SQL": lambda v, p: v.key_by(["page", "id"]),
    "early must be a trigger": lambda v, p: v.key_by("page").window(
        "w", hg.tumbling("1 h"), count(), early="2 minutes"
    ),
    "must not aggregate again": lambda v, p: v.key_by("page").window(
        "w", hg.tumbling("1 h"), count(), early=hg.when("sum(n) > 1")
    ),
    "of when must be SQL or a Column": lambda v, p: v.key_by("page").window(
        "w", hg.tumbling("1 h"), count(), early=hg.when(None)
    ),
    "must not begin with __hg_": lambda v, p: v.key_by("page").window(
        "w", hg.tumbling("1 h"), F.count("*").alias("__hg_late")
    ),
    "no event time": lambda v, p: p.key_by("page").window("w", hg.tumbling("1 minute"), count()),
    "two columns 'n'": lambda v, p: v.key_by("page AS n").window(
        "w", hg.tumbling("1 minute"), count()
    ),
    "no column 'pag'": lambda v, p: v.key_by("pag"),
    "must have a name": lambda v, p: v.key_by("page").window("w", hg.tumbling("1 h"), F.count("*")),
    "at least one aggregate": lambda v, p: v.key_by("page").window("w", hg.tumbling("1 h")),
    "distinct aggregate of a function": lambda v, p: v.key_by("page").window(
        "w", hg.tumbling("1 h"), F.expr("count_if(DISTINCT value > 1)").alias("n")
    ),
    "no row is late for a window of processing time": lambda v, p: p.key_by("page").window(
        "w", hg.tumbling("1 h", clock="processing"), count(), allowed_lateness="1 minute"
    ),
    "must go by the same clock": lambda v, p: p.key_by("page").window(
        "w", hg.session("1 h", clock="processing"), count(), early=hg.every("1 minute")
    ),
    "its windows are of processing time": lambda v, p: (
        p.key_by("page")
        .window("w", hg.tumbling("1 h", clock="processing"), count())
        .key_by("page")
        .window("w2", hg.tumbling("1 h"), count())
    ),
    "of a window must be 'event' or": lambda v, p: hg.sliding("1 h", every="1 m", clock="wall"),
    "less than its every, 1 minute": lambda v, p: hg.sliding("1 h", every="1 m", offset="-1 m"),
    "of event time": lambda v, p: v.key_by("page").join(
        "j", v.key_by("page"), within=hg.tumbling("1 h", clock="processing")
    ),
    "the same in every row": lambda v, p: v.key_by(F.lit(1).alias("k")),
    "whole number of milliseconds": lambda v, p: hg.tumbling("0 seconds"),
    "must be less than its size": lambda v, p: hg.tumbling("1 minute", offset="1 minute"),
    "size of the windows, 1 minute": lambda v, p: hg.sliding("1 minute", every="2 minutes"),
    "no column 'm'": lambda v, p: v.key_by("page").window(
        "w", hg.tumbling("1 minute"), count(), early=hg.when("m > 1")
    ),
    "at most one every trigger": lambda v, p: v.key_by("page").window(
        "w", hg.tumbling("1 h"), count(), early=[hg.every("1 m"), hg.every("2 m")]
    ),
    "after_count must be a number": lambda v, p: hg.after_count(0),
    "number of rows greater than zero": lambda v, p: hg.count_window(0),
    "size of the count windows, 2": lambda v, p: hg.count_window(2, every=3),
    "gives its row when it is full": lambda v, p: v.key_by("page").window(
        "w", hg.count_window(2), count(), early=hg.after_count(1)
    ),
    "no order in which": lambda v, p: (
        v.key_by("page")
        .window("w", hg.tumbling("1 h"), count())
        .key_by("page")
        .window("w2", hg.count_window(2), count())
    ),
    "behind the watermark": lambda v, p: (
        v.key_by("page")
        .window("w", hg.tumbling("1 minute"), count())
        .late.key_by("page")
        .window("w2", hg.tumbling("1 minute"), count())
    ),
    "made anew": lambda v, p: (
        v.transform("t", lambda df: df.mapInArrow(lambda x: x, df.schema))
        .key_by("page")
        .window("w", hg.tumbling("1 minute"), count())
    ),
}


@pytest.mark.parametrize("says", list(WRONG))
def test_a_mistake_is_told_in_a_sentence(spark: object, says: str) -> None:
    @hg.job("wrong")
    def define(job: hg.Job) -> None:
        topic = hg.topic("log:visits", schema=VISIT)
        visits = job.source("visits", topic, event_time=hg.event_time("at"))
        WRONG[says](visits, job.source("plain", topic))

    with pytest.raises(GraphError, match=says):
        define.describe()


@pytest.mark.parametrize("alias", ["a b", "a.b", "ü"])
def test_an_aggregate_may_have_any_name(spark: object, alias: str) -> None:
    @hg.job("named")
    def define(job: hg.Job) -> None:
        topic = hg.topic("log:visits", schema=VISIT)
        visits = job.source("visits", topic, event_time=hg.event_time("at"))
        n = F.expr("count(*) as n")
        made = visits.key_by("page").window("w", hg.tumbling("1 h"), n, F.max("id").alias(alias))
        made.sink("out", hg.topic("log:out"))

    steps = {step["id"]: step for step in json.loads(define.describe().json())["steps"]}
    assert f"AS {alias}" in steps["w"]["labels"]["aggregates"]


def test_event_time_must_name_a_column(spark: object) -> None:
    @hg.job("wrong")
    def define(job: hg.Job) -> None:
        job.source("visits", hg.topic("log:visits", schema=VISIT), event_time="at")  # type: ignore[arg-type]

    with pytest.raises(GraphError, match="event_time must name a column"):
        define.describe()
