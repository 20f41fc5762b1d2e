"""`headgate topic` on a real Pulsar broker."""

from __future__ import annotations

import json
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from headgate.brokers import PulsarBroker
from headgate.cli.main import invoke
from headgate.connectors.pulsar.admin import PulsarAdmin
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.names import PulsarTopicName
from headgate.connectors.topic_client import Retention
from tests.cli.kafka_topics import COMMAND, headgate
from tests.pulsar import secured

# What "...".hashCode() & Integer.MAX_VALUE gives in Java, which Pulsar's producers go by.
HASHES = {
    "user-1": 1311451823, "user-2": 1311451824, "user-3": 1311451825,
    "é": 233, "😀": 1772899, "a longer key, with spaces": 973584172,
}  # fmt: skip
KEYS = tuple(HASHES)


@dataclass
class Topic:
    """A topic of its own for a test, and what the command says about it."""

    url: str
    capsys: pytest.CaptureFixture[str]
    options: tuple[str, ...] = ()
    name: str = field(default_factory=lambda: f"t-{uuid.uuid4()}")

    @property
    def address(self) -> str:
        return f"{self.url}/{self.name}"

    @property
    def full(self) -> PulsarTopicName:
        return PulsarTopicName.parse(self.name)

    @property
    def admin(self) -> PulsarAdmin:
        return PulsarAdmin(PulsarAccess(self.url))

    def run(self, verb: str, *options: str) -> int:
        self.capsys.readouterr()
        return invoke(["topic", verb, self.address, *self.options, *options])

    def create(self, *options: str) -> Topic:
        assert self.run("create", "--quiet", *options) == 0, self.capsys.readouterr().err
        return self

    def produce(self, text: str, *options: str) -> None:
        done = headgate("produce", self.address, *self.options, *options, text=text)
        assert done.returncode == 0, done.stderr

    def send(self, *values: bytes, **options: Any) -> None:
        """Send with Pulsar's own client, each value as an entry."""
        client = PulsarAccess(self.url).connect()
        producer = client.create_producer(str(self.full), batching_enabled=False)
        for value in values:
            producer.send(value, **options)
        client.close()

    def lines(self, *options: str) -> list[str]:
        assert self.run("read", *options) == 0, self.capsys.readouterr().err
        return self.capsys.readouterr().out.splitlines()

    def records(self, *options: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines("--json", *options)]

    def facts(self) -> dict[str, Any]:
        assert self.run("describe", "--json") == 0, self.capsys.readouterr().err
        told: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return told


@pytest.fixture
def new(pulsar_url: str, capsys: pytest.CaptureFixture[str]) -> Callable[..., Topic]:
    return lambda *options: Topic(pulsar_url, capsys).create(*options)


def test_should_create_a_topic_once(pulsar_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    topic = Topic(pulsar_url, capsys)
    assert topic.run("create", "--partitions", "3") == 0
    assert capsys.readouterr().err == f"created {topic.address} with 3 partitions\n"
    assert topic.run("create", "--partitions", "3") == 0
    assert capsys.readouterr().err == f"{topic.address} already exists\n"
    assert topic.run("create", "--partitions", "2") == 5
    assert "(expected 2 partitions, got 3): pass --partitions 3" in capsys.readouterr().err
    assert topic.admin.deduplication(topic.full) is True, "as the broker has it"


def test_should_keep_messages_as_long_as_asked_for(
    new: Callable[..., Topic], capsys: pytest.CaptureFixture[str]
) -> None:
    week = new("--retention", "7d")
    assert week.admin.retention(week.full) == Retention(timedelta(days=7))
    assert week.facts()["retention"] == "7 days"
    assert week.run("create", "--retention", "1d") == 5
    assert "(expected retention 1 day, got 7 days)" in capsys.readouterr().err
    assert week.run("create") == 0  # it does not ask for a retention
    assert new("--retention", "infinite").facts()["retention"] == "infinite"
    other = Topic(week.url, capsys)
    for options, said in (
        (["--compact"], "--compact is not supported"),
        (["--replication", "2"], "leave out --replication"),
        (["--retention", "90s"], "must be whole minutes"),
    ):
        assert other.run("create", *options) == 2
        assert said in capsys.readouterr().err
    assert other.run("describe") == 3, "nothing was made"


def test_should_take_records_in_and_give_them_out(
    new: Callable[..., Topic], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = new("--partitions", "2")
    assert topic.lines() == []
    source = tmp_path / "orders.jsonl"
    source.write_text("".join(f'{{"id":{i}}}\n' for i in range(1000)) + "\n")
    assert topic.run("produce", "--file", str(source)) == 0
    said = capsys.readouterr().err
    assert said == f"produced 1,000 records to {topic.address} (1 blank lines left out)\n"
    assert sorted(topic.lines()) == sorted(f'{{"id":{i}}}' for i in range(1000))
    assert len(topic.lines("--limit", "3")) == 3
    assert topic.lines("--limit", "0") == []
    assert topic.lines("--from", "latest") == []
    assert topic.admin.stats(topic.full)["subscriptions"] == {}, "readers leave nothing behind"


def test_should_put_keys_where_java_puts_them_in_order(new: Callable[..., Topic]) -> None:
    topic = new("--partitions", "3")
    topic.produce("".join(f"{KEYS[i % 6]}\t{i}\n" for i in range(5000)), "--with-keys")
    records = topic.records()
    assert len(records) == 5000
    for partition in range(3):
        mine = [record for record in records if record["partition"] == partition]
        assert {HASHES[record["key"]] % 3 for record in mine} == {partition}
        values = [int(record["value"]) for record in mine]
        assert values == sorted(values)
        ids = [tuple(map(int, record["offset"].split(":"))) for record in mine]
        assert ids == sorted(set(ids))


def test_should_spread_records_without_keys(new: Callable[..., Topic]) -> None:
    topic = new("--partitions", "4")
    topic.produce("x\n" * 40)
    places = [record["partition"] for record in topic.records()]
    assert sorted(places) == sorted(list(range(4)) * 10)


def test_should_delete_with_an_empty_value(new: Callable[..., Topic]) -> None:
    topic = new()
    topic.produce('1\t{"id":1}\n1\t\n', "--with-keys")
    topic.send(b"", partition_key="2")  # as Pulsar's older clients delete
    topic.send(b"")
    assert topic.lines("--keys") == ['1\t{"id":1}', "1\t", "2\t", "\t"]
    assert [record["value"] for record in topic.records()] == ['{"id":1}', None, None, ""]


def test_should_send_to_one_partition_and_describe_it(
    new: Callable[..., Topic], capsys: pytest.CaptureFixture[str]
) -> None:
    topic = new("--partitions", "2")
    topic.produce("".join(f"{i}\tx\n" for i in range(20)), "--with-keys", "--partition", "1")
    assert {record["partition"] for record in topic.records()} == {1}
    empty, full = topic.facts()["partitions"]
    assert (empty["first_id"], empty["last_id"], empty["entries"]) == (None, None, 0)
    assert full["entries"] == topic.facts()["entries"] >= 1
    ledger, last = full["last_id"].split(":")
    assert (full["first_id"], int(last)) == (f"{ledger}:0", full["entries"] - 1)
    assert topic.run("describe") == 0
    assert capsys.readouterr().out.splitlines()[1].split() == [
        "PARTITION", "FIRST", "ID", "LAST", "ID", "ENTRIES", "BYTES",
    ]  # fmt: skip
    assert topic.run("produce", "--partition", "2") == 2
    assert "has no partition 2 (expected 0 to 1)" in capsys.readouterr().err


def test_should_read_a_topic_without_partitions(new: Callable[..., Topic]) -> None:
    topic = new()
    topic.admin.delete(topic.full)
    topic.admin._ask("PUT", topic.full.path, what=topic.full)
    topic.produce("1\n2\n")
    assert topic.lines() == ["1", "2"]
    assert len(topic.facts()["partitions"]) == 1


def test_should_begin_at_a_time(new: Callable[..., Topic]) -> None:
    topic = new("--partitions", "2")
    topic.produce("a\t1\nb\t2\nc\t3\n", "--with-keys")
    time.sleep(0.05)
    between = datetime.now(UTC)
    time.sleep(0.05)
    topic.produce("a\t4\n", "--with-keys")
    assert topic.lines("--from", between.isoformat()) == ["4"]
    assert topic.lines("--from", (between + timedelta(days=1)).isoformat()) == []
    assert len(topic.lines("--from", "1969-12-31T23:59:59.999Z")) == 4


def test_should_show_properties_and_bytes_that_are_no_text(new: Callable[..., Topic]) -> None:
    topic = new()
    before = datetime.now(UTC)
    topic.send(b"\xff\x00", partition_key="é", properties={"from": "shop"})
    (record,) = topic.records()
    assert (record["key"], record["value"]) == ("é", "base64:/wA=")
    assert record["headers"] == {"from": "shop"}
    assert record["offset"].endswith(":0:-1")
    assert abs(datetime.fromisoformat(record["timestamp"]) - before) < timedelta(seconds=10)


def test_should_end_where_the_topic_ended_when_the_command_began(
    new: Callable[..., Topic],
) -> None:
    topic = new("--partitions", "2")
    topic.produce("x\n" * 5000)
    client = PulsarAccess(topic.url).connect()
    producer = client.create_producer(
        str(topic.full), batching_enabled=True, block_if_queue_full=True
    )
    reader = subprocess.Popen(
        [*COMMAND, "read", topic.address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while reader.poll() is None:  # it never runs dry
        producer.send_async(b"y", None)
        time.sleep(0.001)
    client.close()
    out, err = reader.communicate(timeout=60)
    assert (reader.returncode, err) == (0, "")
    assert out.splitlines().count("x") == 5000


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
    topic.produce("2\tsecond\n", "--with-keys")
    assert reader.stdout.readline() == "second\n"
    topic.produce("1\tthird\n1\tfourth\n", "--with-keys")
    out, _ = reader.communicate(timeout=60)
    assert (out, reader.returncode) == ("third\n", 0)
    assert topic.admin.stats(topic.full)["subscriptions"] == {}


def test_should_count_only_what_was_acknowledged(new: Callable[..., Topic]) -> None:
    topic = new()
    done = headgate("produce", topic.address, text=f"1\n2\n{'x' * 6_000_000}\n3\n")
    assert done.returncode == 1
    assert "larger than the broker accepts; 2 records were acknowledged: make" in done.stderr
    assert topic.lines() == ["1", "2"]


def test_should_name_a_bad_line_and_send_those_before_it(new: Callable[..., Topic]) -> None:
    topic = new()
    done = headgate("produce", topic.address, "--key", "id", text='{"id":1}\n{"other":2}\n')
    assert done.returncode == 2
    assert done.stderr.startswith("error: line 2 has no field 'id': correct the line")
    assert topic.lines() == ['{"id":1}']


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("pulsar://localhost:6650", "a Pulsar address must be pulsar://host:port/topic"),
        ("pulsar://localhost/orders", "the address of a Pulsar service must be"),
        ("pulsar+ssl://a:6651/two words", "a Pulsar topic's name must be"),
        ("pulsar://127.0.0.1:9/orders -o what=ever", "has no option 'what'"),
        ("pulsar://127.0.0.1:9/orders -o token_file=/none", "there is no file /none"),
    ],
)
def test_should_say_what_is_wrong_with_an_address(
    address: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = address.split(" -o ")
    assert invoke(["topic", "read", words[0], *(w for o in words[1:] for w in ("-o", o))]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_should_name_the_service_that_does_not_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["topic", "read", "pulsar://127.0.0.1:9/orders"]) == 1
    err = capsys.readouterr().err
    assert "no Pulsar service is reachable at pulsar://127.0.0.1:9: its REST interface " in err
    assert "start one with headgate broker start pulsar" in err


def test_should_name_the_broker_that_does_not_answer_where_its_rest_interface_does(
    new: Callable[..., Topic], capsys: pytest.CaptureFixture[str]
) -> None:
    topic = new()
    topic.send(b"x")
    web = PulsarAccess(topic.url).admin_url
    away = f"pulsar://127.0.0.1:9/{topic.name}"
    assert invoke(["topic", "read", away, "-o", f"admin_url={web}"]) == 1
    assert "no Pulsar broker is reachable at pulsar://127.0.0.1:9 (" in capsys.readouterr().err


@pytest.mark.slow
class TestWhereEverybodyMakesTopicsAndShowsATokenFirst:
    """A broker of its own, with tokens, that makes whatever topic somebody names."""

    @pytest.fixture(scope="class")
    @classmethod
    def url(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
        settings = {**secured.settings(), "allowAutoTopicCreation": "true"}
        folder = tmp_path_factory.mktemp("secured")
        with PulsarBroker(folder, settings=settings) as broker:
            yield broker.servers

    @staticmethod
    def topic(url: str, capsys: pytest.CaptureFixture[str], *options: str) -> Topic:
        return Topic(url, capsys, tuple(w for option in options for w in ("-o", option)))

    @pytest.mark.parametrize("verb", ["read", "produce", "describe"])
    def test_should_not_make_a_topic_by_looking_for_it(
        self, url: str, verb: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        topic = self.topic(url, capsys, f"token={secured.token('admin')}")
        for _ in range(2):
            assert topic.run(verb) == 3
            err = capsys.readouterr().err
            assert err.startswith(f"error: there is no topic at {topic.address}: ")
            remedy = f"create it with `headgate topic create {topic.address}`"
            assert err.endswith(f"{remedy} (headgate explain NOT_FOUND)\n")

    def test_should_let_in_whoever_has_the_token(
        self, url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        file = tmp_path / "token"
        file.write_text(secured.token("admin") + "\n")
        topic = self.topic(url, capsys, f"token_file={file}").create()
        topic.produce("1\n2\n")
        assert topic.lines() == ["1", "2"]
        guest = self.topic(url, capsys, f"token={secured.token('guest')}")
        guest.name = topic.name
        assert guest.run("read") == 1
        assert f"gives no access to {topic.address} (Unaut" in capsys.readouterr().err
        for options in ((), ("token=nonsense",)):
            nobody = self.topic(url, capsys, *options)
            assert nobody.run("read") == 1
            err = capsys.readouterr().err
            assert "refused the login (HTTP 401 Unauthorized): correct the option token" in err

    def test_should_need_no_more_than_the_rights_to_send_and_to_read(
        self, url: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        admin = PulsarAdmin(PulsarAccess(url, {"token": secured.token("admin")}))
        admin._ask(
            "POST", "namespaces/public/default/permissions/clerk", ["produce", "consume"],
            what="namespace",
        )  # fmt: skip
        made = self.topic(url, capsys, f"token={secured.token('admin')}").create()
        clerk = self.topic(url, capsys, f"token={secured.token('clerk')}")
        clerk.name = made.name
        clerk.produce("1\n")
        assert clerk.lines() == ["1"]
        assert clerk.run("describe") == 0
        assert "retention not to be seen" in capsys.readouterr().out
        clerk.name = "another"
        assert clerk.run("create") == 1
        assert f"gives no access to {url}/another (Unauthorized" in capsys.readouterr().err
