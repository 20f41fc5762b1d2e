"""A Pulsar broker: its ports and storage, a kill in between, tokens, and how failures are told."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pulsar
import pytest

from headgate.base.errors import HeadgateError
from headgate.brokers import BrokerState, PulsarBroker, base
from headgate.brokers.base import Started
from headgate.brokers.process import free_port, is_free
from headgate.cli.main import invoke
from headgate.connectors.pulsar.admin import PulsarAdmin
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.names import PulsarTopicName, web_address
from headgate.jvm.java import JavaHome, Origin

ORDERS = PulsarTopicName.parse("orders")


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that does what its script says; gives the script's file."""
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    java = JavaHome(tmp_path / "java", "17.0.1", Origin.JAVA_HOME)
    monkeypatch.setattr(base, "find_java", lambda: java)
    monkeypatch.setattr(base, "fetch", lambda lock, quiet=False: [Path("pulsar.jar")])
    behave(program, "exit 1")
    return program


def behave(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


@contextmanager
def taken(port: int) -> Iterator[None]:
    with socket.create_server(("127.0.0.1", port)):
        yield


def conf(broker: PulsarBroker) -> dict[str, str]:
    lines = (broker.folder / "standalone.conf").read_text().splitlines()[1:]
    return dict(line.split("=", maxsplit=1) for line in lines)


def launch(broker: PulsarBroker, port: int | None = None) -> dict[str, str]:
    """Start where Java ends at once; gives the settings."""
    with pytest.raises(HeadgateError, match="while it was starting"):
        broker.start(port=port)
    return conf(broker)


def test_a_port_needs_the_web_port_that_belongs_to_it(tmp_path: Path, stand_in: Path) -> None:
    broker = PulsarBroker(tmp_path / "pulsar")
    port = free_port(together=lambda port: {"web": port + 1430})
    with taken(port), pytest.raises(HeadgateError, match=rf"port {port} of .* is taken: say ano"):
        broker.start(port=port)
    with taken(port + 1430):
        told = rf"port {port + 1430} of .* is taken, and this broker needs it \(its web port\)"
        with pytest.raises(HeadgateError, match=told):
            broker.start(port=port)
    with pytest.raises(HeadgateError, match="is taken"):
        broker.start(port=65000)
    written = launch(broker, port)
    assert (written["brokerServicePort"], written["webServicePort"]) == (
        str(port),
        str(port + 1430),
    )
    assert broker.servers == f"pulsar://127.0.0.1:{port}"
    assert broker.web == web_address(broker.servers)


def test_without_a_port_a_free_pair_is_chosen_and_kept(tmp_path: Path, stand_in: Path) -> None:
    broker = PulsarBroker(tmp_path / "pulsar")
    first, again = launch(broker), launch(broker)
    assert int(first["webServicePort"]) == int(first["brokerServicePort"]) + 1430 < 32_000
    for name in ("webServicePort", "brokerServicePort"):
        assert again[name] == first[name]


def test_storage_keeps_its_name_and_port_when_the_record_is_deleted(
    tmp_path: Path, stand_in: Path
) -> None:
    broker = PulsarBroker(tmp_path / "pulsar")
    made = "mkdir -p data/bookkeeper/current; touch data/bookkeeper/current/VERSION"
    behave(stand_in, f'echo "$@" > arguments; {made}; exit 1')
    first, said = launch(broker), (broker.folder / "arguments").read_text()
    bookie = said.split("--bookkeeper-port ")[1].split()[0]
    (broker.folder / "broker.json").unlink()
    assert launch(broker)["clusterName"] == first["clusterName"]
    assert f"--bookkeeper-port {bookie} " in (broker.folder / "arguments").read_text()
    told = f"port {bookie} .*its bookie port.*the data belongs to that port"
    with taken(int(bookie)), pytest.raises(HeadgateError, match=told):
        broker.start()


def test_storage_that_was_cut_short_is_made_anew(tmp_path: Path, stand_in: Path) -> None:
    broker = PulsarBroker(tmp_path / "pulsar")
    behave(stand_in, "mkdir -p data/bookkeeper/current; touch data/bookkeeper/half; exit 1")
    first = launch(broker)
    behave(stand_in, "exit 1")
    assert launch(broker)["clusterName"] != first["clusterName"]
    assert not (broker.folder / "data" / "bookkeeper").exists()


def test_somebody_elses_folder_is_left_alone(tmp_path: Path, stand_in: Path) -> None:
    (tmp_path / "data").mkdir()
    with pytest.raises(HeadgateError, match="is in the way and is not the storage of a Pulsar"):
        PulsarBroker(tmp_path).start()
    assert list((tmp_path / "data").iterdir()) == []


def test_settings_stay_with_the_folder(tmp_path: Path, stand_in: Path) -> None:
    folder = tmp_path / "pulsar"
    for broker in (PulsarBroker(folder, settings={"maxMessageSize": "9"}), PulsarBroker(folder)):
        written = launch(broker)
        assert written["maxMessageSize"] == "9"
        assert written["brokerDeduplicationEnabled"] == "true"


def test_a_broker_that_ends_at_its_start_is_told_with_its_last_words(
    tmp_path: Path, stand_in: Path
) -> None:
    line = "2026-01-01T00:00:00,000 ERROR"
    behave(stand_in, f"echo '{line} Journal: Problems (this is okay if)' >> pulsar.log\n"
           f"echo '{line} Starter: no luck' >> pulsar.log\n"
           "echo 'java.io.IOException: x' >> pulsar.log; exit 1")  # fmt: skip
    broker = PulsarBroker(tmp_path / "pulsar")
    with pytest.raises(HeadgateError, match=r"\(Starter: no luck java\.io\.IOException: x\)"):
        broker.start()
    assert broker.status().state == BrokerState.STOPPED


def test_where_there_is_no_broker_status_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["broker", "status", "pulsar", "--dir", str(tmp_path / "none"), "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["state"] == "absent"


@pytest.mark.slow
def test_a_broker_serves_survives_a_kill_with_its_messages_and_stops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # a folder with signs that settings and class paths split at
    broker = PulsarBroker(tmp_path / "a folder, with = signs")
    named = ["pulsar", "--dir", str(broker.folder)]
    try:
        assert invoke(["broker", "start", *named]) == 0
        url = capsys.readouterr().out.strip()
        assert url == broker.servers
        assert invoke(["broker", "status", *named]) == 0
        assert f"web       {broker.web}" in capsys.readouterr().out
        record = broker.status().record
        assert record is not None
        assert record.process is not None
        pid = record.process.pid
        assert os.getsid(pid) == pid, "a session of its own"
        assert listening(pid) == {"127.0.0.1"}

        admin = PulsarAdmin(PulsarAccess(url))
        admin.create(ORDERS, 1)
        send(url, "one", "two")
        os.kill(pid, signal.SIGKILL)
        while record.process.alive:
            time.sleep(0.05)
        assert broker.status().state == BrokerState.CRASHED
        assert broker.start().how == Started.AGAIN
        send(url, "three")
        assert read(url) == ["one", "two", "three"]
        assert broker.start().how == Started.ALREADY
    finally:
        assert broker.stop() is True
    assert broker.status().state == BrokerState.STOPPED
    assert is_free(record.port)


@pytest.mark.slow
def test_the_fixture_gives_a_broker_and_ends_it(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pathlib, socket\n"
        "def test_it(pulsar_url):\n"
        "    port = pulsar_url.removeprefix('pulsar://127.0.0.1:')\n"
        "    pathlib.Path('port').write_text(port)\n"
        "    socket.create_connection(('127.0.0.1', int(port))).close()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp=base"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert is_free(int((tmp_path / "port").read_text()))


def listening(pid: int) -> set[str]:
    """The addresses on which a process listens."""
    mine = set()
    for file in Path(f"/proc/{pid}/fd").iterdir():
        try:
            mine.add(os.readlink(file))
        except OSError:
            continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            words = line.split()
            if words[3] == "0A" and f"socket:[{words[9]}]" in mine:
                last = bytes.fromhex(words[1].split(":")[0])[-4:]
                found.add(socket.inet_ntoa(last[::-1]))
    return found


def client(url: str) -> pulsar.Client:
    return PulsarAccess(url).connect()


def send(url: str, *texts: str) -> None:
    with_client = client(url)
    producer = with_client.create_producer(str(ORDERS))
    for text in texts:
        producer.send(text.encode())
    with_client.close()


def read(url: str) -> list[str]:
    with_client = client(url)
    reader = with_client.create_reader(f"{ORDERS}-partition-0", pulsar.MessageId.earliest)
    found = []
    while reader.has_message_available():
        found.append(reader.read_next(10_000).data().decode())
    with_client.close()
    return found
