"""The part of the REST interface that changes something: plans, actions and operations."""

from __future__ import annotations

import re
from typing import Annotated, Any

from fastapi import APIRouter, Body, Depends

from headgate.base.errors import NotFoundError
from headgate.ui.actions import ActionPlan
from headgate.ui.model.model import DEFAULT_LIMIT
from headgate.ui.model.operations import OperationsView, OperationView
from headgate.ui.rest.bodies import (
    ActionBody,
    PinBody,
    RestartBody,
    SavepointBody,
    StopBody,
    VerifyBody,
)
from headgate.ui.rest.openapi import ACTING, BODY, READING
from headgate.ui.rest.params import (
    Action,
    Checkpoint,
    Drain,
    Job,
    Label,
    Limit,
    Operation,
    OptionalLabel,
    OptionalSnapshot,
    Savepoint,
)
from headgate.ui.rest.services import CalledBy, JobActions, ReadModel, known_query

_ALL = 1_000_000
_ID = re.compile(r"(?:op|ui)-[0-9a-f]{6,32}")
_POST: dict[str, Any] = {"status_code": 202, "responses": ACTING, "openapi_extra": BODY}

router = APIRouter(tags=["actions"], responses=READING, dependencies=[Depends(known_query)])


@router.get("/jobs/{job}/plan/{action}")
def plan(
    job: Job,
    action: Action,
    actions: JobActions,
    snapshot: OptionalSnapshot = None,
    label: OptionalLabel = None,
    drain: Drain = False,
    savepoint: Savepoint = True,
) -> ActionPlan:
    """What an action would do now; changes nothing."""
    return actions.plan(
        job, action, snapshot=snapshot, label=label, drain=drain, savepoint=savepoint
    )


@router.post("/jobs/{job}/savepoints", **_POST)
def make_savepoint(
    job: Job,
    actions: JobActions,
    caller: CalledBy,
    body: Annotated[SavepointBody, Body(default_factory=SavepointBody)],
) -> OperationView:
    """Make a savepoint."""
    return actions.do(job, "savepoint", caller, **body.given())


@router.post("/jobs/{job}/checkpoints", **_POST)
def make_checkpoint(
    job: Job,
    actions: JobActions,
    caller: CalledBy,
    body: Annotated[ActionBody, Body(default_factory=ActionBody)],
) -> OperationView:
    """Make a checkpoint of a running job now."""
    return actions.do(job, "checkpoint", caller, **body.given())


@router.post("/jobs/{job}/stop", **_POST)
def stop(
    job: Job,
    actions: JobActions,
    caller: CalledBy,
    body: Annotated[StopBody, Body(default_factory=StopBody)],
) -> OperationView:
    """Stop a job, by default with a savepoint."""
    return actions.do(job, "stop", caller, **body.given())


@router.post("/jobs/{job}/cancel", **_POST)
def cancel(
    job: Job,
    actions: JobActions,
    caller: CalledBy,
    body: Annotated[ActionBody, Body(default_factory=ActionBody)],
) -> OperationView:
    """Stop a job in the middle of its batch."""
    return actions.do(job, "cancel", caller, **body.given())


@router.post("/jobs/{job}/restart", **_POST)
def restart(
    job: Job,
    actions: JobActions,
    caller: CalledBy,
    body: Annotated[RestartBody, Body(default_factory=RestartBody)],
) -> OperationView:
    """Continue from a snapshot: in the job's own process, or in a new one."""
    return actions.do(job, "restart", caller, **body.given())


@router.post("/jobs/{job}/checkpoints/{checkpoint}/pin", **_POST)
def pin_checkpoint(
    job: Job,
    checkpoint: Checkpoint,
    actions: JobActions,
    caller: CalledBy,
    body: Annotated[PinBody, Body(default_factory=PinBody)],
) -> OperationView:
    """Keep a checkpoint whatever retention does."""
    return actions.do(
        job,
        "unpin" if body.off else "pin",
        caller,
        snapshot=_name(body.run, checkpoint),
        confirm=body.confirm,
    )


@router.post("/jobs/{job}/checkpoints/{checkpoint}/verify", **_POST)
def verify_checkpoint(
    job: Job,
    checkpoint: Checkpoint,
    actions: JobActions,
    caller: CalledBy,
    body: Annotated[VerifyBody, Body(default_factory=VerifyBody)],
) -> OperationView:
    """Read every file of a checkpoint."""
    return actions.do(
        job, "verify", caller, snapshot=_name(body.run, checkpoint), confirm=body.confirm
    )


@router.post("/jobs/{job}/savepoints/{label}/verify", **_POST)
def verify_savepoint(
    job: Job,
    label: Label,
    actions: JobActions,
    caller: CalledBy,
    body: Annotated[ActionBody, Body(default_factory=ActionBody)],
) -> OperationView:
    """Read every file of a savepoint."""
    return actions.do(job, "verify", caller, snapshot=f"sp:{label}", confirm=body.confirm)


@router.get("/jobs/{job}/operations")
def operations(
    job: Job, model: ReadModel, actions: JobActions, limit: Limit = DEFAULT_LIMIT
) -> OperationsView:
    """Operations of a job, and who requested them."""
    return model.operations(job, own=actions.background.of(job), limit=limit)


@router.get("/jobs/{job}/operations/{operation}")
def operation(
    job: Job, operation: Operation, model: ReadModel, actions: JobActions
) -> OperationView:
    """One operation and its state."""
    found = model.job_home(job)
    if _ID.fullmatch(operation):
        every = model.operations(found.name, own=actions.background.of(found.name), limit=_ALL)
        for one in every.operations:
            if one.id == operation:
                return one
    raise NotFoundError("the job has no such operation", remedy="see /jobs/{job}/operations")


def _name(run: str | None, checkpoint: int) -> str:
    return f"{run}/ck:{checkpoint}" if run else f"ck:{checkpoint}"
