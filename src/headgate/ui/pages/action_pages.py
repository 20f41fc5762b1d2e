"""Pages for what is asked of a job: the plan before it, and what became of it."""

from __future__ import annotations

from headgate.base.errors import NotFoundError
from headgate.ui.pages.actions import find_action
from headgate.ui.pages.asked import Asked
from headgate.ui.pages.site import Shown

_MOST = 1000


def action(asked: Asked) -> Shown:
    """What an action would do, and the form that asks for it."""
    name, snapshot = asked.name("action"), asked.snapshot("snapshot")
    action, body = find_action(name, snapshot)
    drain = name == "stop" and asked.text("drain") == "true"
    savepoint = not (name == "stop" and asked.text("savepoint") == "false")
    job = asked.model.job(asked.name("job")).summary
    plan = asked.actions.plan(job.name, name, snapshot=snapshot, drain=drain, savepoint=savepoint)
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
    return Shown("action.html", values)


def operations(asked: Asked) -> Shown:
    """What was asked of a job, and by whom."""
    job = asked.model.job(asked.name("job")).summary
    view = asked.model.operations(job.name, own=asked.actions.works.of(job.name))
    return Shown("operations.html", {"job": job, "tab": "operations", "view": view})


def operation(asked: Asked) -> Shown:
    """One operation; its page follows it until it has ended."""
    job, id = asked.model.job(asked.name("job")).summary, asked.name("operation")
    every = asked.model.operations(job.name, own=asked.actions.works.of(job.name), limit=_MOST)
    view = next((one for one in every.operations if one.id == id), None)
    if view is None:
        raise NotFoundError("the job has no such operation", remedy="see its operations")
    return Shown("operation.html", {"job": job, "tab": "operations", "view": view})
