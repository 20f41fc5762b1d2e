"""The console: the first rows of every batch, for looking at; at least once."""

from __future__ import annotations

from dataclasses import dataclass

from headgate.connectors.base import Sink, SinkSpec


@dataclass(frozen=True)
class ConsoleSink(Sink):
    """Prints rows on the driver; a repeated batch is printed again.

    >>> ConsoleSink().describe()
    'console'
    """

    @property
    def exactly_once(self) -> bool:
        return False

    def describe(self) -> str:
        return "console"

    def spec(self) -> SinkSpec:
        return SinkSpec("console")
