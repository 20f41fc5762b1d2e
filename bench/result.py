"""Owns what one engine's run gives: times, throughput and memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from bench.process import Finished

OUTPUTS = ("enriched", "missing_users", "missing_items")
"""The folders that every engine writes, with the same rows."""


@dataclass(frozen=True)
class Result:
    """One engine's run over one data set.

    `seconds` is the time for the orders alone: from the moment the tables are in state to the
    moment the last output is committed. `phases` has, in seconds, `start` (process and engine, on
    top of everything else), `tables` (job start until the tables are in state), `orders` (the
    same as `seconds`) and `total` (tables + orders); an engine may add its own. The CPU times
    are those of the whole process, and of everything else on the machine while it ran.
    """

    name: str
    seconds: float
    orders: int
    orders_per_second: float
    peak_rss_mb: float
    phases: Mapping[str, float] = field(default_factory=dict)
    cpu_seconds: float = 0.0
    others_cpu_seconds: float = 0.0

    @property
    def total_per_second(self) -> float:
        """Orders a second with the loading of the tables counted in."""
        return self.orders / self.phases.get("total", self.seconds)

    def as_json(self) -> dict[str, object]:
        """The result as plain values."""
        return {**asdict(self), "total_per_second": self.total_per_second}


def result(name: str, *, orders: int, ran: Finished, phases: Mapping[str, float]) -> Result:
    """A result from a finished process and its phases, `tables` and `orders` among them.

    >>> ran = Finished([], 1.0, 8.0, 0.0)
    >>> r = result("x", orders=10, ran=ran, phases={"tables": 1.0, "orders": 4.0})
    >>> r.orders_per_second, r.total_per_second
    (2.5, 2.0)
    """
    seconds = phases["orders"]
    return Result(
        name,
        seconds,
        orders,
        orders / seconds,
        ran.peak_rss_mb,
        {**phases, "total": phases["tables"] + seconds},
        ran.cpu_seconds,
        ran.others_cpu_seconds,
    )
