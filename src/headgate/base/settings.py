"""A job's settings for checkpoints and restarts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Literal

from headgate.base.durations import Duration, parse_duration
from headgate.base.errors import UsageError

SHORTEST = timedelta(milliseconds=10)


@dataclass(frozen=True)
class Checkpoints:
    """How often checkpoints are made, how many are kept, and what they survive.

    With ``durability="disk"``, checkpoints are on disk before anything relies on them, so the job
    resumes exactly after a power cut. With ``"process"``, checkpoints survive the death of any
    process, but not a power cut or a crash of the operating system.

    With ``every="0 seconds"``, each batch starts right after the previous one while there is
    input. This gives the lowest latency, but sources are polled about a hundred times a second.

    A batch that takes longer than ``timeout`` fails, and the restart strategy decides what happens
    next. Without a timeout, a batch may take as long as it needs.

    ``history`` is how many checkpoint records are kept, even after their state is gone. The default
    covers more than a week, with a checkpoint every 10 seconds. At least ``retain`` records are
    always kept.

    >>> Checkpoints(every="5 seconds", retain=10).interval
    datetime.timedelta(seconds=5)
    """

    every: Duration = "10 seconds"
    retain: int = 10
    on_cancel: Literal["retain", "delete"] = "retain"
    timeout: Duration | None = None
    durability: Literal["disk", "process"] = "disk"
    history: int = 100_000

    def __post_init__(self) -> None:
        every = parse_duration(self.every, what="Checkpoints.every")
        if timedelta(0) < every < SHORTEST:
            raise UsageError(
                "Checkpoints.every must be 0 seconds, or at least 10 milliseconds",
                got=repr(self.every),
                remedy='a checkpoint is a micro-batch; use for example every="1 second"',
            )
        if self.timeout is not None and not parse_duration(self.timeout, what="timeout"):
            raise UsageError(
                "Checkpoints.timeout must be greater than zero",
                got=repr(self.timeout),
                remedy="leave it out if a batch may take as long as it needs",
            )
        if self.retain < 1:
            raise UsageError(
                "Checkpoints.retain must be at least 1",
                got=str(self.retain),
                remedy="keep one or more",
            )
        if self.history < 1:
            raise UsageError(
                "Checkpoints.history must be at least 1",
                got=str(self.history),
                remedy="keep one record or more",
            )
        if self.on_cancel not in ("retain", "delete"):
            raise UsageError(
                "Checkpoints.on_cancel must be 'retain' or 'delete'",
                got=repr(self.on_cancel),
                remedy="'retain' keeps the state after headgate cancel, 'delete' removes it",
            )
        if self.durability not in ("disk", "process"):
            raise UsageError(
                "Checkpoints.durability must be 'disk' or 'process'",
                got=repr(self.durability),
                remedy="use 'disk' to survive power cuts, 'process' where they do not matter",
            )

    @property
    def batch_limit(self) -> timedelta | None:
        """How long a batch may take."""
        return None if self.timeout is None else parse_duration(self.timeout)

    @property
    def records_kept(self) -> int:
        """How many records are kept, always including those of retained checkpoints."""
        return max(self.history, self.retain)

    @property
    def interval(self) -> timedelta:
        """The time between two checkpoints."""
        return parse_duration(self.every)


@dataclass(frozen=True)
class Restart:
    """When a failed query starts again; created by `fixed_delay` and the other strategies.

    >>> hg.fixed_delay(attempts=3, delay="10 seconds").kind
    'fixed_delay'
    """

    kind: Literal["fixed_delay", "exponential_delay", "failure_rate", "none"]
    attempts: int | None = None
    delay: timedelta = timedelta(0)
    maximum: timedelta = timedelta(0)
    multiplier: float = 1.0
    jitter: float = 0.0
    interval: timedelta = timedelta(0)


def fixed_delay(*, attempts: int, delay: Duration) -> Restart:
    """Start again at most `attempts` times, each after `delay`.

    Attempts are counted from the job's start. To count them in an interval, use `failure_rate`.

    >>> fixed_delay(attempts=5, delay="10 seconds").delay
    datetime.timedelta(seconds=10)
    """
    _at_least(attempts, 1, "attempts")
    return Restart("fixed_delay", attempts=attempts, delay=parse_duration(delay, what="delay"))


def exponential_delay(
    *,
    initial: Duration = "1 second",
    maximum: Duration = "1 minute",
    multiplier: float = 2.0,
    jitter: float = 0.1,
    reset_after: Duration = "1 hour",
) -> Restart:
    """Always start again, after delays that grow up to `maximum`.

    Each delay is `multiplier` times the previous one, varied by the fraction `jitter`. After
    `reset_after` without a failure, delays begin at `initial` again.

    >>> exponential_delay(initial="1 second").multiplier
    2.0
    """
    first, longest = (
        parse_duration(initial, what="initial"),
        parse_duration(maximum, what="maximum"),
    )
    if not timedelta(0) < first <= longest:
        raise UsageError(
            "initial must be greater than zero and at most maximum",
            got=f"initial {initial!r}, maximum {maximum!r}",
            remedy='for example initial="1 second", maximum="1 minute"',
        )
    if multiplier < 1 or not 0 <= jitter < 1:
        raise UsageError(
            "multiplier must be at least 1, and jitter at least 0 and less than 1",
            got=f"multiplier {multiplier}, jitter {jitter}",
            remedy="for example multiplier=2.0, jitter=0.1",
        )
    return Restart(
        "exponential_delay",
        delay=first,
        maximum=longest,
        multiplier=multiplier,
        jitter=jitter,
        interval=parse_duration(reset_after, what="reset_after"),
    )


def failure_rate(*, failures: int, interval: Duration, delay: Duration) -> Restart:
    """Start again after `delay`, unless there were more than `failures` failures in `interval`.

    >>> failure_rate(failures=3, interval="5 minutes", delay="10 seconds").attempts
    3
    """
    _at_least(failures, 1, "failures")
    return Restart(
        "failure_rate",
        attempts=failures,
        delay=parse_duration(delay, what="delay"),
        interval=parse_duration(interval, what="interval"),
    )


def no_restart() -> Restart:
    """Never start again: the first failure stops the job.

    >>> no_restart().kind
    'none'
    """
    return Restart("none")


def _at_least(value: int, least: int, what: str) -> None:
    if value < least:
        raise UsageError(
            f"{what} must be at least {least}", got=str(value), remedy="use a larger number"
        )
