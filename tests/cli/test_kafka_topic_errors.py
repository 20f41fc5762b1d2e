"""`headgate topic` on Kafka when something is wrong: addresses, options, rights, brokers."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclOperation,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from headgate.brokers.process import free_port
from headgate.cli.main import invoke
from tests.cli.kafka_topics import Topic, headgate
from tests.kafka.secured import Secured


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("kafka://localhost:9092", "names no topic (expected kafka://host:port"),
        ("kafka://localhost:9092/", "names no topic"),
        ("kafka:localhost:9092/orders", "is not Kafka's"),
        ("kafka://localhost/orders", "has a server without a port"),
        ("kafka://a:9092,b/orders", "has a server without a port"),
        ("kafka://a:99999/orders", "has a server without a port"),
        ("kafka://a:9092/two words", "at most 249, got 'two words'"),
        ("kafka://a:9092/a/b", "at most 249, got 'a/b'"),
    ],
)
def test_should_show_what_an_address_looks_like(
    address: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["topic", "read", address]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1


@pytest.mark.parametrize("verb", ["read", "produce", "describe"])
def test_should_not_find_a_topic_that_is_not_there(
    verb: str, kafka_servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = Topic(kafka_servers, capsys)
    assert topic.run(verb) == 3
    err = capsys.readouterr().err
    assert err.startswith(f"error: there is no topic at {topic.address}: ")
    assert err.endswith(
        f"create it with `headgate topic create {topic.address}` (headgate explain NOT_FOUND)\n"
    )


def test_should_name_the_servers_that_do_not_answer() -> None:
    servers = f"127.0.0.1:{free_port()}"
    done = headgate("read", f"kafka://{servers}/orders", "--json")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: no Kafka broker is reachable at {servers} (")
    assert "headgate broker start kafka" in done.stderr
    assert done.stderr.count("\n") == 1  # nothing of the client's own log
    assert servers in json.loads(done.stdout)["error"]["message"]


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["no.such.thing=1"], 2, 'No such configuration property: "no.such.thing"'),
        (["error_cb=x"], 2, 'No such configuration property: "error_cb"'),
        (["security.protocol=QUIC"], 2, "security.protocol"),
        (["bootstrap.servers=a:1"], 2, "the address names the servers"),
        (["isolation.level=read_committed"], 2, "use --committed or --uncommitted"),
        (["client.id=a", "client.id=b"], 2, "the option client.id is given twice"),
        (["secret"], 2, "--option must be NAME=VALUE"),
        (["@nowhere"], 3, "there is no file nowhere"),
        (["@broken"], 2, "line 2 of broken must be NAME=VALUE"),
    ],
)
def test_should_refuse_bad_options(
    options: list[str],
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("broken").write_text("client.id = a\nsecret\n")
    words = [word for option in options for word in ("--option", option)]
    assert invoke(["topic", "read", "kafka://localhost:1/orders", *words]) == code
    err = capsys.readouterr().err
    assert said in err and "secret" not in err and err.count("\n") == 1


def test_should_pass_on_what_the_broker_does_not_make(
    kafka_servers: str, capsys: pytest.CaptureFixture[str]
) -> None:
    topic = Topic(kafka_servers, capsys)
    assert topic.run("create", "--replication", "3") == 2
    assert "replication factor of 3 cannot be reached" in capsys.readouterr().err
    assert topic.run("describe") == 3


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    made = Secured(tmp_path_factory.mktemp("secured"))
    yield made
    made.broker.stop()


@pytest.fixture
def topic_of(secured: Secured, capsys: pytest.CaptureFixture[str]) -> Callable[..., Topic]:
    def make(user: str, password: str | None = None) -> Topic:
        return Topic(secured.servers, capsys, secured.options(user, password))

    return make


def test_should_log_in_with_options_and_with_a_file(
    secured: Secured, topic_of: Callable[..., Topic], tmp_path: Path
) -> None:
    topic = topic_of("alice").create("--partitions", "2")
    topic.produce("1\tone\n", "--with-keys")
    secrets = tmp_path / "kafka.properties"
    pairs = [word for word in topic.options if word != "-o"]
    secrets.write_text("# of alice\n\n" + "\n".join(pairs) + "\n")
    topic.options = ("--option", f"@{secrets}")
    assert topic.lines() == ["one"]
    assert topic.facts()["records"] == 1


def test_should_say_that_a_password_is_wrong(topic_of: Callable[..., Topic]) -> None:
    topic = topic_of("alice", "guessed")
    done = headgate("describe", topic.address, *topic.options)
    assert done.returncode == 1
    assert "refused the login (" in done.stderr and "sasl.password" in done.stderr
    assert "guessed" not in done.stderr and done.stderr.count("\n") == 1


def test_should_say_that_a_right_is_missing(
    secured: Secured, topic_of: Callable[..., Topic], capsys: pytest.CaptureFixture[str]
) -> None:
    alices = topic_of("alice").create()
    bobs = topic_of("bob")
    bobs.name = alices.name
    alices.produce("1\n")
    for verb in ("create", "produce", "read", "describe"):
        assert bobs.run(verb) == 1
        assert f"not authorised for {bobs.address} (" in capsys.readouterr().err
    # No right to the consumer group is needed, nor to the settings.
    secured.grant(bobs.name, "bob", AclOperation.READ)
    until = time.monotonic() + 30
    while bobs.run("read") != 0 and time.monotonic() < until:
        time.sleep(0.1)  # the broker hears of the right a little later
    assert bobs.lines() == ["1"]
    assert bobs.facts()["retention"] is None
    done = headgate("produce", bobs.address, *bobs.options, text="2\n")
    assert done.returncode == 1
    assert "0 records were acknowledged" in done.stderr and "not authorised" in done.stderr
    assert done.stderr.count("\n") == 1  # the client has a word to say here at any log level


@pytest.mark.parametrize("verb", ["read", "produce", "describe"])
def test_should_not_make_a_topic_by_looking_for_it(
    verb: str, topic_of: Callable[..., Topic]
) -> None:
    topic = topic_of("alice")
    assert topic.run(verb) == 3
    assert topic.run("describe") == 3


def test_should_read_over_what_compaction_took(
    secured: Secured, topic_of: Callable[..., Topic]
) -> None:
    topic = topic_of("alice").create("--compact")
    resource = ConfigResource(
        ResourceType.TOPIC,
        topic.name,
        incremental_configs=[
            ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
            for name, value in [("segment.ms", "100"), ("min.cleanable.dirty.ratio", "0.01")]
        ],
    )
    admin = AdminClient({"bootstrap.servers": secured.inner})
    admin.incremental_alter_configs([resource])[resource].result(30)
    sent = 0
    until = time.monotonic() + 60
    while True:  # a segment is compacted when a later one has begun
        topic.produce(f"a\t{sent}\nb\t{sent}\n", "--with-keys")
        sent += 1
        records = topic.records()
        newest = {record["key"]: record["value"] for record in records}
        assert newest == {"a": str(sent - 1), "b": str(sent - 1)}
        if len(records) < topic.facts()["records"]:
            break
        assert time.monotonic() < until, "nothing was compacted"
    assert topic.facts()["records"] == 2 * sent
    assert topic.facts()["retention"] == "compacted"
