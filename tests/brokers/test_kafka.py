"""What only a Kafka broker has: storage that is formatted first, and its answer to clients."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from headgate.base.errors import HeadgateError
from headgate.brokers import BrokerState, KafkaBroker
from headgate.brokers.kafka_cluster import describe_cluster
from headgate.brokers.process import free_port
from headgate.cli.main import invoke
from tests.brokers.kinds import behave


def test_other_brokers_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("start", "stop", "status"):
        assert invoke(["broker", verb, "rabbit"]) == 2
        assert "the broker must be kafka or pulsar, got 'rabbit'" in capsys.readouterr().err


def test_storage_that_cannot_be_made_is_reported(tmp_path: Path, stand_in: Path) -> None:
    behave(stand_in, "echo 'No space left on device' >&2; exit 1")
    broker = KafkaBroker(tmp_path / "kafka")
    with pytest.raises(HeadgateError, match=r"could not be created \(No space left on device\)"):
        broker.start()
    assert broker.status().state == BrokerState.ABSENT
    trace = "In x: y\\n\\tat a.b(c)\\nCaused by: two of one port\\n\\tat d\\n\\t... 8 more\\n"
    behave(stand_in, f"printf '{trace}' >&2; exit 1")
    with pytest.raises(HeadgateError, match=r"created \(Caused by: two of one port\)"):
        broker.start()


def test_storage_without_a_cluster_is_left_alone(tmp_path: Path, stand_in: Path) -> None:
    behave(stand_in, "exit 1")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "meta.properties").write_text("something=else")
    with pytest.raises(HeadgateError, match="is not the storage of a Kafka broker"):
        KafkaBroker(tmp_path).start()
    assert (tmp_path / "data" / "meta.properties").read_text() == "something=else"


def test_a_cluster_says_its_id_and_the_ports_of_its_brokers(kafka_servers: str) -> None:
    found = describe_cluster(kafka_servers)
    assert found is not None
    assert found.id
    assert found.ports == (int(kafka_servers.rpartition(":")[2]),)


@pytest.mark.parametrize(
    "answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\6\0\0\0\1\0\0"]
)
def test_whoever_answers_otherwise_is_not_kafka(
    answer: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        assert describe_cluster(f"127.0.0.1:{server.getsockname()[1]}") is None
    assert describe_cluster(f"127.0.0.1:{free_port()}") is None
    assert capfd.readouterr().err == "", "the client keeps its errors to itself"


def test_one_that_does_not_answer_is_waited_for_no_longer_than_it_takes() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert describe_cluster(f"127.0.0.1:{silent.getsockname()[1]}", timeout=0.3) is None
