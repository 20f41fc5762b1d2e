"""A broker's process and record: dead pids, reused pids, damaged files, free ports."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from headgate.base.errors import HeadgateError
from headgate.brokers.kafka import KafkaBroker
from headgate.brokers.process import (
    BrokerRecord,
    BrokerState,
    Process,
    free_port,
    is_free,
    read_record,
    write_record,
)
from headgate.home.files import LocalFiles
from headgate.home.times import now


def record(process: Process | None, port: int | None = None) -> BrokerRecord:
    return BrokerRecord(
        "kafka", "4.3.1", "an-id", port or free_port(), "kafka.log", now(), process, {"a": "b"}
    )


def sleeper(code: str = "import time; time.sleep(60)") -> subprocess.Popen[bytes]:
    process = subprocess.Popen([sys.executable, "-c", code])
    threading.Thread(target=process.wait, daemon=True).start()
    return process


def dead() -> Process:
    process = sleeper()
    made = Process.of(process.pid)
    process.kill()
    process.wait()
    return made


def test_a_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    files = LocalFiles(tmp_path)
    assert read_record(files) is None
    written = record(Process.of(os.getpid()))
    write_record(files, written)
    found = read_record(files)
    assert found is not None
    assert replace(found, started_at=written.started_at) == written
    assert found.alive
    assert json.loads((tmp_path / "broker.json").read_text())["servers"] == found.servers


def test_a_dead_process_is_a_crash_and_nothing_else_is_killed(tmp_path: Path) -> None:
    write_record(LocalFiles(tmp_path), record(dead()))
    broker = KafkaBroker(tmp_path)
    assert broker.status().state == BrokerState.CRASHED
    assert broker.status().to_json()["pid"] is None
    assert broker.stop() is False
    assert broker.status().state == BrokerState.STOPPED


def test_a_reused_pid_is_not_the_broker_and_not_killed(tmp_path: Path) -> None:
    stranger = sleeper()
    reused = replace(Process.of(stranger.pid), started="long ago")
    write_record(LocalFiles(tmp_path), record(reused))
    broker = KafkaBroker(tmp_path)
    assert broker.status().state == BrokerState.CRASHED
    assert broker.stop() is False
    assert stranger.poll() is None
    stranger.kill()


def test_a_pid_of_another_boot_or_container_is_not_the_broker(tmp_path: Path) -> None:
    elsewhere = replace(Process.of(os.getpid()), space="another boot")
    write_record(LocalFiles(tmp_path), record(elsewhere))
    assert KafkaBroker(tmp_path).status().state == BrokerState.CRASHED
    assert KafkaBroker(tmp_path).stop() is False


def test_a_process_that_does_not_answer_is_starting_and_later_unresponsive(tmp_path: Path) -> None:
    process = sleeper()
    young = record(Process.of(process.pid))
    write_record(LocalFiles(tmp_path), young)
    assert KafkaBroker(tmp_path).status().state == BrokerState.STARTING
    old = replace(young, started_at=young.started_at.replace(year=2020))
    write_record(LocalFiles(tmp_path), old)
    assert KafkaBroker(tmp_path).status().state == BrokerState.UNRESPONSIVE
    assert KafkaBroker(tmp_path).stop() is True
    assert process.wait(10) == -signal.SIGTERM


def test_a_process_that_does_not_listen_is_killed_in_the_end() -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    started = subprocess.Popen(
        [sys.executable, "-c", deaf + "print('deaf', flush=True); time.sleep(60)"],
        stdout=subprocess.PIPE,
    )
    assert started.stdout is not None
    assert started.stdout.readline() == b"deaf\n"
    process = Process.of(started.pid)
    process.end(patience=0.3)
    assert not process.alive
    assert started.wait(10) == -signal.SIGKILL


@pytest.mark.parametrize("text", ['{"version": 1}', '{"version": 1, "kind": 5', "[]"])
def test_a_damaged_record_is_told_with_a_remedy(tmp_path: Path, text: str) -> None:
    (tmp_path / "broker.json").write_text(text)
    with pytest.raises(HeadgateError, match=r"broker\.json .*delete") as raised:
        KafkaBroker(tmp_path).status()
    assert "Traceback" not in str(raised.value)


def test_a_record_of_a_newer_version_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broker.json").write_text('{"version": 2}')
    with pytest.raises(HeadgateError, match="newer Headgate"):
        KafkaBroker(tmp_path).status()


def test_free_ports_are_free_and_below_those_of_outgoing_connections() -> None:
    port = free_port()
    assert is_free(port)
    assert 20_000 <= port < 32_000
    with socket.create_server(("127.0.0.1", port)):
        assert not is_free(port)


def test_no_port_is_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headgate.brokers.process._PORTS", range(31_000, 31_020))
    assert len({free_port() for _ in range(5)}) == 5
