"""`doctor --live` asks the Kafka brokers of the home's jobs, also how they do transactions."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest

from headgate.brokers.kafka_features import ask_features
from headgate.brokers.process import free_port
from headgate.doctor.brokers import broker_checks
from headgate.home.layout import Home


@pytest.mark.slow
def test_the_doctor_shows_the_transaction_version(kafka_servers: str, tmp_path: Path) -> None:
    for job, servers in {"a": kafka_servers, "b": "127.0.0.1:9"}.items():
        made = Home(str(tmp_path)).job(job)
        step = {"id": "in", "detail": {"address": f"kafka://{servers}/t"}}
        run = made.new_run(graph={"steps": [step], "sources": []}, graph_fingerprint="x",
                           parallelism=1, params={}, versions={}, code={})  # fmt: skip
        made.set_current(run.id)
    found = {check.name: check for check in broker_checks(str(tmp_path))}
    good = found[f"kafka {kafka_servers}"]
    assert good.ok
    assert good.detail.endswith(" answers, transaction version 2 (used by a)")
    assert not found["kafka 127.0.0.1:9"].ok


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
        assert ask_features("127.0.0.1", server.getsockname()[1]) is None
    assert ask_features("127.0.0.1", free_port()) is None
