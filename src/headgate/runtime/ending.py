"""How a run ends on request: its last savepoint, its last event, its files if they are to go."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headgate.base.errors import HeadgateError, NotFoundError
from headgate.home.layout import RunHome
from headgate.home.model import JobRecord
from headgate.runtime.drive import Drive
from headgate.runtime.execution import Execution
from headgate.runtime.options import RunOutcome
from headgate.runtime.stopping import StopPlan
from headgate.runtime.supervisor import Ended
from headgate.snapshots.savepoints import SavepointRecord, create_savepoint


def end_run(execution: Execution, drive: Drive, ended: Ended) -> RunOutcome:
    """Write down how the job ended, with a savepoint if one was requested."""
    plan = execution.operations.stop_plan
    saved, problem = last_savepoint(drive, plan)
    problem = problem or not_drained(drive, plan)
    if warning := not_readable(drive, ended.how):
        execution.display.say(f"warning: {warning}")
    execution.event(drive.run, ended.how, **ending_details(drive, plan, saved))
    outcome = execution.outcome_of(drive, ended.how, saved=saved)
    if plan is not None:
        result = {
            "run": outcome.run,
            "checkpoint": outcome.checkpoint,
            "savepoint": saved.to_json() if saved else None,
        }
        execution.operations.end(plan, result=result, error=str(problem) if problem else None)
        if plan.operation is None:
            outcome = replace(outcome, error=problem)
    if ended.how == "cancelled" and execution.job.checkpoints.on_cancel == "delete":
        delete_run(drive.run)
    return outcome


def last_savepoint(
    drive: Drive, plan: StopPlan | None
) -> tuple[SavepointRecord | None, HeadgateError | None]:
    """The savepoint that a stop asks for, or why there is none; neither without a checkpoint."""
    if plan is None or plan.now or not plan.savepoint:
        return None, None
    reason = "restart" if plan.then else "stop"
    try:
        return create_savepoint(drive.run, label=plan.label, reason=reason), None
    except NotFoundError:
        return None, None
    except HeadgateError as error:
        return None, error


def not_drained(drive: Drive, plan: StopPlan | None) -> HeadgateError | None:
    """What is said if a drain met a batch that fails."""
    if plan is None or not plan.drain or drive.pending is None:
        return None
    return HeadgateError(
        f"the job has stopped, but not at the end of its sources: batch {drive.next_batch} fails",
        code="OPERATION",
        remedy=f"see headgate show {drive.run.job.name}",
    )


def not_readable(drive: Drive, how: str) -> str | None:
    """Wait until readers see the last rows; what is said if they do not."""
    if how not in ("finished", "stopped") or drive.pending is not None:
        return None
    from headgate import jvm

    try:
        why = "" if drive.await_readable() else "its transactions are still being ended"
    except Exception as error:  # all is committed: a broker that is gone by now changes nothing
        why = jvm.explain_failure(error).sentence
    return (
        f"all rows are written, but readers may not see the last ones yet: {why}" if why else None
    )


def ending_details(
    drive: Drive, plan: StopPlan | None, saved: SavepointRecord | None
) -> dict[str, Any]:
    """What the event of an ending says."""
    details: dict[str, Any] = {"checkpoint": drive.last_checkpoint}
    if plan is not None:
        details["reason"] = plan.reason
        details["savepoint"] = saved.label if saved else None
    return details


def delete_run(run: RunHome) -> None:
    """Delete a run's state and records; its graph and events stay, and so do savepoints."""
    # First of all no start may resume it: sinks would take its batches for written.
    run.job.change(lambda old: JobRecord(old.name, None, old.lease))
    for part in ("spark", "checkpoints", "packed/checkpoints", "journal"):
        run.files.delete_tree(f"{run.path}/{part}")
