"""Pulsar topics that are deleted and made again: read on only if records may be lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

import headgate as hg
from headgate.base.errors import RefusedError
from headgate.home.layout import Home, RunHome
from tests.pulsar.client import Pulsar, Send, until
from tests.reading import Reading, Running


def numbered(numbers: range) -> list[Send]:
    return [Send(json.dumps({"id": n}), str(n)) for n in numbers]


def again(pulsar: Pulsar, topic: str, numbers: range, partitions: int = 2) -> None:
    pulsar.delete(topic)
    until(lambda: pulsar.admin.partitions(pulsar_name(topic)) is None)
    pulsar.create(topic, partitions)
    pulsar.send(topic, numbered(numbers))


def pulsar_name(topic: str) -> Any:
    from headgate.connectors.pulsar.names import PulsarTopicName

    return PulsarTopicName.parse(topic)


def source(pulsar: Pulsar, topic: str, on_data_loss: str, subscription: str | None) -> hg.Source:
    return hg.PulsarSource(
        pulsar.url, topic, "id BIGINT", subscription=subscription,
        options={"on_data_loss": on_data_loss},
    )  # fmt: skip


def current(reading: Reading) -> RunHome:
    run = Home(str(reading.folder / "home")).job("reading").current()
    assert run is not None
    return run


@pytest.mark.parametrize("subscription", [None, "reader"])
def test_should_read_a_topic_that_was_made_again_only_if_records_may_be_lost(
    pulsar: Pulsar, reading: Reading, subscription: str | None
) -> None:
    topic = pulsar.topic(2)
    pulsar.send(topic, numbered(range(100)))
    reading.go(source(pulsar, topic, "fail", subscription))
    again(pulsar, topic, range(1000, 1300), partitions=3)
    for restore in (None, "latest"):
        with pytest.raises(RefusedError, match="deleted and made again"):
            reading.go(source(pulsar, topic, "fail", subscription), restore=restore)
    assert reading.ids() == list(range(100))
    reading.go(source(pulsar, topic, "continue", subscription))
    assert reading.ids() == [*range(100), *range(1000, 1300)]
    (event,) = [e for e in current(reading).events() if e.kind == "reset"]
    assert event.details["source"] == "in" and topic in event.details["topics"][0]
    pulsar.send(topic, numbered(range(1300, 1310)))
    reading.go(source(pulsar, topic, "fail", subscription))
    assert reading.ids() == [*range(100), *range(1000, 1310)], "and no row twice"


@pytest.mark.parametrize("on_data_loss", ["fail", "continue"])
def test_should_notice_a_topic_that_is_made_again_while_the_job_runs(
    pulsar: Pulsar, reading: Reading, on_data_loss: str
) -> None:
    topic = pulsar.topic(2)
    pulsar.send(topic, numbered(range(50)))
    job = Running(
        reading, source(pulsar, topic, on_data_loss, None),
        restart=hg.fixed_delay(attempts=20, delay="500 ms"),
    )  # fmt: skip
    try:
        job.until(lambda: len(reading.ids()) == 50)
        again(pulsar, topic, range(1000, 1300))
        job.until(lambda: job.ended or len(reading.ids()) >= 350)
    finally:
        ended = job.stop()
    if on_data_loss == "fail":
        assert reading.ids() == list(range(50))
        assert ended.how == "failed" and "deleted and made again" in str(ended.error)
    else:
        assert ended.how == "stopped", ended
        assert reading.ids() == [*range(50), *range(1000, 1300)]
        assert [e.kind for e in current(reading).events()][:2] == ["reset", "started"]
