"""What the tests of `headgate topic` on Kafka share."""

from __future__ import annotations

import json
import subprocess
import sys
import uuid
from dataclasses import dataclass, field
from typing import Any

import pytest
from confluent_kafka import Producer

from headgate.cli.main import invoke

COMMAND = [sys.executable, "-c", "from headgate.cli.main import main; main()", "topic"]


def headgate(*arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a command as a process of its own, with pipes."""
    return subprocess.run(
        [*COMMAND, *arguments],
        input=text, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@dataclass
class Topic:
    """A topic of its own for a test, and what the command says about it."""

    servers: str
    capsys: pytest.CaptureFixture[str]
    options: tuple[str, ...] = ()
    name: str = field(default_factory=lambda: f"t-{uuid.uuid4()}")

    @property
    def address(self) -> str:
        return f"kafka://{self.servers}/{self.name}"

    def run(self, verb: str, *options: str) -> int:
        self.capsys.readouterr()
        return invoke(["topic", verb, self.address, *self.options, *options])

    def create(self, *options: str) -> Topic:
        assert self.run("create", "--quiet", *options) == 0, self.capsys.readouterr().err
        return self

    def produce(self, text: str, *options: str) -> None:
        done = headgate("produce", self.address, *self.options, *options, text=text)
        assert done.returncode == 0, done.stderr

    def lines(self, *options: str) -> list[str]:
        assert self.run("read", *options) == 0, self.capsys.readouterr().err
        return self.capsys.readouterr().out.splitlines()

    def records(self, *options: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines("--json", *options)]

    def offsets(self, *options: str) -> list[int]:
        return [record["offset"] for record in self.records(*options)]

    def facts(self) -> dict[str, Any]:
        assert self.run("describe", "--json") == 0, self.capsys.readouterr().err
        told: dict[str, Any] = json.loads(self.capsys.readouterr().out)
        return told

    def transactions(self) -> Producer:
        """A producer that writes in transactions."""
        producer = Producer(
            {"bootstrap.servers": self.servers, "transactional.id": str(uuid.uuid4())}
        )
        producer.init_transactions()
        return producer

    def transaction(self, producer: Producer, *values: str) -> None:
        """Begin a transaction and write into it; it is left open."""
        producer.begin_transaction()
        for value in values:
            producer.produce(self.name, value.encode(), partition=0)
        assert producer.flush(30) == 0
