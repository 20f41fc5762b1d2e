"""The state browser. The page says which state there is; its script asks REST for rows."""

from __future__ import annotations

from headgate.base.errors import NotFoundError
from headgate.ui.model.state import StateView
from headgate.ui.pages.asked import Asked
from headgate.ui.pages.site import Shown

_MOST = 1000


def state(asked: Asked) -> Shown:
    """Which steps keep state at a snapshot, and the forms that look into it."""
    job = asked.model.job(asked.name("job")).summary
    chosen = asked.snapshot("snapshot")
    view: StateView | None = None
    snapshots: list[str] = []
    if job.checkpoint is not None or chosen is not None:
        snapshots = _snapshots(asked, job.name, chosen)
        try:
            view = asked.model.state(job.name, snapshot=chosen or "latest")
        except NotFoundError:
            if chosen is not None:
                raise
    values = {"job": job, "tab": "state", "view": view, "snapshots": snapshots,
              "snapshot": chosen or "latest"}  # fmt: skip
    return Shown("state.html", values)


def _snapshots(asked: Asked, job: str, chosen: str | None) -> list[str]:
    """What can be looked into, the newest first."""
    lines = asked.model.checkpoints(job, limit=_MOST).history
    kept = [line.name for line in lines if line.restorable]
    saved = [one.name for one in asked.model.savepoints(job).savepoints]
    return list(dict.fromkeys(["latest", *([chosen] if chosen else []), *kept, *saved]))
