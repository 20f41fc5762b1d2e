"""The state of process functions: read by its names, and kept when their classes change."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

import headgate as hg
from headgate.base.errors import RefusedError
from headgate.cli.main import invoke
from headgate.home.layout import Home
from headgate.testing import JobDriver
from headgate.ui import spark_worker

NOON = datetime(2026, 1, 1, 12)
EVENT = "shop STRING, number INT, name STRING, at TIMESTAMP"


@dataclass
class Item:
    name: str
    count: int


@dataclass
class MoreItem:
    name: str
    count: int
    note: str | None = None
    size: int = 7


@dataclass
class LessItem:
    name: str


@dataclass
class OtherItem:
    name: str
    count: str = "0"


@dataclass
class StrictItem:
    name: str
    count: int
    must: bool


def job_of(item: Any, *, tags: bool = False, ttl: str | None = None) -> hg.JobDef:
    """A job whose function keeps items of a class in every kind of state."""

    class Shop(hg.Process):
        last = hg.value_state(item)
        seen = hg.list_state(item, ttl=ttl)
        by_name = hg.map_state(str, item)
        closes = hg.timer("event")
        if tags:
            marks = hg.list_state(str)
            opened = hg.value_state(datetime)

        def on_events(self, row: Row, ctx: hg.Context) -> hg.Out[str]:
            yield repr((self.last.get(), list(self.seen), dict(self.by_name)))
            more = {"must": True} if "must" in item.__dataclass_fields__ else {}
            made = item(row.name, row.number, **more) if len(dataclasses.fields(item)) > 1 else None
            made = item(row.name) if made is None else made
            self.last.set(made)
            self.seen.append(made)
            self.by_name[row.name] = made
            self.closes.set(row.at.replace(hour=20))
            if tags:
                self.marks.append(row.name)
                self.opened.set(row.at)

        def on_closes(self, ctx: hg.Context) -> None:
            self.seen.clear()

    @hg.job("shops")
    def shops(job: hg.Job) -> None:
        events = job.source(
            "events", hg.topic("log:events", schema=EVENT), event_time=hg.event_time("at")
        )
        made = job.process("shop", Shop(), events=events.key_by("shop", "number % 2 AS odd"))
        made.sink("out", hg.topic("log:out"))

    return shops


def event(shop: str, number: int, name: str) -> dict[str, object]:
    return {"shop": shop, "number": number, "name": name, "at": NOON.isoformat()}


def asked(home: str, capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    capsys.readouterr()
    code = invoke(["state", *words, "--home", home, "--json"])
    printed = capsys.readouterr()
    assert code == 0, printed
    return json.loads(printed.out)


def test_state_is_read_by_name_and_kept_when_a_class_gains_fields(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    with JobDriver(job_of(Item)) as t:
        t.send("events", event("a", 1, "x"), event("a", 3, "y"), event("a", 2, "z")).run()
        assert sorted(r["value"] for r in t.rows("out"))[0].startswith("(Item(name='x', count=1)")
        x, y = {"name": "x", "count": 1}, {"name": "y", "count": 3}
        wanted = {"last": y, "seen": [x, y], "by_name": {"x": x, "y": y}}
        for name, value in wanted.items():
            assert t.state("shop", name).get(shop="a", odd=1) == value
        (listed,) = asked(t.home, capsys, "list", "shops")["steps"]
        assert listed["states"] == ["default", "last", "closes", "seen", "by_name"]
        assert (listed["kind"], listed["key"]) == ("process", ["shop", "odd"])
        key = ("--key", "shop=a", "--key", "odd=1")
        for name, value in wanted.items():
            found = asked(t.home, capsys, "get", "shops", "shop", *key, "--state", name)
            assert found["state"] == {name: value}
        row = asked(t.home, capsys, "get", "shops", "shop", *key)["state"]["row"]
        assert row == {
            "last": y, "closes": row["closes"], "seen.entries": 2, "by_name.entries": 2,
        }  # fmt: skip
        assert row["closes"].startswith("2026-01-01 20:00")
        rows = asked(
            t.home, capsys, "scan", "shops", "shop", "--state", "seen", "--where", "size(seen) > 1"
        )["rows"]
        assert [(r["key"], r["seen"]) for r in rows] == [({"shop": "a", "odd": 1}, [x, y])]
        assert invoke(["state", "get", "shops", "shop", *key, "--state", "lasts", "--home", t.home])
        assert "default, last, closes, seen, by_name" in capsys.readouterr().err

        for item, said in (
            (LessItem, "column last.count BIGINT"),
            (OtherItem, "column last.count BIGINT is now STRING"),
            (StrictItem, "field last.must is new, and what was stored has no value for it"),
        ):
            with pytest.raises(RefusedError) as caught:
                t.restore(job=job_of(item)).run()
            assert said in str(caught.value)
            assert said.replace("last.", "seen.") in str(caught.value)

        t.savepoint("before")
        t.restore(job=job_of(MoreItem, tags=True, ttl="1 day"), parallelism=3)
        t.send("events", event("a", 5, "x")).run()
        (told,) = t.rows("out")
        before = [MoreItem("x", 1), MoreItem("y", 3)]
        assert before[0].size == 7 and before[0].note is None
        assert told["value"] == repr((before[1], before, {"x": before[0], "y": before[1]}))
        kept = t.state("shop", "seen").get(shop="a", odd=1)
        assert kept == [
            {**x, "note": None, "size": None}, {**y, "note": None, "size": None},
            {"name": "x", "count": 5, "note": None, "size": 7},
        ]  # fmt: skip
        assert t.state("shop", "marks").get(shop="a", odd=1) == ["x"]
        changes = asked(t.home, capsys, "diff", "shops@sp:before", "shop", "--state", "by_name")
        assert changes["counts"] == {"added": 0, "removed": 0, "changed": 1}
        assert changes["rows"][0]["after"]["x"]["count"] == 5
        for name in ("default", "last", "closes", "seen", "by_name"):
            question = {
                "job": "shops", "step": "shop", "state": name, "snapshot": "sp:before",
                "after": "latest", "limit": 10,
            }  # fmt: skip
            shown = spark_worker.answer(Home(t.home), {"work": "rows", **question})
            assert len(shown["value"]["rows"]) == 2, (name, shown)
            shown = spark_worker.answer(Home(t.home), {"work": "diff", **question})
            changed = name != "closes"
            assert shown["value"]["counts"] == {"added": 0, "removed": 0, "changed": changed}
        t.advance_watermark("events", NOON.replace(hour=21)).run()
        assert t.state("shop", "seen").all() == []
        assert len(t.state("shop", "last").all()) == 2


def kept_as(state: Any) -> hg.JobDef:
    """A job with a state of one of several kinds under one name."""

    class Keeps(hg.Process):
        kept = state

        def on_events(self, row: Row, ctx: hg.Context) -> hg.Out[str]:
            yield row.name

    @hg.job("shops")
    def shops(job: hg.Job) -> None:
        events = job.source("events", hg.topic("log:events", schema=EVENT))
        kept = job.process("shop", Keeps(), events=events.key_by("shop"))
        kept.sink("out", hg.topic("log:out"))

    return shops


def test_the_plan_names_a_state_that_is_kept_in_another_way(spark: SparkSession) -> None:
    with JobDriver(kept_as(hg.map_state(int, str))) as t:
        t.send("events", event("a", 1, "x")).run()
        for state, said in (
            (hg.list_state(str), "state kept was a map with keys BIGINT and is now a list"),
            (hg.map_state(str, str), "a map with keys BIGINT and is now a map with keys STRING"),
        ):
            with pytest.raises(RefusedError, match=said):
                t.restore(job=kept_as(state)).run()


class WithTtl(hg.Process):
    """Whose states are forgotten."""

    one = hg.value_state(int, ttl="1 hour")
    many = hg.list_state(int, ttl="1 hour")
    due = hg.timer("event")

    def on_events(self, row: Row, ctx: hg.Context) -> hg.Out[str]:
        self.one.set(row.number)
        self.many.append(row.number)
        yield row.name

    def on_due(self, ctx: hg.Context) -> None: ...


class WithoutTtl(WithTtl):
    one = hg.value_state(int)
    many = hg.list_state(int)


class WithoutMany(hg.Process):
    one = hg.value_state(int, ttl="1 day")

    def on_events(self, row: Row, ctx: hg.Context) -> hg.Out[str]:
        yield row.name


class OtherClock(WithTtl):
    due = hg.timer("processing")


def keyed_job(function: hg.Process, *key: str) -> hg.JobDef:
    @hg.job("shops")
    def shops(job: hg.Job) -> None:
        events = job.source(
            "events", hg.topic("log:events", schema=EVENT), event_time=hg.event_time("at")
        )
        kept = job.process("shop", function, events=events.key_by(*key))
        kept.sink("out", hg.topic("log:out"))

    return shops


def test_what_was_forgotten_does_not_come_back(spark: SparkSession) -> None:
    with JobDriver(keyed_job(WithTtl(), "shop")) as t:
        t.send("events", event("a", 1, "x")).run()
        with pytest.raises(RefusedError) as caught:
            t.restore(job=keyed_job(WithoutTtl(), "shop"), allow_dropped_state=True).run()
        for state in ("one", "many"):
            assert f"state {state} has no time to live any more" in str(caught.value)
        assert "sweep" not in str(caught.value) and "expiry" not in str(caught.value)
        with pytest.raises(RefusedError, match="timer due was one of event time and is one of pro"):
            t.restore(job=keyed_job(OtherClock(), "shop"), allow_dropped_state=True).run()
        with pytest.raises(RefusedError, match=r"loses store many, column due TIMESTAMP .*needs"):
            t.restore(job=keyed_job(WithoutMany(), "shop")).run()
        t.restore(job=keyed_job(WithoutMany(), "shop"), allow_dropped_state=True).run()
        assert t.state("shop", "one").get(shop="a") == 1


def test_the_plan_says_that_a_key_is_made_in_another_way(spark: SparkSession) -> None:
    with JobDriver(keyed_job(WithTtl(), "shop")) as t:
        t.send("events", event("a", 1, "x")).run()
        with pytest.raises(RefusedError) as caught:
            t.restore(job=keyed_job(WithoutMany(), "upper(name) AS shop")).run()
        said = "the key of events was shop and is upper(name) AS shop: state goes on by the values"
        assert said in str(caught.value)
        other = keyed_job(WithTtl(), "lower(name) AS shop")
        t.restore(job=other).send("events", event("b", 2, "A")).run()
        assert t.state("shop", "one").get(shop="a") == 2
