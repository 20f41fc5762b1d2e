"""A Pulsar topic to write."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.connectors.base import Expr, Sink, not_available


@dataclass(frozen=True)
class PulsarSink(Sink):
    """A Pulsar topic to write.

    >>> PulsarSink("pulsar://localhost:6650", "counts").describe()
    'pulsar://localhost:6650/counts'
    """

    url: str
    topic: str
    key: Expr | None = None

    def describe(self) -> str:
        return f"{self.url}/{self.topic}"

    def check(self) -> None:
        raise not_available("Pulsar", "a log: or kafka:// address")
