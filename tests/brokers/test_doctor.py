"""`doctor --live` looks at the brokers that the home's jobs use."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from headgate.brokers.kafka_features import read_features
from headgate.brokers.process import free_port
from headgate.doctor.brokers import broker_checks
from headgate.doctor.check import Check
from headgate.home.layout import Home


def checks(home: Path, services: Mapping[str, str]) -> dict[str, Check]:
    """The checks of jobs with a source at these services, by name of the job."""
    for job, service in services.items():
        made = Home(str(home)).job(job)
        step = {"id": "in", "detail": {"address": f"{service}/t"}}
        run = made.new_run(graph={"steps": [step], "sources": []}, graph_fingerprint="x",
                           parallelism=1, params={}, versions={}, code={})  # fmt: skip
        made.set_current(run.id)
    found = {check.name: check for check in broker_checks(str(home))}
    assert len(found) == len(services)
    named = {job: service.replace("kafka://", "kafka ") for job, service in services.items()}
    return {job: found[name] for job, name in named.items()}


@pytest.mark.parametrize(
    ("system", "fixture", "answers"),
    [
        ("kafka", "kafka_servers", " answers, transaction version 2 (used by here)"),
        ("pulsar", "pulsar_url", "the service answers (used by here)"),
    ],
    ids=("kafka", "pulsar"),
)
def test_should_tell_brokers_that_answer_from_those_that_do_not(
    request: pytest.FixtureRequest, tmp_path: Path, system: str, fixture: str, answers: str
) -> None:
    servers = str(request.getfixturevalue(fixture)).removeprefix("pulsar://")
    with socket.create_server(("127.0.0.1", 0)) as foreign:
        threading.Thread(target=hang_up, args=(foreign,), daemon=True).start()
        elsewhere = f"127.0.0.1:{foreign.getsockname()[1]}"
        found = checks(tmp_path, {
            "here": f"{system}://{servers}", "gone": f"{system}://127.0.0.1:{free_port()}",
            "other": f"{system}://{elsewhere}",
        })  # fmt: skip
    assert found["here"].ok
    assert found["here"].detail.endswith(answers)
    assert not found["gone"].ok
    assert "nobody answers (used by gone)" in found["gone"].detail
    # as a secured broker does, whose credentials only the job has
    assert found["other"].ok
    assert f"{elsewhere} takes connections, but " in found["other"].detail
    assert "check APP --live" in (found["other"].remedy or "")


# one that is no Kafka, one that ends too early, and a Kafka that does not know this question
OTHERS = [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\6\0\0\0\1\0\0",
          b"\0\0\0\6\0\0\0\1\0\x23"]  # fmt: skip


@pytest.mark.parametrize("answer", OTHERS)
def test_features_that_nobody_names_are_unknown(answer: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(1000)
                connection.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        assert read_features("127.0.0.1", server.getsockname()[1]) is None
    assert read_features("127.0.0.1", free_port()) is None


def hang_up(server: socket.socket) -> None:
    """Take every connection, and end it at once."""
    while True:
        try:
            server.accept()[0].close()
        except OSError:
            return
