"""Restart strategies: when a failed query is started again, after how long, and when not."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.base.errors import UsageError
from headgate.base.settings import (
    Restart,
    exponential_delay,
    failure_rate,
    fixed_delay,
    no_restart,
)
from headgate.failures import Reason
from headgate.runtime.restarts import Again, Failed, GiveUp, Restarts

STRATEGIES = [
    fixed_delay(attempts=5, delay="10 seconds"),
    exponential_delay(),
    failure_rate(failures=3, interval="5 minutes", delay="10 seconds"),
    no_restart(),
]
strategies = st.sampled_from(STRATEGIES)


def seconds(decision: Again | GiveUp) -> float:
    assert isinstance(decision, Again), decision
    return decision.delay.total_seconds()


def fail(restarts: Restarts, at: float, *, batch: int = 0) -> Again | GiveUp:
    return restarts.after(Failed(at, batch, Reason.STORAGE))


def test_fixed_delay_allows_so_many_restarts_in_all() -> None:
    restarts = Restarts(fixed_delay(attempts=3, delay="10 seconds"))
    decisions = [fail(restarts, at) for at in (0, 3600, 7200)]
    assert [seconds(d) for d in decisions] == [10, 10, 10]
    assert [d.attempt for d in decisions if isinstance(d, Again)] == [1, 2, 3]
    assert fail(restarts, 10_000) == GiveUp("fixed_delay allows 3 restarts")


def test_exponential_delay_grows_to_its_maximum() -> None:
    strategy = exponential_delay(initial="1 second", maximum="10 seconds", jitter=0)
    restarts, at, delays = Restarts(strategy), 0.0, []
    for _ in range(6):
        delays.append(seconds(fail(restarts, at)))
        at += delays[-1] + 60
    assert delays == [1, 2, 4, 8, 10, 10]


def test_exponential_delay_begins_anew_after_a_quiet_time() -> None:
    strategy = exponential_delay(initial="1 second", jitter=0, reset_after="1 hour")
    restarts = Restarts(strategy)
    assert [seconds(fail(restarts, at)) for at in (0, 10, 20)] == [1, 2, 4]
    # it ran from second 24 on
    assert seconds(fail(restarts, 24 + 3599)) == 8
    assert seconds(fail(restarts, 24 + 3599 + 8 + 3600)) == 1


def test_failure_rate_gives_up_on_one_failure_too_many_in_its_time() -> None:
    restarts = Restarts(failure_rate(failures=2, interval="60 seconds", delay="5 seconds"))
    assert [seconds(fail(restarts, at)) for at in (0, 30, 61, 100)] == [5, 5, 5, 5]
    assert fail(restarts, 110) == GiveUp(
        "it failed 3 times within 1m 00s, and failure_rate allows 2"
    )


def test_no_restart_gives_up_at_once() -> None:
    assert isinstance(fail(Restarts(no_restart()), 0), GiveUp)


@pytest.mark.parametrize("strategy", STRATEGIES[:3], ids=lambda s: s.kind)
def test_a_reason_that_would_repeat_is_tried_once_more_on_a_batch(strategy: Restart) -> None:
    restarts = Restarts(strategy)
    assert isinstance(restarts.after(Failed(0, 4, Reason.USER_CODE)), Again)
    assert restarts.after(Failed(20, 4, Reason.MALFORMED_RECORD)) == GiveUp(
        "it failed so twice on batch 4, and would again"
    )


def test_a_later_batch_may_fail_for_the_same_reason() -> None:
    restarts = Restarts(exponential_delay())
    for batch in range(10):
        assert isinstance(restarts.after(Failed(batch * 100, batch, Reason.USER_CODE)), Again)


def test_a_reason_that_may_pass_between_two_that_will_not_does_not_help() -> None:
    restarts = Restarts(exponential_delay())
    restarts.after(Failed(0, 4, Reason.USER_CODE))
    assert isinstance(restarts.after(Failed(1, 4, Reason.STORAGE)), Again)
    assert isinstance(restarts.after(Failed(2, 4, Reason.USER_CODE)), GiveUp)


@given(strategies, st.sampled_from([Reason.DRIVER_GONE, Reason.LEASE_LOST, Reason.CRASH_ASKED]))
def test_without_spark_or_the_lease_there_is_no_restart(strategy: Restart, reason: Reason) -> None:
    assert isinstance(Restarts(strategy).after(Failed(0, 0, reason)), GiveUp)


@given(
    initial=st.floats(0.001, 100),
    growth=st.floats(1, 1000),
    multiplier=st.floats(1, 1000),
    jitter=st.floats(0, 0.99),
    gaps=st.lists(st.floats(0, 10_000), min_size=1, max_size=300),
    luck=st.floats(0, 1),
)
def test_an_exponential_delay_stays_within_its_bounds(
    initial: float, growth: float, multiplier: float, jitter: float, gaps: list[float], luck: float
) -> None:
    strategy = exponential_delay(
        initial=timedelta(seconds=initial),
        maximum=timedelta(seconds=initial * growth),
        multiplier=multiplier,
        jitter=jitter,
    )
    restarts, at = Restarts(strategy, luck=lambda: luck), 0.0
    for gap in gaps:
        at += gap
        delay = seconds(fail(restarts, at))
        lowest = strategy.delay.total_seconds() * (1 - jitter)
        assert lowest - 1e-5 <= delay <= strategy.maximum.total_seconds()


@given(st.lists(st.floats(0, 100), min_size=1, max_size=60), st.integers(1, 5))
def test_failure_rate_agrees_with_a_count_of_the_failures(gaps: list[float], allowed: int) -> None:
    restarts, times, at = (
        Restarts(failure_rate(failures=allowed, interval="60 seconds", delay="1 second")),
        [],
        0.0,
    )
    for gap in gaps:
        at += gap
        times.append(at)
        recent = sum(at - time <= 60 for time in times)
        gave_up = isinstance(fail(restarts, at), GiveUp)
        assert gave_up == (recent > allowed)
        if gave_up:
            return


@pytest.mark.parametrize(
    "options",
    [{"initial": "0 seconds"}, {"initial": "2 minutes"}, {"multiplier": 0.5}, {"jitter": 1.0}],
    ids=str,
)
def test_an_exponential_delay_that_cannot_be_is_refused(options: dict[str, str]) -> None:
    ((name, came),) = options.items()
    with pytest.raises(UsageError, match=rf"{name} (must be|at least) .*, got .*{name} '?{came}"):
        exponential_delay(**options)  # type: ignore[arg-type]
