"""The brokers that a job needs: each service once, with the steps that live in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

from headgate.connectors.base import Sink, Source
from headgate.connectors.broker_probe import Service
from headgate.graph.plan import BuiltJob


@dataclass(frozen=True)
class Used:
    """A service with the steps of a job that need it."""

    service: Service
    steps: tuple[str, ...]
    addresses: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.service} of {', '.join(self.steps)}"


def services_of(built: BuiltJob) -> list[Used]:
    """The services of a job's sources, tables and sinks, each once."""
    found: dict[Service, list[tuple[str, str]]] = {}
    for step, connector in connectors_of(built):
        with suppress(Exception):  # what is wrong with a step is said by its own check
            service = Service.of(connector)
            if service is not None:
                found.setdefault(service, []).append((step, connector.describe()))
    return [
        Used(service, tuple(step for step, _ in steps), tuple(address for _, address in steps))
        for service, steps in found.items()
    ]


def connectors_of(built: BuiltJob) -> Iterator[tuple[str, Source | Sink]]:
    """Every source, table and sink of a job with the name of its step."""
    for node in built.nodes:
        if node.operation.connector is not None:
            yield node.step.id, node.operation.connector
