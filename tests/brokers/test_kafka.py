"""A Kafka broker: from its first start over a kill to its end; and how failures are told."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from headgate.base.errors import HeadgateError, RefusedError
from headgate.brokers import BrokerState, KafkaBroker, base, kafka
from headgate.brokers.kafka_wire import ask_cluster
from headgate.brokers.process import NotInTimeError, free_port, is_free
from headgate.cli.main import invoke
from headgate.jvm.java import JavaHome, Origin
from tests.brokers.kafka_client import KafkaClient

FORMAT = """case "$*" in *StorageTool*)
  mkdir -p .format/data; echo "cluster.id=an-id" > .format/data/meta.properties;;"""


def headgate(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", "broker", *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=300, check=False,
        env={name: value for name, value in os.environ.items() if name != "HEADGATE_HOME"},
    )  # fmt: skip


def status(cwd: Path) -> tuple[int, dict[str, Any]]:
    ran = headgate("status", "kafka", "--json", cwd=cwd)
    return ran.returncode, json.loads(ran.stdout)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that formats and then does what its script says; gives the script's file."""
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    java = JavaHome(tmp_path / "java", "17.0.1", Origin.JAVA_HOME)
    monkeypatch.setattr(base, "find_java", lambda: java)
    monkeypatch.setattr(kafka, "find_java", lambda: java)
    monkeypatch.setattr(base, "fetch", lambda lock, quiet=False: [Path("kafka.jar")])
    return program


def behave(program: Path, script: str) -> None:
    program.write_text(f"#!/bin/sh\n{FORMAT} *) {script};; esac\n")
    program.chmod(0o755)


def test_other_brokers_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("start", "stop", "status"):
        assert invoke(["broker", verb, "rabbit"]) == 2
        assert "'rabbit' is not a broker (expected kafka or pulsar)" in capsys.readouterr().err


def test_a_home_elsewhere_needs_a_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["broker", "start", "kafka", "--home", "memory://somewhere"]) == 2
    assert "must be on this machine" in capsys.readouterr().err


def test_where_there_is_no_broker_status_says_so_and_stop_does_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "none"
    assert invoke(["broker", "status", "kafka", "--dir", str(folder), "--json"]) == 3
    told = json.loads(capsys.readouterr().out)
    assert told["version"] == 1
    assert told["state"] == "absent"
    assert told["servers"] is None
    assert invoke(["broker", "stop", "kafka", "--dir", str(folder)]) == 0
    assert capsys.readouterr().err == f"no broker is running in {folder}\n"
    assert not folder.exists(), "looking leaves nothing behind"


def test_a_port_that_is_taken_is_refused(tmp_path: Path, stand_in: Path) -> None:
    behave(stand_in, "exit 0")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(HeadgateError, match=rf"port {port} of 127\.0\.0\.1 is taken: say ano"):
            KafkaBroker(tmp_path / "kafka").start(port=port)


def test_a_broker_that_ends_at_its_start_is_told_with_its_last_words(
    tmp_path: Path, stand_in: Path
) -> None:
    behave(stand_in, "echo 'Could not reserve enough space'; exit 1")
    broker = KafkaBroker(tmp_path / "kafka")
    with pytest.raises(HeadgateError, match=r"while it was starting \(Could not reserve enough"):
        broker.start()
    line = "2026-01-01T00:00:00,000 ERROR KafkaRaftServer: no luck"
    behave(stand_in, f"echo '{line}' >> kafka.log; echo 'java.io.IOException: x' >> kafka.log")
    with pytest.raises(HeadgateError, match=r"KafkaRaftServer: no luck java\.io\.IOException: x"):
        broker.start()
    assert broker.status().state == BrokerState.STOPPED


def test_storage_that_cannot_be_made_is_told(tmp_path: Path, stand_in: Path) -> None:
    stand_in.write_text("#!/bin/sh\necho 'No space left on device' >&2; exit 1\n")
    stand_in.chmod(0o755)
    broker = KafkaBroker(tmp_path / "kafka")
    with pytest.raises(HeadgateError, match=r"could not be made \(No space left on device\)"):
        broker.start()
    assert broker.status().state == BrokerState.ABSENT
    trace = "In x: y\\n\\tat a.b(c)\\nCaused by: two of one port\\n\\tat d\\n\\t... 8 more\\n"
    stand_in.write_text(f"#!/bin/sh\nprintf '{trace}' >&2; exit 1\n")
    with pytest.raises(HeadgateError, match=r"made \(Caused by: two of one port\)"):
        broker.start()


def test_a_broker_that_is_slow_is_left_to_itself_and_can_be_stopped(
    tmp_path: Path, stand_in: Path
) -> None:
    behave(stand_in, "exec sleep 60")
    broker = KafkaBroker(tmp_path / "kafka")
    with pytest.raises(NotInTimeError, match="the broker does not answer at") as raised:
        broker.start(timeout=0.5)
    assert raised.value.exit_code == 4
    assert broker.status().state == BrokerState.STARTING
    taken = broker.status().record
    assert taken is not None
    assert taken.process is not None
    with pytest.raises(RefusedError, match=f"runs on port {taken.port}"):
        broker.start(port=free_port(taken.port))
    assert broker.stop() is True
    assert not taken.process.alive
    assert broker.status().state == BrokerState.STOPPED


def test_storage_outlives_a_record_that_is_deleted(tmp_path: Path, stand_in: Path) -> None:
    behave(stand_in, "exit 1")
    broker = KafkaBroker(tmp_path / "kafka")
    for _ in range(2):
        with pytest.raises(HeadgateError, match="while it was starting"):
            broker.start()
        (broker.folder / "data" / "topic").touch()
        (broker.folder / "broker.json").unlink()
    assert (broker.folder / "data" / "topic").exists()


def test_somebody_elses_folder_is_left_alone(tmp_path: Path, stand_in: Path) -> None:
    behave(stand_in, "exit 1")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "theirs").touch()
    with pytest.raises(HeadgateError, match="is in the way and is not the storage of a Kafka"):
        KafkaBroker(tmp_path).start()
    (tmp_path / "data" / "meta.properties").write_text("something=else")
    with pytest.raises(HeadgateError, match="is not the storage of a Kafka broker"):
        KafkaBroker(tmp_path).start()
    assert (tmp_path / "data" / "theirs").exists()


def test_settings_stay_with_the_folder(tmp_path: Path, stand_in: Path) -> None:
    behave(stand_in, "exit 1")
    folder = tmp_path / "kafka"
    for broker in (
        KafkaBroker(folder, settings={"offsets.retention.minutes": "1"}),
        KafkaBroker(folder),
    ):
        (folder / "server.properties").unlink(missing_ok=True)
        with pytest.raises(HeadgateError):
            broker.start()
        written = (folder / "server.properties").read_text().splitlines()
        assert "offsets.retention.minutes=1" in written
        assert "log.dirs=data" in written


@pytest.mark.slow
def test_a_broker_serves_survives_a_kill_with_its_records_and_stops(tmp_path: Path) -> None:
    # a folder with signs that Kafka's settings and class paths split at
    cwd = tmp_path / "a folder, with = signs"
    cwd.mkdir()
    try:
        started = headgate("start", "kafka", cwd=cwd)
        assert started.returncode == 0, started.stderr
        servers = started.stdout.strip()
        host, port = servers.split(":")
        assert host == "127.0.0.1"
        folder = cwd / ".headgate" / "brokers" / "kafka"
        assert (folder / "kafka.log").read_text().count("Kafka Server started") == 1

        again = headgate("start", "kafka", cwd=cwd)
        assert (again.returncode, again.stdout) == (0, started.stdout)
        assert again.stderr == f"it was running already, at {servers}\n"
        code, told = status(cwd)
        assert (code, told["state"], told["servers"]) == (0, "running", servers)
        pid = told["pid"]
        assert os.getsid(pid) == pid, "a session of its own"

        with KafkaClient() as client:
            client.create(servers, "orders")
            client.produce(servers, "orders", "one", "two")
            assert client.read(servers, "orders", count=2) == ["one", "two"]

            os.kill(pid, signal.SIGKILL)
            while is_up(pid):
                time.sleep(0.05)
            code, told = status(cwd)
            assert (code, told["state"], told["pid"]) == (1, "crashed", None)
            back = headgate("start", "kafka", "--json", cwd=cwd)
            assert back.returncode == 0, back.stderr
            told = json.loads(back.stdout)
            assert (told["how"], told["servers"]) == ("restarted", servers)
            assert told["pid"] != pid
            client.produce(servers, "orders", "three")
            assert client.read(servers, "orders", count=3) == ["one", "two", "three"]
    finally:
        stopped = headgate("stop", "kafka", cwd=cwd)
    assert stopped.returncode == 0
    assert "has stopped; its data stays there" in stopped.stderr
    assert not is_up(told["pid"])
    assert is_free(int(port))
    assert "shut down completed" in (folder / "kafka.log").read_text()
    code, told = status(cwd)
    assert (code, told["state"], told["pid"]) == (3, "stopped", None)
    assert headgate("stop", "kafka", cwd=cwd).returncode == 0


@pytest.mark.slow
def test_the_fixture_gives_a_broker_and_ends_it(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pathlib\n"
        "def test_it(kafka_servers):\n"
        "    pathlib.Path('servers').write_text(kafka_servers)\n"
        "    from headgate.brokers.kafka_wire import ask_cluster\n"
        "    host, port = kafka_servers.split(':')\n"
        "    assert ask_cluster(host, int(port)).ports == (int(port),)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp=base"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    host, port = (tmp_path / "servers").read_text().split(":")
    assert ask_cluster(host, int(port)) is None
    assert is_free(int(port))
    (record,) = tmp_path.rglob("broker.json")
    assert json.loads(record.read_text())["process"] is None


def is_up(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
