"""Go on in another run within one start: on topics made again, or where a restart asks for."""

from __future__ import annotations

from dataclasses import replace

from headgate.base.errors import HeadgateError
from headgate.failures import Reason
from headgate.runtime.drive import Drive
from headgate.runtime.ending import ending_details, last_savepoint
from headgate.runtime.execution import Execution
from headgate.runtime.launch import launch, parallelism_of
from headgate.runtime.restarts import Restarts
from headgate.runtime.stopping import Resume, StopPlan
from headgate.runtime.topics import JobTopics


def may_reread_topics(execution: Execution, drive: Drive, error: Exception) -> bool:
    """Whether a failure is a topic that was made again, of sources that may lose records."""
    from headgate import jvm

    if (
        execution.operations.stop_requested
        or jvm.explain_failure(error).reason is not Reason.TOPIC_REPLACED
    ):
        return False
    topics = JobTopics(drive.compiled)
    replaced = topics.replaced(drive.run)
    return bool(replaced) and all(topics.may_lose(source) for source in replaced)


def reread_topics(execution: Execution, drive: Drive, error: Exception) -> Drive:
    """Go on in a run that reads topics that were made again from their beginning."""
    from headgate import jvm

    drive.recorder.recover()
    failure = jvm.explain_failure(error)
    options = replace(execution.options, fresh=False, restore=None, parallelism=None)
    try:
        new = launch(execution, options, parallelism_of(execution, options))
    except HeadgateError as problem:
        execution.event(
            drive.run, "failed", reason=failure.reason.name, message=problem.message,
            step=failure.step, remedy=problem.remedy, batch=drive.pending, frames=[],
            gives_up=failure.sentence,
        )  # fmt: skip
        raise
    execution.event(
        drive.run, "stopped", checkpoint=drive.last_checkpoint, reason=failure.sentence,
        savepoint=None,
    )  # fmt: skip
    return new


def restart_elsewhere(execution: Execution, drive: Drive, plan: StopPlan, then: Resume) -> Drive:
    """Stop the run with a savepoint and go on from there, or from the requested snapshot."""
    saved, problem = last_savepoint(drive, plan)
    execution.event(drive.run, "stopped", **ending_details(drive, plan, saved))
    options = replace(
        execution.options,
        fresh=False,
        restore=then.restore or (f"sp:{saved.label}" if saved else None),
        parallelism=then.parallelism,
        allow_dropped_state=False,
        accept_sink_position=False,
    )
    execution.restarts = Restarts(execution.job.restart)
    try:
        if problem is not None:
            raise problem
        new = launch(execution, options, parallelism_of(execution, options))
    except HeadgateError as error:
        problem = error
        as_it_was = replace(options, restore=None, parallelism=None)
        new = launch(execution, as_it_was, parallelism_of(execution, as_it_was))
    result = {"run": new.run.id, "savepoint": saved.to_json() if saved else None}
    goes_on = f"the job goes on as it was: {problem}" if problem else None
    execution.operations.end(plan, result=result, error=goes_on)
    return new
