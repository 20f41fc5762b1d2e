"""What only a Pulsar sink has: deduplication, and rows that are sorted before they are sent."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import headgate as hg
from headgate.base.errors import GraphError, HeadgateError
from headgate.connectors.log.files import Record, TopicFiles
from headgate.connectors.pulsar.names import PulsarTopicName
from headgate.runtime.live import SilentDisplay
from tests.brokers.pipe import Pipe
from tests.brokers.systems import PulsarSystem
from tests.pulsar.client import Pulsar


@pytest.fixture
def pipe(spark: SparkSession, tmp_path: Path, pulsar: Pulsar) -> Pipe:
    return Pipe(spark, tmp_path, PulsarSystem(pulsar.url))


def test_should_switch_deduplication_on_and_say_so(pipe: Pipe, pulsar: Pulsar) -> None:
    topic = pulsar.topic(3, deduplication=False)
    job = pipe.sinking(pipe.sink(topic, key="id"))
    said: list[str] = []
    display = SilentDisplay()
    display.say = said.append  # type: ignore[method-assign]
    pipe.send(range(0, 20))
    pipe.go(job, display=display)
    changed = f"deduplication was off and is on now for {pulsar.url}/{topic}"
    assert len([text for text in said if changed in text]) == 1
    assert pulsar.admin.deduplication(PulsarTopicName.parse(topic)) is True
    pipe.send(range(20, 40))
    pipe.crash("after_sink", job)
    said.clear()
    pipe.go(job, display=display)
    assert said and not any("deduplication" in text for text in said)
    assert pulsar.ids(topic) == pipe.sent


def test_should_refuse_when_deduplication_cannot_be_looked_into(pipe: Pipe, pulsar: Pulsar) -> None:
    pipe.send(range(0, 4))
    elsewhere = {"admin_url": "http://127.0.0.1:1"}
    with pytest.raises(HeadgateError, match="cannot find out whether") as refused:
        pipe.go(pipe.sinking(pipe.sink(pipe.known, options=elsewhere)))
    assert refused.value.step == "out0"
    assert "at_least_once" in str(refused.value) and "admin_url" in str(refused.value)
    pipe.go(pipe.sinking(pipe.sink(pipe.known, options=elsewhere, delivery="at_least_once")))
    assert pulsar.ids(pipe.known) == [0, 1, 2, 3]


def test_should_send_messages_of_a_key_in_the_order_that_is_asked_for(
    pipe: Pipe, pulsar: Pulsar
) -> None:
    down, up = pulsar.topic(2), pulsar.topic(2)
    pipe.send(range(0, 60))
    key = "CAST(id % 3 AS STRING)"
    pipe.go(pipe.sinking(pipe.sink(down, key=key, order_by="-id"), pipe.sink(up, key=key)))
    for topic, backwards in ((down, True), (up, False)):
        ids: dict[str | None, list[int]] = {}
        for message in pulsar.read(topic):
            ids.setdefault(message.key, []).append(json.loads(message.value or "")["id"])
        assert {len(found) for found in ids.values()} == {20}
        assert all(found == sorted(found, reverse=backwards) for found in ids.values())


def test_should_keep_the_order_of_other_sinks(pipe: Pipe, pulsar: Pulsar, tmp_path: Path) -> None:
    """Sorting is for Pulsar alone: a log topic gets its rows as they come."""
    ids = [(n * 7919) % 1000 for n in range(300)]
    pipe.visits.append([Record(json.dumps({"id": n, "url": "/"}), "k") for n in ids])
    log = hg.LogSink(str(tmp_path / "log"), "url")
    pipe.go(pipe.sinking(log, pipe.sink(pipe.unknown, key="url")))
    written = [json.loads(r.value or "")["id"] for r in TopicFiles(tmp_path / "log").read()]
    assert written == ids
    messages = pulsar.read(pipe.unknown)
    assert [json.loads(m.value or "")["id"] for m in messages] == sorted(ids)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"url": "pulsar://h"}, "address of a Pulsar service must be"),
        ({"order_by": "map('a', id)"}, "record's order_by must be"),
        ({"options": {"sendTimeout": "1"}}, "has no option 'sendTimeout'"),
    ],
)
def test_should_say_what_is_wrong_with_a_sink(
    pipe: Pipe, parts: Mapping[str, Any], said: str
) -> None:
    with pytest.raises(GraphError, match=said):
        pipe.go(pipe.sinking(hg.PulsarSink(**{"url": "pulsar://h:1", "topic": "t", **parts})))


def test_should_refuse_rows_that_cannot_be_sorted(pipe: Pipe, pulsar: Pulsar) -> None:
    schema = "id BIGINT, more ARRAY<STRUCT<tags: MAP<STRING, STRING>>>"
    with pytest.raises(GraphError, match="'more' is or has a MAP") as refused:
        pipe.go(pipe.sinking(pipe.sink(pipe.known), schema=schema))
    assert refused.value.step == "out0" and "value=to_json" in str(refused.value)
    pipe.send(range(0, 4))
    pipe.go(pipe.sinking(pipe.sink(pipe.known, value="to_json(struct(*))"), schema=schema))
    assert pulsar.ids(pipe.known) == [0, 1, 2, 3]
