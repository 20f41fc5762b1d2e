"""The state browser. The page says which state there is; its script gets rows from REST."""

from __future__ import annotations

from headgate.base.errors import NotFoundError
from headgate.ui.model.state import StateView
from headgate.ui.pages.request import PageRequest
from headgate.ui.pages.site import PageResponse

_MOST = 1000


def state(request: PageRequest) -> PageResponse:
    """Which steps keep state at a snapshot, and the forms that look into it."""
    job = request.model.job(request.name("job")).summary
    chosen = request.snapshot("snapshot")
    view: StateView | None = None
    snapshots: list[str] = []
    if job.checkpoint is not None or chosen is not None:
        snapshots = _snapshots(request, job.name, chosen)
        try:
            view = request.model.state(job.name, snapshot=chosen or "latest")
        except NotFoundError:
            if chosen is not None:
                raise
    values = {"job": job, "tab": "state", "view": view, "snapshots": snapshots,
              "snapshot": chosen or "latest"}  # fmt: skip
    return PageResponse("state.html", values)


def _snapshots(request: PageRequest, job: str, chosen: str | None) -> list[str]:
    """What can be looked into, the newest first."""
    lines = request.model.checkpoints(job, limit=_MOST).history
    kept = [line.name for line in lines if line.restorable]
    saved = [one.name for one in request.model.savepoints(job).savepoints]
    return list(dict.fromkeys(["latest", *([chosen] if chosen else []), *kept, *saved]))
