"""Restart strategies: after a failure, start the query again after a while, or give up and why."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from headgate.base.durations import format_duration
from headgate.base.settings import Restart
from headgate.failures import Reason

# The query cannot be started again in this process, or must not be.
_NEVER = {
    Reason.DRIVER_GONE: "this process has no Spark any more in which it could start again",
    Reason.TOPIC_REPLACED: "the topic that it has read does not come back",
    Reason.LEASE_LOST: "another process drives the job now",
    Reason.HOME_UNSEEN: "the state that such an executor writes would be lost",
    Reason.OUTPUT_TAKEN: "its outputs are another home's now",
    Reason.SINK_AHEAD: "it would meet the same batch again",
    Reason.CRASH_ASKED: "a crash is the end of its process",
}


@dataclass(frozen=True)
class Failed:
    """A failure as a strategy sees it."""

    at: float
    """Seconds on a clock that only goes forward."""
    batch: int
    """The batch that failed, or that would have come next."""
    reason: Reason


@dataclass(frozen=True)
class Again:
    """Start again after the delay; attempts count from 1."""

    delay: timedelta
    attempt: int


@dataclass(frozen=True)
class GiveUp:
    """Leave it, for this reason."""

    why: str


class Restarts:
    """Decides after each failure of one start of a job.

    Whatever the strategy, a reason that would repeat for ever is tried once more on the same batch,
    and no oftener: the second time can only be luck, the third only costs time.

    >>> from headgate.base.settings import fixed_delay
    >>> restarts = Restarts(fixed_delay(attempts=1, delay="5 seconds"))
    >>> restarts.after(Failed(0.0, 7, Reason.STORAGE))
    Again(delay=datetime.timedelta(seconds=5), attempt=1)
    >>> restarts.after(Failed(60.0, 9, Reason.STORAGE))
    GiveUp(why='fixed_delay allows 1 restart')
    """

    def __init__(self, strategy: Restart, *, luck: Callable[[], float] = random.random) -> None:
        self.strategy = strategy
        self.attempts = 0
        self._luck = luck
        self._hopeless: int | None = None
        self._times: deque[float] = deque(maxlen=(strategy.attempts or 0) + 1)
        self._backoff: timedelta | None = None
        self._running_since = 0.0

    def after(self, failure: Failed) -> Again | GiveUp:
        """What to do after a failure."""
        if failure.reason in _NEVER:
            return GiveUp(_NEVER[failure.reason])
        if not failure.reason.retryable:
            if self._hopeless == failure.batch and self.strategy.kind != "none":
                return GiveUp(f"it failed so twice on batch {failure.batch}, and would again")
            self._hopeless = failure.batch
        delay = _DELAYS[self.strategy.kind](self, failure)
        if isinstance(delay, GiveUp):
            return delay
        self.attempts += 1
        self._running_since = failure.at + delay.total_seconds()
        return Again(delay, self.attempts)

    def _never(self, failure: Failed) -> timedelta | GiveUp:
        return GiveUp("the job has no restart strategy")

    def _fixed(self, failure: Failed) -> timedelta | GiveUp:
        allowed = self.strategy.attempts or 0
        if self.attempts >= allowed:
            return GiveUp(f"fixed_delay allows {allowed} restart{'s' if allowed > 1 else ''}")
        return self.strategy.delay

    def _rate(self, failure: Failed) -> timedelta | GiveUp:
        allowed, within = self.strategy.attempts or 0, self.strategy.interval
        self._times.append(failure.at)
        full = len(self._times) > allowed
        if full and failure.at - self._times[0] <= within.total_seconds():
            return GiveUp(
                f"it failed {len(self._times)} times within {format_duration(within)}, and "
                f"failure_rate allows {allowed}"
            )
        return self.strategy.delay

    def _exponential(self, failure: Failed) -> timedelta | GiveUp:
        strategy = self.strategy
        quiet = failure.at - self._running_since
        if self._backoff is None or quiet >= strategy.interval.total_seconds():
            self._backoff = strategy.delay
        else:
            # not timedelta * float without the limit: it overflows after some thousand failures
            longer = self._backoff.total_seconds() * strategy.multiplier
            self._backoff = timedelta(seconds=min(longer, strategy.maximum.total_seconds()))
        shift = (2 * self._luck() - 1) * strategy.jitter
        return min(self._backoff * (1 + shift), strategy.maximum)


_DELAYS: dict[str, Callable[[Restarts, Failed], timedelta | GiveUp]] = {
    "none": Restarts._never,
    "fixed_delay": Restarts._fixed,
    "failure_rate": Restarts._rate,
    "exponential_delay": Restarts._exponential,
}
