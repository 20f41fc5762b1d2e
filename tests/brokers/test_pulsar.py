"""What only a Pulsar broker has: ports that belong together, and storage that may be cut short."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from headgate.base.errors import HeadgateError
from headgate.brokers import PulsarBroker
from headgate.brokers.process import NotInTimeError, free_port
from headgate.cli.main import invoke
from headgate.connectors.pulsar.names import web_address
from tests.brokers.kinds import behave


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
    with (
        taken(port),
        pytest.raises(HeadgateError, match=rf"port {port} of .* is taken: choose ano"),
    ):
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


def test_status_shows_the_address_of_the_rest_interface(
    tmp_path: Path, stand_in: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    behave(stand_in, "exec sleep 60")
    broker = PulsarBroker(tmp_path / "pulsar")
    with pytest.raises(NotInTimeError):
        broker.start(timeout=0.2)
    try:
        invoke(["broker", "status", "pulsar", "--dir", str(broker.folder)])
        assert f"web       {broker.web}" in capsys.readouterr().out
    finally:
        broker.stop()


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
