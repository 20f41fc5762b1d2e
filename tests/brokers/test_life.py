"""The contract of a broker on this machine: from its first start over a kill to its end."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from headgate.base.errors import HeadgateError, RefusedError
from headgate.brokers import BrokerState
from headgate.brokers.base import Started
from headgate.brokers.process import NotInTimeError, free_port, is_free
from headgate.cli.main import invoke
from tests.brokers.kinds import KAFKA, KINDS, PULSAR, Kind, behave, is_up

ERROR = "2026-01-01T00:00:00,000 ERROR"


@pytest.fixture(params=KINDS, ids=lambda kind: kind.name)
def kind(request: pytest.FixtureRequest) -> Kind:
    found: Kind = request.param
    return found


@pytest.fixture
def java(kind: Kind, stand_in: Path) -> Path:
    """A Java that makes storage and ends; gives its file, for those who want another one."""
    behave(stand_in, kind.script("exit 1"))
    return stand_in


def test_a_home_elsewhere_needs_a_folder(kind: Kind, capsys: pytest.CaptureFixture[str]) -> None:
    assert invoke(["broker", "start", kind.name, "--home", "memory://somewhere"]) == 2
    assert "must be on this machine" in capsys.readouterr().err


def test_where_there_is_no_broker_status_says_so_and_stop_does_nothing(
    kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "none"
    assert invoke(["broker", "status", kind.name, "--dir", str(folder), "--json"]) == 3
    shown = json.loads(capsys.readouterr().out)
    assert (shown["version"], shown["state"], shown["servers"]) == (1, "absent", None)
    assert invoke(["broker", "stop", kind.name, "--dir", str(folder)]) == 0
    assert capsys.readouterr().err == f"no broker is running in {folder}\n"
    assert not folder.exists(), "looking leaves nothing behind"


def test_a_port_that_is_taken_is_refused(kind: Kind, java: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        with pytest.raises(
            HeadgateError, match=rf"port {port} of 127\.0\.0\.1 is taken: choose ano"
        ):
            kind.make(tmp_path / "broker").start(port=port)


def test_the_port_stays_with_the_folder(kind: Kind, java: Path, tmp_path: Path) -> None:
    broker = kind.make(tmp_path / "broker")
    found = set()
    for _ in range(2):
        with pytest.raises(HeadgateError, match="while it was starting"):
            broker.start()
        found.add(broker.servers)
    assert len(found) == 1


def test_a_broker_that_ends_at_its_start_leaves_its_last_words(
    kind: Kind, java: Path, tmp_path: Path
) -> None:
    broker = kind.make(tmp_path / "broker")
    behave(java, kind.script("echo 'Could not reserve enough space'; exit 1"))
    with pytest.raises(HeadgateError, match=r"while it was starting \(Could not reserve enough"):
        broker.start()
    log = f"{kind.name}.log"
    lines = [f"{ERROR} Journal: {words}" for words in broker.harmless]
    lines += [f"{ERROR} Starter: no luck", "java.io.IOException: x"]
    behave(java, kind.script("; ".join(f"echo '{line}' >> {log}" for line in lines) + "; exit 1"))
    with pytest.raises(HeadgateError, match=r"\(Starter: no luck java\.io\.IOException: x\)"):
        broker.start()
    assert broker.status().state == BrokerState.STOPPED


def test_a_broker_that_is_slow_is_left_to_itself_and_can_be_stopped(
    kind: Kind, java: Path, tmp_path: Path
) -> None:
    behave(java, kind.script("exec sleep 60"))
    broker = kind.make(tmp_path / "broker")
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


def test_storage_outlives_a_record_that_is_deleted(kind: Kind, java: Path, tmp_path: Path) -> None:
    broker = kind.make(tmp_path / "broker")
    made = []
    for _ in range(2):
        with pytest.raises(HeadgateError, match="while it was starting"):
            broker.start()
        made.append((broker.folder / "data" / kind.storage).read_text())
        (broker.folder / "data" / "topic").touch()
        (broker.folder / "broker.json").unlink()
    assert made[0] == made[1], "it has its name still"
    assert (broker.folder / "data" / "topic").exists()


def test_somebody_elses_folder_is_left_alone(kind: Kind, java: Path, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "theirs").touch()
    with pytest.raises(HeadgateError, match="is in the way and is not the storage of"):
        kind.make(tmp_path).start()
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["theirs"]


def test_settings_stay_with_the_folder(kind: Kind, java: Path, tmp_path: Path) -> None:
    folder = tmp_path / "broker"
    for broker in (kind.make(folder, settings=kind.setting), kind.make(folder)):
        (folder / kind.settings).unlink(missing_ok=True)
        with pytest.raises(HeadgateError, match="while it was starting"):
            broker.start()
        written = (folder / kind.settings).read_text().splitlines()
        assert kind.always in written
        for name, value in kind.setting.items():
            assert f"{name}={value}" in written


# Of Pulsar in part: reliability/test_pulsar.py kills one, which has all records when it is back.
@pytest.mark.parametrize(
    "kind",
    [pytest.param(KAFKA, marks=pytest.mark.slow), pytest.param(PULSAR, marks=pytest.mark.long)],
    ids=lambda kind: kind.name,
)
def test_a_broker_serves_survives_a_kill_with_its_records_and_stops(
    kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # a folder with signs that settings and class paths split at
    cwd = tmp_path / "a folder, with = signs"
    cwd.mkdir()
    folder = cwd / ".headgate" / "brokers" / kind.name
    broker = kind.make(folder)
    named = [kind.name, "--dir", str(folder)]
    try:
        # by a process of its own, which the broker outlives
        servers = started(kind, cwd)
        assert servers == broker.servers
        assert broker.start().how == Started.ALREADY
        assert invoke(["broker", "start", *named]) == 0
        said = capsys.readouterr()
        assert (said.out, said.err) == (
            f"{servers}\n",
            f"it was already running, at {servers}\n",
        )
        assert invoke(["broker", "status", *named, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert (shown["state"], shown["servers"]) == ("running", servers)
        pid = shown["pid"]
        assert os.getsid(pid) == pid, "a session of its own"
        assert listening(pid) == {"127.0.0.1"}

        kind.write(servers, "orders", ["one", "two"])
        os.kill(pid, signal.SIGKILL)
        while is_up(pid):
            time.sleep(0.05)
        assert invoke(["broker", "status", *named, "--json"]) == 1
        shown = json.loads(capsys.readouterr().out)
        assert (shown["state"], shown["pid"]) == ("crashed", None)
        assert invoke(["broker", "start", *named, "--json"]) == 0
        shown = json.loads(capsys.readouterr().out)
        assert (shown["how"], shown["servers"]) == ("restarted", servers)
        assert shown["pid"] != pid
        kind.write(servers, "orders", ["three"])
        assert kind.read(servers, "orders") == ["one", "two", "three"]
        record = broker.status().record
        assert record is not None
    finally:
        stopped = invoke(["broker", "stop", *named])
    assert stopped == 0
    assert "has stopped; its data stays there" in capsys.readouterr().err
    assert not is_up(shown["pid"])
    assert is_free(record.port)
    assert invoke(["broker", "status", *named, "--json"]) == 3
    shown = json.loads(capsys.readouterr().out)
    assert (shown["state"], shown["pid"]) == ("stopped", None)
    assert invoke(["broker", "stop", *named]) == 0


# In part: all that uses the fixtures, and the brokers above that are started and stopped.
@pytest.mark.long
@pytest.mark.parametrize("kind", [KAFKA, PULSAR], ids=lambda kind: kind.name)
def test_the_fixture_gives_a_broker_and_ends_it(kind: Kind, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pathlib, socket\n"
        f"def test_it({kind.fixture}):\n"
        f"    port = {kind.fixture}.rpartition(':')[2]\n"
        "    pathlib.Path('port').write_text(port)\n"
        "    socket.create_connection(('127.0.0.1', int(port))).close()\n"
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp=base"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert is_free(int((tmp_path / "port").read_text()))
    (record,) = tmp_path.rglob("broker.json")
    assert json.loads(record.read_text())["process"] is None


def started(kind: Kind, cwd: Path) -> str:
    """Start a broker from the command line, in a working directory; gives its address."""
    environment = {name: value for name, value in os.environ.items() if name != "HEADGATE_HOME"}
    ran = subprocess.run(
        [sys.executable, "-m", "headgate.cli.main", "broker", "start", kind.name],
        cwd=cwd, capture_output=True, text=True, timeout=300, check=False, env=environment,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


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
