"""The probe of a broker: real ones answer it, frozen, absent and foreign ones do not."""

from __future__ import annotations

import socket

import pytest

from headgate.brokers.process import free_port
from headgate.connectors.broker_probe import Service


@pytest.mark.parametrize(
    ("system", "fixture"),
    [("kafka", "kafka_servers"), ("pulsar", "pulsar_url")],
    ids=("kafka", "pulsar"),
)
def test_should_be_answered_by_a_broker_of_several_addresses(
    request: pytest.FixtureRequest, system: str, fixture: str
) -> None:
    broker = str(request.getfixturevalue(fixture)).removeprefix("pulsar://")
    nobody = f"127.0.0.1:{free_port()}"
    assert Service(system, (broker,)).answers(5)
    assert not Service(system, (nobody,)).answers(5)
    assert Service(system, (nobody, broker)).answers(5)
    assert not Service(system, ("no-such-host.invalid:9092", "nonsense")).answers(5)


def test_should_not_take_a_connection_for_an_answer() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        service = f"127.0.0.1:{silent.getsockname()[1]}"
        assert not Service("kafka", (service,)).answers(0.3)
        assert not Service("pulsar", (service,)).answers(0.3)
        assert not Service("kafka", (service,), tls=True).answers(0.3)
