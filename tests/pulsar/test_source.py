"""What only a Pulsar source has: entries of many messages, ids, properties, compacted tables."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

import headgate as hg
from headgate.base.errors import GraphError, HeadgateError
from tests.pulsar.client import Pulsar, Send
from tests.reading import Reading


def numbered(numbers: range, *, keyed: bool = True, **more: Any) -> list[Send]:
    return [Send(json.dumps({"id": n}), str(n) if keyed else None, **more) for n in numbers]


def send_mixed(pulsar: Pulsar, topic: str, numbers: range) -> None:
    """The numbers in turns from a producer that batches and from one that does not."""
    third = max(3, len(numbers) // 3)
    for at in range(0, len(numbers), third):
        part = numbers[at : at + third]
        half = len(part) // 2
        pulsar.send(topic, numbered(part[:half]), batch=7)
        pulsar.send(topic, numbered(part[half:]))


def test_should_go_on_from_the_middle_of_an_entry(pulsar: Pulsar, reading: Reading) -> None:
    topic = pulsar.topic(3)
    source = hg.topic(pulsar.address(topic), schema="id BIGINT")
    send_mixed(pulsar, topic, range(0, 700, 7))
    reading.go(source)
    assert reading.ids() == list(range(0, 700, 7))
    send_mixed(pulsar, topic, range(700, 900, 7))
    reading.go(source)
    assert reading.ids() == list(range(0, 900, 7))
    last = {str(m.partition): m.id for m in pulsar.read(topic)}
    assert reading.checkpoints()[-1].sources["in"].end == last
    assert pulsar.subscriptions(topic) == []


@pytest.mark.parametrize("partitions", [0, 1])
def test_should_read_in_small_batches_without_a_gap_at_their_borders(
    pulsar: Pulsar, reading: Reading, partitions: int
) -> None:
    topic = pulsar.topic(partitions)
    send_mixed(pulsar, topic, range(0, 1800, 3))
    source = hg.topic(
        pulsar.address(topic), schema="id BIGINT", max_records="60", metadata="message_id"
    )
    reading.go(source)
    assert reading.ids() == list(range(0, 1800, 3))
    assert sorted(row["message_id"] for row in reading.rows()) == sorted(
        m.id for m in pulsar.read(topic)
    )
    taken = [r.rows["in"]["records_out"] for r in reading.checkpoints()]
    assert sum(taken) == 600 and len(taken) >= 4


def test_should_start_at_the_messages_that_are_given(pulsar: Pulsar, reading: Reading) -> None:
    topic = pulsar.topic(1)
    pulsar.send(topic, numbered(range(10)), batch=5)
    pulsar.send(topic, numbered(range(10, 20)), batch=4)
    ids = {json.loads(m.value or "")["id"]: m.id for m in pulsar.read(topic)}

    def source(start: Any) -> hg.PulsarSource:
        return hg.PulsarSource(pulsar.url, topic, "id BIGINT", start=start)

    reading.go(source({0: ids[12]}))  # in the middle of a batch
    assert reading.ids() == list(range(12, 20))
    reading.go(source({0: ids[14]}), fresh=True)  # at the beginning of one
    assert reading.ids() == sorted([*range(12, 20), *range(14, 20)])


def test_should_make_columns_of_key_times_id_and_properties(
    pulsar: Pulsar, reading: Reading
) -> None:
    topic = pulsar.topic(2)
    happened = 1_700_000_000_123
    pulsar.send(topic, [Send('{"id": 5}', "k5", happened, {"trace": "a1", "b": ""})])
    pulsar.send(topic, [Send('{"id": 6}')])
    reading.go(
        hg.PulsarSource(
            pulsar.url, topic, "id BIGINT",
            metadata="key AS who, topic, partition, publish_time, event_time, message_id,"
            "properties",
        )
    )  # fmt: skip
    rows = {row["id"]: row for row in reading.rows()}
    truth = {json.loads(m.value or "")["id"]: m for m in pulsar.read(topic)}

    def published(id: int) -> str:
        when = datetime.fromtimestamp(truth[id].publish_ms / 1000, UTC)
        return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def name(id: int) -> str:
        return f"persistent://public/default/{topic}-partition-{truth[id].partition}"

    assert rows[5] == {
        "id": 5, "who": "k5", "topic": name(5), "partition": truth[5].partition,
        "publish_time": published(5), "event_time": "2023-11-14T22:13:20.123Z",
        "message_id": truth[5].id, "properties": {"trace": "a1", "b": ""},
    }  # fmt: skip
    assert rows[6] == {
        "id": 6, "topic": name(6), "partition": truth[6].partition,
        "publish_time": published(6), "message_id": truth[6].id, "properties": {},
    }  # fmt: skip


def changes(versions: range, keys: tuple[int, ...]) -> list[Send]:
    return [Send(json.dumps({"id": k, "v": v}), str(k)) for v in versions for k in keys]


def test_should_keep_the_latest_row_of_a_compacted_table(pulsar: Pulsar, reading: Reading) -> None:
    users, orders = pulsar.topic(2), pulsar.topic(2)

    @hg.job("lookups")
    def lookups(job: hg.Job) -> None:
        changelog = hg.PulsarSource(pulsar.url, users, "id BIGINT, v INT", compacted=True)
        table = job.table("users", changelog, key="id")
        stream = job.source("orders", hg.topic(pulsar.address(orders), schema="id BIGINT"))
        found = stream.lookup("who", table, on="id", missing="side")
        found.sink("out", hg.LogSink(str(reading.folder / "out")))
        found.missing.sink("missing", hg.LogSink(str(reading.folder / "missing")))

    pulsar.send(users, [*changes(range(20), (3, 30, 300)), Send(b"", "30")], batch=6)
    pulsar.compact(users)
    pulsar.send(users, changes(range(20, 21), (300,)))
    pulsar.send(orders, numbered(range(0, 303, 3)))
    reading.run(lookups)
    assert sorted((r["id"], r["users"]["v"]) for r in reading.rows()) == [(3, 19), (300, 20)]
    assert len(reading.rows("missing")) == 101 - 2
    read = reading.checkpoints("lookups")[-1].totals["users"]["records_out"]
    assert read == 3  # a deleted key leaves nothing


def test_should_stop_when_the_topic_was_made_anew_and_only_its_messages_tell(
    pulsar: Pulsar, reading: Reading
) -> None:
    def source(on_data_loss: str) -> hg.Source:
        return hg.topic(
            pulsar.address(topic), schema="id BIGINT", on_data_loss=on_data_loss,
            admin_url="http://127.0.0.1:9",  # nobody there, who could tell when it was made
        )  # fmt: skip

    topic = pulsar.topic(1)
    pulsar.send(topic, numbered(range(10)))
    reading.go(source("fail"))
    pulsar.delete(topic)
    pulsar.create(topic, 1)
    pulsar.send(topic, numbered(range(10, 12)))
    with pytest.raises(HeadgateError, match="gone from the topic") as stopped:
        reading.go(source("fail"))
    assert "on_data_loss" in str(stopped.value)
    reading.go(source("continue"))
    assert reading.ids() == list(range(12))


@pytest.mark.slow
def test_should_say_that_no_broker_answers(reading: Reading) -> None:
    with pytest.raises(HeadgateError, match=r"no Pulsar broker answers at pulsar://127\.0\.0\.1:9"):
        reading.go(hg.PulsarSource("pulsar://127.0.0.1:9", "orders", "id BIGINT"))


def source(*arguments: Any, **named: Any) -> Callable[[], hg.Source]:
    return lambda: hg.PulsarSource("pulsar://h:1", *arguments, **named)


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            lambda: hg.PulsarSource("localhost", "t", "id INT"),
            "the address of a Pulsar service must be",
        ),
        (source("a/b", "id INT"), "a Pulsar topic's name must be"),
        (source("non-persistent://public/default/t", "id INT"), "a Pulsar topic's name must be"),
        (source("t", "id INT", format="avro"), "'format' must be"),
        (source("t", "id INT", metadata="offset"), "metadata must be one of"),
        (source("t", "id INT", start={0: "x"}), "the id of a Pulsar message must be"),
        (source("t", "id INT", start={0: 17}), "start must be a message id for each"),
        (source("t", "id INT", subscription=" "), "subscription must have a name"),
        (
            source("t", "id INT", options={"token": "a", "token_file": "b"}),
            "token and token_file exclude",
        ),
        (source("t", "id INT", options={"tls_cert": "a"}), "tls_cert and tls_key must"),
        (source("t", "id INT", options={"tls_trust_certs": "/no/such"}), "no file /no/such"),
        (lambda: hg.topic("pulsar://h:1", schema="id INT"), "a Pulsar address must be"),
        (source("t", "id INT", compacted=True), "must be read as a table"),
    ],
)
def test_should_say_what_is_wrong_with_a_source(
    reading: Reading, source: Callable[[], hg.Source], said: str
) -> None:
    with pytest.raises(GraphError, match=said):
        reading.go(source())
