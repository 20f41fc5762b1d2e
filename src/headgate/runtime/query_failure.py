"""What follows the failure of a query: its event, and a wait for the restart or the final error."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import timedelta

from headgate.base.durations import format_duration
from headgate.base.errors import (
    HeadgateError,
    JobFailedError,
    Location,
    RefusedError,
    StorageError,
)
from headgate.base.secrets import scrub
from headgate.failures import Reason
from headgate.graph.check import location_of
from headgate.runtime.blame import kafka_reads, name_broker
from headgate.runtime.drive import Drive, LeaseLostError
from headgate.runtime.execution import Execution
from headgate.runtime.restarts import Failed, GiveUp

_WAIT_SECONDS = 0.1


def handle_failure(execution: Execution, drive: Drive, error: Exception) -> HeadgateError | None:
    """Write the failure down; wait if the query is to be started again, else give it back."""
    from headgate import jvm

    failure = jvm.explain_failure(error)
    failure = name_broker(failure, kafka_reads(execution.built))
    failure = execution.patience.named(failure)
    if failure.reason is Reason.LEASE_LOST or not execution.lease.verify():
        raise LeaseLostError(execution.lease.lost or failure.sentence)
    with suppress(StorageError):  # the query was lost to the same disk: its start tries again
        drive.recorder.recover()
    failed = Failed(time.monotonic(), drive.next_batch, failure.reason)
    decision = (
        GiveUp("it was being stopped")
        if execution.operations.stop_requested
        else execution.restarts.after(failed)
    )
    execution.event(
        drive.run,
        "failed",
        reason=failure.reason.name,
        message=failure.sentence,
        step=failure.step,
        remedy=failure.remedy,
        batch=drive.pending,
        frames=list(failure.frames),
        gives_up=decision.why if isinstance(decision, GiveUp) else None,
    )
    if isinstance(decision, GiveUp):
        explains = execution.job.restart.kind != "none" and not execution.operations.stop_requested
        why = f"; not started again, because {decision.why}" if explains else ""
        kind = RefusedError if failure.reason is Reason.HOME_UNSEEN else JobFailedError
        final = kind(
            failure.sentence + why,
            code=failure.reason.name,
            step=failure.step,
            remedy=failure.remedy,
            location=None if failure.frames else _written_at(execution, failure.step),
        )
        scrub(error)
        final.__cause__ = error
        return final
    strategy, delay = execution.restarts.strategy.kind, decision.delay
    execution.event(
        drive.run,
        "restarting",
        attempt=decision.attempt,
        delay_seconds=round(delay.total_seconds(), 3),
        strategy=strategy,
        reason=failure.reason.name,
    )
    execution.display.say(f"failed: {failure.sentence}")
    execution.display.say(f"restart {decision.attempt} ({strategy}) in {format_duration(delay)}")
    _wait(execution, delay)
    return None


def _written_at(execution: Execution, step: str | None) -> Location | None:
    """The line of the user's code that a step comes from."""
    found = (one for one in execution.built.graph.steps if one.id == step)
    return next((location_of(one) for one in found), None)


def _wait(execution: Execution, delay: timedelta) -> None:
    until = time.monotonic() + delay.total_seconds()
    while not execution.operations.stop_requested and (
        time.monotonic() < until or execution.patience.pending
    ):
        execution.poll()
        time.sleep(max(0.0, min(_WAIT_SECONDS, until - time.monotonic())) or _WAIT_SECONDS)
