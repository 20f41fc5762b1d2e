"""A request to stop a job, from a signal, a call or an operation, and how to carry it out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Resume:
    """Where a job that is restarted on request goes on."""

    restore: str | None = None
    """A snapshot, as in ``--from``; none for the savepoint with which it was stopped."""
    parallelism: int | None = None


@dataclass(frozen=True)
class StopPlan:
    """How a job is to be stopped."""

    reason: str = ""
    savepoint: bool = False
    label: str | None = None
    drain: bool = False
    """First read all that is in the sources now, and close all windows."""
    now: bool = False
    """In the middle of the batch (cancel)."""
    then: Resume | None = None
    """Start again afterwards (restart)."""
    operation: str | None = None
    """The operation that requested it."""


class StopRequest:
    """A request to stop that any thread or signal handler may make.

    Plain attributes and no lock: a signal handler runs inside the main thread, which may hold it.
    """

    def __init__(self) -> None:
        self.requested = False
        self.plan = StopPlan()
        self.starting = False
        """Whether the job is not up yet, so that there is no batch to finish."""

    def __bool__(self) -> bool:
        return self.requested

    @property
    def reason(self) -> str:
        """Who requested it first."""
        return self.plan.reason

    @property
    def now(self) -> bool:
        """Whether the batch is not waited for."""
        return self.requested and self.plan.now

    def request(self, reason: str, *, savepoint: bool = False, drain: bool = False) -> None:
        """Ask for a stop after the running batch; the first request counts."""
        if not self.requested:
            self.plan = StopPlan(reason, savepoint=savepoint, drain=drain)
            self.requested = True
