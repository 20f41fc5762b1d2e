"""The contract of a broker's sink: each row once after crashes, again after a restore."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate.base.errors import GraphError, HeadgateError, NotFoundError, RefusedError
from headgate.failures import Reason
from tests.brokers.pipe import TASK_POINTS, Pipe
from tests.brokers.systems import System

POINTS = (*TASK_POINTS, "before_sink", "after_sink")


@pytest.fixture
def pipe(spark: SparkSession, tmp_path: Path, system: System) -> Pipe:
    return Pipe(spark, tmp_path, system)


# Without a shuffle the rows are sinks' partitions as the source has them; that the points do not
# differ in what they leave behind is shown with one.
@pytest.mark.parametrize(
    ("stateless", "points"), [(False, POINTS), (True, ("in_transaction", "after_sink"))]
)
def test_should_write_each_row_once_after_a_crash_at_any_point(
    pipe: Pipe, stateless: bool, points: tuple[str, ...]
) -> None:
    job = pipe.job(stateless=stateless)
    pipe.send(range(0, 90))
    pipe.go(job)
    for number, point in enumerate(points):
        pipe.send(range(100 + 50 * number, 140 + 50 * number))
        pipe.crash(point, job)
        pipe.go(job)
        pipe.assert_exact()


def test_should_emit_again_after_a_restore_but_not_after_a_resume(pipe: Pipe) -> None:
    for first in (0, 100, 200, 300):
        pipe.send(range(first, first + 20))
        pipe.go()
    pipe.go()
    pipe.assert_exact()
    pipe.go(restore="ck:1")
    twice = [*range(200, 220), *range(300, 320)]
    assert pipe.written() == Counter([*pipe.sent, *twice])
    pipe.go()
    assert pipe.written() == Counter([*pipe.sent, *twice]), "a resume after it writes nothing"


def test_should_let_a_fork_write_without_disturbing_the_original(pipe: Pipe) -> None:
    pipe.send(range(0, 50))
    pipe.go()
    pipe.go(name="fork", fresh=True)
    assert pipe.written() == Counter([*pipe.sent, *pipe.sent])
    pipe.send(range(50, 60))
    pipe.go()  # its producers were not fenced, its markers not touched
    assert pipe.written() == Counter([*range(50), *range(50), *range(50, 60)])


def test_should_refuse_a_second_home_unless_it_takes_over(pipe: Pipe, tmp_path: Path) -> None:
    pipe.send(range(0, 40))
    pipe.go()
    pipe.home = str(tmp_path / "another")  # as after the first one was deleted: run r1 again
    with pytest.raises(RefusedError, match="of another home"):
        pipe.go()
    pipe.go(take_over=True)
    assert pipe.written() == Counter([*pipe.sent, *pipe.sent])


def test_should_refuse_a_home_that_is_older_than_its_topics(pipe: Pipe, tmp_path: Path) -> None:
    pipe.send(range(0, 30))
    pipe.go()
    shutil.copytree(pipe.home, tmp_path / "backup", symlinks=True)
    for first in (30, 60):
        pipe.send(range(first, first + 30))
        pipe.go()
    shutil.rmtree(pipe.home)
    (tmp_path / "backup").rename(pipe.home)
    pipe.send(range(90, 120))
    with pytest.raises(RefusedError, match="batch 2 of run r1, but the home is at ck:0") as refused:
        pipe.go()
    assert "--fresh" in str(refused.value)
    # Pulsar's broker knows numbers alone, so the rows behind them cannot be skipped by name
    accepts = "--accept-sink-position" in str(refused.value)
    assert accepts == (pipe.system.name == "kafka")
    assert pipe.written() == Counter(range(90)), "nothing was written"


def test_should_refuse_a_changed_graph_while_a_batch_is_out(pipe: Pipe) -> None:
    pipe.send(range(0, 30))
    pipe.go()
    pipe.send(range(30, 60))
    pipe.crash("after_sink")
    with pytest.raises(RefusedError, match="batch 1 of run r1 is out"):
        pipe.go(pipe.job(stateless=True), allow_dropped_state=True)
    pipe.go()
    pipe.assert_exact()


def test_should_write_at_least_once_on_request(pipe: Pipe) -> None:
    job = pipe.job(delivery="at_least_once")
    pipe.send(range(0, 60))
    pipe.crash("after_sink", job)
    pipe.go(job)
    assert pipe.written() == Counter([*pipe.sent, *pipe.sent]), "a replay writes again"


def test_should_write_key_value_labels_and_time(pipe: Pipe) -> None:
    topic = pipe.system.topic(3)
    sink = pipe.sink(
        topic, key="url", value="IF(id = 2, NULL, concat('v', id))",
        labels="map('origin', 'test', 'id', cast(id AS STRING))",
        time="timestamp_millis(1700000000000 + id)",
    )  # fmt: skip
    pipe.send(range(0, 4))
    pipe.go(pipe.sinking(sink))
    found = {m.key: (m.value, m.time_ms, m.labels) for m in pipe.system.read(topic)}
    assert found == {
        f"/{n}": (None if n == 2 else f"v{n}", 1_700_000_000_000 + n,
                  {"origin": "test", "id": str(n)})
        for n in range(4)
    }  # fmt: skip


def test_should_say_that_a_record_is_too_large(pipe: Pipe) -> None:
    topic, size = pipe.system.narrow()
    pipe.send(range(0, 3))
    with pytest.raises(HeadgateError, match="larger than the broker accepts") as failed:
        pipe.go(pipe.sinking(pipe.sink(topic, value=f"repeat('x', {size})")))
    assert topic in str(failed.value)
    assert pipe.reasons() == ["RECORD_TOO_LARGE"]
    assert not Reason.RECORD_TOO_LARGE.retryable
    assert pipe.system.read(topic) == []


def test_should_say_that_the_sink_has_no_topic(pipe: Pipe) -> None:
    with pytest.raises(NotFoundError, match="there is no topic") as missing:
        pipe.go(pipe.sinking(pipe.sink("nowhere")))
    assert missing.value.step == "out0"
    assert "headgate topic create" in str(missing.value)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"topic": "a/b"}, "a {title} topic's name must be"),
        ({"delivery": "maybe"}, "'delivery' must be"),
        ({"value": "id"}, "record's value must be STRING or"),
        ({"labels": "map(1, 'a')"}, "record's {labels} must be"),
        ({"time": "id"}, "record's {time} must be"),
        ({"key": "uuid()"}, "another value when a batch is replayed"),
    ],
)
def test_should_say_what_is_wrong_with_a_sink(pipe: Pipe, parts: dict[str, Any], said: str) -> None:
    words = {
        "kafka": {"title": "Kafka", "labels": "headers", "time": "timestamp"},
        "pulsar": {"title": "Pulsar", "labels": "properties", "time": "event_time"},
    }[pipe.system.name]
    with pytest.raises(GraphError, match=said.format(**words)):
        pipe.go(pipe.sinking(pipe.sink(**{"topic": "t", **parts})))
