"""`headgate topic` on a real Kafka broker."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from pyspark.sql import SparkSession

from headgate.cli.main import invoke
from tests.cli.kafka_topics import COMMAND, Topic, headgate


@pytest.fixture
def new(kafka_servers: str, capsys: pytest.CaptureFixture[str]) -> Callable[..., Topic]:
    return lambda *options: Topic(kafka_servers, capsys).create(*options)


def settings_of(topic: Topic) -> dict[str, str]:
    resource = ConfigResource(ResourceType.TOPIC, topic.name)
    admin = AdminClient({"bootstrap.servers": topic.servers})
    found = admin.describe_configs([resource])[resource].result(30)
    return {name: entry.value for name, entry in found.items()}


def murmur2(data: bytes) -> int:
    """The hash of Java's default partitioner (org.apache.kafka.common.utils.Utils.murmur2)."""
    m, mask = 0x5BD1E995, 0xFFFFFFFF
    h = 0x9747B28C ^ len(data)
    whole = len(data) // 4 * 4
    for at in range(0, whole, 4):
        k = int.from_bytes(data[at : at + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    if whole < len(data):
        h = (h ^ int.from_bytes(data[whole:], "little")) * m & mask
    h = (h ^ h >> 13) * m & mask
    return (h ^ h >> 15) & 0x7FFFFFFF


def test_should_create_a_topic_once(kafka_servers: str, capsys: pytest.CaptureFixture[str]) -> None:
    topic = Topic(kafka_servers, capsys)
    assert topic.run("create", "--partitions", "3") == 0
    assert capsys.readouterr().err == f"created {topic.address} with 3 partitions\n"
    assert topic.run("create", "--partitions", "3") == 0
    assert capsys.readouterr().err == f"{topic.address} already exists\n"
    assert topic.run("create", "--partitions", "2") == 5
    assert "(expected 2 partitions, got 3): pass --partitions 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "policy", "millis", "told", "words"),
    [
        ([], "delete", "-1", "infinite", "kept for ever"),
        (["--retention", "infinite"], "delete", "-1", "infinite", "kept for ever"),
        (["--retention", "7d"], "delete", "604800000", "7 days", "kept for 7 days"),
        (["--retention", "90 minutes"], "delete", "5400000", "90 minutes", "kept for 90 minutes"),
        (["--compact"], "compact", "-1", "compacted", "compacted"),
        (
            ["--compact", "--retention", "1 day"],
            "compact,delete", "86400000", "compacted, 1 day", "compacted, 1 day",
        ),
    ],
)  # fmt: skip
def test_should_keep_records_as_long_as_asked_for(
    options: list[str], policy: str, millis: str, told: str, words: str,
    new: Callable[..., Topic], capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    topic = new(*options)
    settings = settings_of(topic)
    assert sorted(settings["cleanup.policy"].split(",")) == sorted(policy.split(","))
    assert settings["retention.ms"] == millis
    assert topic.facts()["retention"] == told
    assert topic.run("describe") == 0
    assert capsys.readouterr().out.splitlines()[0].endswith(f"   0 records   {words}")
    assert topic.run("create", *options) == 0
    assert topic.run("create") == 0  # it does not ask for a retention


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--compact"], "(expected retention compacted, got 7 days)"),
        (["--retention", "infinite"], "(expected retention infinite, got 7 days)"),
        (["--replication", "2"], "(expected replication 2, got 1)"),
    ],
)
def test_should_refuse_a_topic_that_is_kept_otherwise(
    options: list[str], said: str, new: Callable[..., Topic], capsys: pytest.CaptureFixture[str]
) -> None:
    topic = new("--retention", "7d", "--replication", "1")
    assert topic.run("create", *options) == 5
    assert said in capsys.readouterr().err


def test_should_know_that_the_largest_retention_is_for_ever(
    kafka_servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = Topic(kafka_servers, capsys)
    admin = AdminClient({"bootstrap.servers": kafka_servers})
    new = NewTopic(topic.name, 1, config={"retention.ms": str(2**63 - 1)})
    admin.create_topics([new])[topic.name].result(30)
    assert topic.facts()["retention"] == "infinite"


def test_should_take_records_in_and_give_them_out(
    new: Callable[..., Topic], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = new("--partitions", "2")
    source = tmp_path / "orders.jsonl"
    source.write_text("".join(f'{{"id":{i}}}\n' for i in range(1000)) + "\n")
    assert topic.run("produce", "--file", str(source)) == 0
    said = capsys.readouterr().err
    assert said == f"produced 1,000 records to {topic.address} (1 blank lines left out)\n"
    assert sorted(topic.lines()) == sorted(f'{{"id":{i}}}' for i in range(1000))
    assert len(topic.lines("--limit", "3")) == 3
    assert topic.lines("--limit", "0") == []
    assert topic.lines("--from", "latest") == []


def test_should_keep_the_order_of_each_partition(new: Callable[..., Topic]) -> None:
    topic = new("--partitions", "3")
    topic.produce("".join(f"{i % 30}\t{i}\n" for i in range(5000)), "--with-keys")
    records = topic.records()
    assert len(records) == 5000
    for partition in range(3):
        mine = [record for record in records if record["partition"] == partition]
        assert [record["offset"] for record in mine] == list(range(len(mine)))
        values = [int(record["value"]) for record in mine]
        assert values == sorted(values)


def test_should_put_keys_where_java_puts_them(new: Callable[..., Topic]) -> None:
    topic = new("--partitions", "7")
    keys = [f"user-{i}" for i in range(200)] + ["", "é", "x" * 1001]
    topic.produce("".join(f"{key}\t1\n" for key in keys), "--with-keys")
    places = {record["key"]: record["partition"] for record in topic.records()}
    assert places == {key: murmur2(key.encode()) % 7 for key in keys}


def test_should_take_the_key_from_a_field(new: Callable[..., Topic]) -> None:
    topic = new("--partitions", "2")
    topic.produce("".join(f'{{"id":{i % 5},"n":{i}}}\n' for i in range(50)), "--key", "id")
    places = {(record["key"], record["partition"]) for record in topic.records()}
    assert places == {(str(i), murmur2(str(i).encode()) % 2) for i in range(5)}


def test_should_delete_with_an_empty_value(new: Callable[..., Topic]) -> None:
    topic = new("--compact")
    topic.produce('1\t{"id":1}\n1\t\n', "--with-keys")
    assert topic.lines("--keys") == ['1\t{"id":1}', "1\t"]
    assert [record["value"] for record in topic.records()] == ['{"id":1}', None]


def test_should_send_to_one_partition(
    new: Callable[..., Topic], capsys: pytest.CaptureFixture[str]
) -> None:
    topic = new("--partitions", "3")
    topic.produce("".join(f"{i}\tx\n" for i in range(20)), "--with-keys", "--partition", "1")
    facts = topic.facts()
    assert [part["records"] for part in facts["partitions"]] == [0, 20, 0]
    assert (facts["records"], facts["replication"], facts["leaders"]) == (20, 1, 3)
    assert topic.run("produce", "--partition", "3") == 2
    assert "has no partition 3 (expected 0 to 2)" in capsys.readouterr().err


def test_should_spread_records_over_time_by_the_rate(new: Callable[..., Topic]) -> None:
    topic = new()
    topic.produce("x\n" * 50, "--rate", "50")
    times = [datetime.fromisoformat(record["timestamp"]) for record in topic.records()]
    assert len(times) == 50
    assert times[-1] - times[0] >= timedelta(seconds=0.7)


def test_should_begin_at_a_time(new: Callable[..., Topic]) -> None:
    topic = new("--partitions", "2")
    topic.produce("a\t1\nb\t2\nc\t3\n", "--with-keys")
    time.sleep(0.05)
    between = datetime.now(UTC)
    time.sleep(0.05)
    topic.produce("a\t4\n", "--with-keys")
    assert topic.lines("--from", between.isoformat()) == ["4"]
    assert topic.lines("--from", (between - timedelta(days=1)).isoformat(), "--limit", "9") != []
    assert topic.lines("--from", (between + timedelta(days=1)).isoformat()) == []
    assert len(topic.lines("--from", "1969-12-31T23:59:59.999Z")) == 4


def test_should_show_headers_and_bytes_that_are_no_text(new: Callable[..., Topic]) -> None:
    topic = new()
    producer = Producer({"bootstrap.servers": topic.servers})
    headers = [("from", b"shop"), ("raw", b"\xff\xfe"), ("twice", b"1"), ("twice", b"2")]
    producer.produce(topic.name, b"\xff\x00", b"\xfe", headers=[*headers, ("none", None)])
    producer.produce(topic.name, "é".encode())
    assert producer.flush(30) == 0
    first, second = topic.records()
    assert (first["key"], first["value"]) == ("base64:/g==", "base64:/wA=")
    assert first["headers"] == {
        "from": "shop", "raw": "base64://4=", "twice": ["1", "2"], "none": None,
    }  # fmt: skip
    assert second["value"] == "é" and "headers" not in second
    assert topic.lines("--keys") == ["base64:/g==\tbase64:/wA=", "\té"]


def test_should_read_records_whose_time_is_none(new: Callable[..., Topic]) -> None:
    topic = new()
    change = ConfigResource(
        ResourceType.TOPIC,
        topic.name,
        incremental_configs=[
            ConfigEntry(
                "message.timestamp.after.max.ms",
                str(2**63 - 1),
                incremental_operation=AlterConfigOpType.SET,
            )
        ],
    )
    admin = AdminClient({"bootstrap.servers": topic.servers})
    admin.incremental_alter_configs([change])[change].result(30)
    producer = Producer({"bootstrap.servers": topic.servers})
    producer.produce(topic.name, b"x", timestamp=1_700_000_000_000_000)  # microseconds
    assert producer.flush(30) == 0
    (record,) = topic.records()
    assert (record["value"], record["timestamp"]) == ("x", None)


def test_should_leave_out_an_aborted_transaction(new: Callable[..., Topic]) -> None:
    topic = new()
    producer = topic.transactions()
    topic.transaction(producer, "a", "b")
    producer.commit_transaction()  # its end takes offset 2
    topic.transaction(producer, "gone", "gone")
    producer.abort_transaction()  # 3, 4 and the end at 5
    assert topic.lines() == ["a", "b"]
    topic.transaction(producer, "c")
    producer.commit_transaction()  # 6, the last offset that is a record; 7 is its end
    assert topic.offsets() == [0, 1, 6]
    assert topic.offsets("--committed") == [0, 1, 6]
    assert topic.offsets("--uncommitted") == [0, 1, 3, 4, 6]
    assert topic.lines("--from", "latest") == []
    assert topic.facts()["records"] == 8


def test_should_end_before_an_open_transaction(new: Callable[..., Topic]) -> None:
    topic = new("--partitions", "2")
    producer = topic.transactions()
    topic.produce("before\n", "--partition", "0")
    topic.transaction(producer, "open")
    topic.produce("after\n", "--partition", "0")
    topic.produce("elsewhere\n", "--partition", "1")
    try:
        assert sorted(topic.lines()) == ["before", "elsewhere"]
        assert sorted(topic.lines("--uncommitted")) == ["after", "before", "elsewhere", "open"]
    finally:
        producer.commit_transaction()
    assert sorted(topic.lines()) == ["after", "before", "elsewhere", "open"]


def test_should_end_where_the_topic_ended_when_the_command_began(
    new: Callable[..., Topic],
) -> None:
    topic = new()
    topic.produce("x\n" * 5000)
    reader = subprocess.Popen(
        [*COMMAND, "read", topic.address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    producer = Producer({"bootstrap.servers": topic.servers})
    while reader.poll() is None:  # it never runs dry
        producer.produce(topic.name, b"y")
        producer.poll(0.001)
    out, err = reader.communicate(timeout=60)
    assert (reader.returncode, err) == (0, "")
    assert out.splitlines()[:5000] == ["x"] * 5000


def test_should_follow_up_to_the_limit(new: Callable[..., Topic]) -> None:
    topic = new("--partitions", "2")
    topic.produce("1\tfirst\n", "--with-keys")
    reader = subprocess.Popen(
        [*COMMAND, "read", topic.address, "--follow", "--limit", "3"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "first\n"  # seen before it has all
    producer = topic.transactions()
    topic.transaction(producer, "gone")
    producer.abort_transaction()
    topic.produce("1\tsecond\n", "--with-keys")
    assert reader.stdout.readline() == "second\n"
    topic.produce("1\tthird\n1\tfourth\n", "--with-keys")
    out, _ = reader.communicate(timeout=60)
    assert (out, reader.returncode) == ("third\n", 0)


def test_should_say_nothing_when_the_reader_goes_away(new: Callable[..., Topic]) -> None:
    topic = new()
    topic.produce("x" * 100 + "\n" + "y\n" * 50_000)
    words = " ".join(f"'{word}'" for word in [*COMMAND, "read", topic.address])
    done = subprocess.run(
        ["sh", "-c", f"{words} | head -1"], capture_output=True, text=True, check=False
    )
    assert (done.stdout, done.stderr) == ("x" * 100 + "\n", "")


def test_should_count_only_what_was_acknowledged(new: Callable[..., Topic]) -> None:
    topic = new()
    big = "x" * 2_000_000
    done = headgate("produce", topic.address, text=f"1\n2\n{big}\n3\n")
    assert done.returncode == 1
    assert "; 2 records were acknowledged: make the record smaller" in done.stderr
    assert topic.lines() == ["1", "2"]


def test_should_count_what_the_broker_took_before_it_refused(
    new: Callable[..., Topic], kafka_servers: str
) -> None:
    topic = new()
    done = headgate(
        "produce", topic.address, "--option", "message.max.bytes=3000000", "--rate", "5",
        text=f"1\n2\n{'x' * 2_000_000}\n3\n",
    )  # fmt: skip
    assert done.returncode == 1
    found = re.search(r"; (\d+) records were acknowledged", done.stderr)
    assert found is not None, done.stderr
    assert int(found[1]) == len(topic.lines()) == 2


def test_should_name_a_bad_line_and_send_those_before_it(new: Callable[..., Topic]) -> None:
    topic = new()
    done = headgate("produce", topic.address, "--key", "id", text='{"id":1}\n{"other":2}\n')
    assert done.returncode == 2
    assert done.stderr.startswith("error: line 2 has no field 'id': correct the line")
    assert topic.lines() == ['{"id":1}']


def test_a_new_project_for_kafka_runs_by_the_commands_that_it_names(
    kafka_servers: str,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert invoke(["init", str(tmp_path / "shop"), "--template", "kafka"]) == 0
    told = capsys.readouterr().err.removeprefix("now: ")
    commands = [shlex.split(command) for command in told.split(" && ")]
    assert commands[:2] == [
        ["cd", str(tmp_path / "shop")],
        ["headgate", "broker", "start", "kafka", "--port", "9092"],
    ]
    own = ("127.0.0.1:9092/", f"{kafka_servers}/{uuid4().hex}-")  # the tests' broker
    monkeypatch.chdir(tmp_path / "shop")
    settings = Path("headgate.toml").read_text()
    assert settings.count(own[0]) == 2
    Path("headgate.toml").write_text(settings.replace(*own))
    for words in commands[2:]:
        capsys.readouterr()
        assert invoke([word.replace(*own) for word in words[1:]]) == 0, capsys.readouterr().err
    totals = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    newest = {row["user"]: row["total"] for row in sorted(totals, key=lambda row: row["total"])}
    assert (newest, len(totals)) == ({"ann": 7, "bob": 7, "eve": 1}, 5)
