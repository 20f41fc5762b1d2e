"""The part of the REST interface that changes something: plans, actions and operations."""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request

from headgate.base.errors import NotFoundError
from headgate.ui.actions import ACTIONS, ActionPlan, Actions, Caller
from headgate.ui.model import Model
from headgate.ui.model.operations import OperationsView, OperationView
from headgate.ui.rest.endpoint import JOB, Endpoint, Param
from headgate.ui.rest.reading import CHECKPOINT, LIMIT, RUN

SNAPSHOT_PATTERN = r"latest|(?:r[0-9]{1,9}/)?ck:[0-9]{1,9}|sp:[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"
SNAPSHOT = Param("snapshot", "latest, ck:17, r1/ck:17 or sp:label.", pattern=SNAPSHOT_PATTERN)
LABEL = Param(
    "label",
    "The savepoint's name, one that is not taken.",
    pattern="[A-Za-z0-9][A-Za-z0-9_.-]{0,99}",
)
DRAIN = Param("drain", "First read all that is there and close all windows.", "boolean")
SAVEPOINT = Param("savepoint", "Make a savepoint at the end; true by default.", "boolean")
CONFIRM = Param(
    "confirm", "From the plan: refused if the job has changed since.", pattern="[0-9a-f]{16}"
)
ACTION = Param("action", f"One of {', '.join(ACTIONS)}.", pattern="|".join(ACTIONS), required=True)
OFF = Param("off", "Let retention have it again.", "boolean")
OPERATION = Param("operation", "The id of an operation.", required=True)
_ID = re.compile(r"(?:op|ui)-[0-9a-f]{6,32}")


def endpoints(model: Model, actions: Actions) -> list[Endpoint]:
    """What can be asked for, and what became of it."""
    return [
        Endpoint(
            "/jobs/{job}/plan/{action}",
            "What an action would do now; changes nothing.",
            lambda job, action, snapshot, label, drain, savepoint: actions.plan(
                job,
                action,
                snapshot=snapshot,
                label=label,
                drain=bool(drain),
                savepoint=savepoint is not False,
            ),
            ActionPlan,
            parts=[JOB, ACTION],
            query=[SNAPSHOT, LABEL, DRAIN, SAVEPOINT],
            tag="actions",
        ),
        _post(actions, "savepoints", "savepoint", "Make a savepoint.", [SNAPSHOT, LABEL]),
        _post(actions, "checkpoints", "checkpoint", "Ask a running job for a checkpoint now.", []),
        _post(
            actions, "stop", "stop", "Stop a job, by default with a savepoint.",
            [LABEL, DRAIN, SAVEPOINT],
        ),
        _post(actions, "cancel", "cancel", "Stop a job in the middle of its batch.", []),
        _post(
            actions, "restart", "restart",
            "Go on from a snapshot: in the job's own process, or in a new one.", [SNAPSHOT],
        ),
        _on_checkpoint(actions, "pin", "Keep a checkpoint whatever retention does.", [RUN, OFF]),
        _on_checkpoint(actions, "verify", "Read every file of a checkpoint.", [RUN]),
        Endpoint(
            "/jobs/{job}/savepoints/{label}/verify",
            "Read every file of a savepoint.",
            lambda job, label, confirm, request: actions.do(
                job, "verify", caller_of(request), snapshot=f"sp:{label}", confirm=confirm
            ),
            OperationView,
            "POST",
            parts=[JOB, LABEL],
            body=[CONFIRM],
            status=202,
            tag="actions",
        ),
        Endpoint(
            "/jobs/{job}/operations",
            "What was asked of a job, and by whom.",
            lambda job, limit: model.operations(job, own=actions.works.of(job), limit=limit),
            OperationsView,
            parts=[JOB],
            query=[LIMIT],
            tag="actions",
        ),
        Endpoint(
            "/jobs/{job}/operations/{operation}",
            "One operation and its state.",
            lambda job, operation: _operation(model, actions, job, operation),
            OperationView,
            parts=[JOB, OPERATION],
            tag="actions",
        ),
    ]  # fmt: skip


def _post(actions: Actions, path: str, action: str, summary: str, body: list[Param]) -> Endpoint:
    def answer(job: str, request: Request, **given: Any) -> OperationView:
        return actions.do(job, action, caller_of(request), **_given(given))

    return Endpoint(
        f"/jobs/{{job}}/{path}",
        summary,
        answer,
        OperationView,
        "POST",
        parts=[JOB],
        body=[*body, CONFIRM],
        status=202,
        tag="actions",
    )


def _on_checkpoint(actions: Actions, action: str, summary: str, body: list[Param]) -> Endpoint:
    def answer(
        job: str,
        checkpoint: int,
        request: Request,
        confirm: str | None,
        run: str | None = None,
        off: bool | None = None,
    ) -> OperationView:
        name = f"{run}/ck:{checkpoint}" if run else f"ck:{checkpoint}"
        what = "unpin" if off else action
        return actions.do(job, what, caller_of(request), snapshot=name, confirm=confirm)

    return Endpoint(
        f"/jobs/{{job}}/checkpoints/{{checkpoint}}/{action}",
        summary,
        answer,
        OperationView,
        "POST",
        parts=[JOB, CHECKPOINT],
        body=[*body, CONFIRM],
        status=202,
        tag="actions",
    )


def caller_of(request: Request) -> Caller:
    """Who sent a request, for the audit."""
    role = str(getattr(request.state, "role", "") or "")
    return Caller(role, request.client.host if request.client else "")


def _given(values: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _operation(model: Model, actions: Actions, job: str, id: str) -> OperationView:
    found = model.job_home(job)
    if _ID.fullmatch(id):
        every = model.operations(found.name, own=actions.works.of(found.name), limit=1_000_000)
        for operation in every.operations:
            if operation.id == id:
                return operation
    raise NotFoundError("the job has no such operation")
