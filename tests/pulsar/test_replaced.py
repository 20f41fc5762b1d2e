"""A durable subscription and a Pulsar topic that is deleted and recreated."""

from __future__ import annotations

import json
from typing import Any

import pytest

import headgate as hg
from headgate.base.errors import RefusedError
from headgate.home.layout import Home, RunHome
from tests.pulsar.client import Pulsar, Send, until
from tests.reading import Reading


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


def source(pulsar: Pulsar, topic: str, on_data_loss: str) -> hg.Source:
    return hg.PulsarSource(
        pulsar.url, topic, "id BIGINT", subscription="reader",
        options={"on_data_loss": on_data_loss},
    )  # fmt: skip


def current(reading: Reading) -> RunHome:
    run = Home(str(reading.folder / "home")).job("reading").current()
    assert run is not None
    return run


def test_should_begin_anew_with_its_subscription_in_a_topic_that_was_made_again(
    pulsar: Pulsar, reading: Reading
) -> None:
    topic = pulsar.topic(2)
    pulsar.send(topic, numbered(range(100)))
    reading.go(source(pulsar, topic, "fail"))
    again(pulsar, topic, range(1000, 1300), partitions=3)
    for restore in (None, "latest"):
        with pytest.raises(RefusedError, match="deleted and recreated"):
            reading.go(source(pulsar, topic, "fail"), restore=restore)
    assert reading.ids() == list(range(100))
    reading.go(source(pulsar, topic, "continue"))
    assert reading.ids() == [*range(100), *range(1000, 1300)]
    (event,) = [e for e in current(reading).events() if e.kind == "reset"]
    assert event.details["source"] == "in" and topic in event.details["topics"][0]
    pulsar.send(topic, numbered(range(1300, 1310)))
    reading.go(source(pulsar, topic, "fail"))
    assert reading.ids() == [*range(100), *range(1000, 1310)], "and no row twice"
