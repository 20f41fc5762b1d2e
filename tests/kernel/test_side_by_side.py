"""Stores of a task commit side by side: who is interrupted waits until all have ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

import headgate as hg
from headgate.jvm.gateway import java_list
from headgate.testing import JobDriver

IN_COMMIT = "spark.headgate.test.in.state.commit"


class Body:
    """What is done for each, as Scala calls it."""

    def __init__(self, work: Callable[[str], None]) -> None:
        self._work = work

    def apply(self, one: str) -> None:
        self._work(one)

    class Java:
        implements = ("scala.Function1",)


@pytest.fixture
def each(spark: SparkSession) -> Callable[[list[str], Callable[[str], None]], None]:
    ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
    jvm: Any = spark._jvm

    def foreach(all_of: list[str], work: Callable[[str], None]) -> None:
        seq = jvm.scala.jdk.javaapi.CollectionConverters.asScala(java_list(spark, all_of)).toSeq()
        jvm.org.apache.spark.sql.headgate.spark.SideBySide.foreach(seq, Body(work))

    return foreach


def test_should_do_all_at_the_same_time(each: Any) -> None:
    together = threading.Barrier(3)
    each(["a", "b", "c"], lambda _: together.wait(30) and None)


def test_should_wait_for_all_when_it_is_interrupted(spark: SparkSession, each: Any) -> None:
    java: Any = spark._jvm.java.lang.Thread  # type: ignore[union-attr]
    interrupted, ended = threading.Event(), []

    def work(one: str) -> None:
        if one != "a":
            assert interrupted.wait(30)
        ended.append(one)

    thread = java.currentThread()

    def interrupt() -> None:
        while thread.getState().toString() != "WAITING":
            pass
        thread.interrupt()
        # it has seen the interrupt and waits again
        while thread.isInterrupted() or thread.getState().toString() != "WAITING":
            pass
        interrupted.set()

    waiting = threading.Thread(target=interrupt)
    waiting.start()
    each(["a", "b", "c"], work)
    waiting.join(30)
    assert sorted(ended) == ["a", "b", "c"]
    assert java.interrupted(), "the task must still learn that it was interrupted"


def test_should_fail_when_all_have_ended(each: Any) -> None:
    ended = []

    def work(one: str) -> None:
        if one == "b":
            raise ValueError("b cannot")
        ended.append(one)

    with pytest.raises(Exception, match="b cannot"):
        each(["a", "b", "c"], work)
    assert sorted(ended) == ["a", "c"]


@hg.job("waiting")
def waiting(job: hg.Job) -> None:
    """A lookup with several stores a task: rows of the table, rows that wait, their deadlines."""
    users = job.table("users", hg.topic("log:users", schema="id BIGINT, name STRING"), key="id")
    orders = job.source("orders", hg.topic("log:orders", schema="id BIGINT, user_id BIGINT"))
    found = orders.lookup("by_user", users, on="user_id", into="user", missing=hg.Wait("1 hour"))
    found.select("id", "user.name").sink("out", hg.topic("log:out"))


@pytest.mark.parametrize("how", ["between", "kill"])
def test_should_leave_nothing_of_a_task_that_ends_between_two_commits(
    spark: SparkSession, job_driver: Callable[..., JobDriver], how: str
) -> None:
    failures: Any = spark._jvm.org.apache.spark.sql.headgate.testing.TaskFailures  # type: ignore[union-attr]
    before = failures.inCommits()
    t = job_driver(waiting)
    t.send("orders", *({"id": n, "user_id": n % 4} for n in range(20))).run()
    spark.conf.set(IN_COMMIT, how)
    try:
        t.send("users", {"id": 0, "name": "old"}, {"id": 1, "name": "Ann"})
        t.send("orders", *({"id": n, "user_id": n % 4} for n in range(20, 40)))
        if how == "between":  # one attempt is all that a task has in local mode
            with pytest.raises(hg.HeadgateError, match="failed between commits"):
                t.run()
        else:
            t.run()
    finally:
        spark.conf.unset(IN_COMMIT)
    assert failures.inCommits() > before
    t.send("users", {"id": 0, "name": "new"}, {"id": 2, "name": "Bob"}).run()
    t.send("orders", {"id": 40, "user_id": 0}).run()
    names = {0: "old", 1: "Ann", 2: "Bob"}
    expected = {n: names[n % 4] for n in range(40) if n % 4 in names} | {40: "new"}
    rows = t.rows("out")
    assert len(rows) == len(expected) and {r["id"]: r["name"] for r in rows} == expected
    assert t.metrics("by_user")["records_waiting"] == 10
