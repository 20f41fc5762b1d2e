"""Stores of a task commit side by side: who is interrupted waits until all have ended."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from headgate.jvm.gateway import java_list


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
