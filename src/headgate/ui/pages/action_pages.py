"""Pages of actions: the plan of one, and the operations that came of them."""

from __future__ import annotations

from headgate.base.errors import NotFoundError
from headgate.ui.pages.actions import find_action
from headgate.ui.pages.request import PageRequest
from headgate.ui.pages.site import PageResponse

_MOST = 1000


def action(request: PageRequest) -> PageResponse:
    """The plan of an action, and the form that starts it."""
    name, snapshot = request.name("action"), request.snapshot("snapshot")
    action, body = find_action(name, snapshot)
    drain = name == "stop" and request.text("drain") == "true"
    savepoint = not (name == "stop" and request.text("savepoint") == "false")
    job = request.model.job(request.name("job")).summary
    plan = request.actions.plan(
        job.name, action.name, snapshot=snapshot, drain=drain, savepoint=savepoint
    )
    if name == "stop":
        body |= {"drain": drain, "savepoint": savepoint}
    values = {
        "job": job,
        "tab": name,
        "plan": plan,
        "action": action,
        "post": f"/jobs/{job.name}/{action.path}",
        "body": {**body, "confirm": plan.confirm},
        "drain": drain,
        "savepoint": savepoint,
    }
    return PageResponse("action.html", values)


def operations(request: PageRequest) -> PageResponse:
    """Operations of a job, and who requested them."""
    job = request.model.job(request.name("job")).summary
    view = request.model.operations(job.name, own=request.actions.background.of(job.name))
    return PageResponse("operations.html", {"job": job, "tab": "operations", "view": view})


def operation(request: PageRequest) -> PageResponse:
    """One operation; its page follows it until it has ended."""
    job, id = request.model.job(request.name("job")).summary, request.name("operation")
    every = request.model.operations(
        job.name, own=request.actions.background.of(job.name), limit=_MOST
    )
    view = next((one for one in every.operations if one.id == id), None)
    if view is None:
        raise NotFoundError("the job has no such operation", remedy="see its operations")
    return PageResponse("operation.html", {"job": job, "tab": "operations", "view": view})
