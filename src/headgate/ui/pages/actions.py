"""What can be asked of a job: which buttons it has, and what their forms send."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.ui.model.jobs import LIVE


@dataclass(frozen=True)
class Action:
    """One kind of request; `name` is that of its plan."""

    name: str
    title: str
    path: str
    """Where it is sent, below the job; {id} is a checkpoint's."""
    tone: str = "main"
    body: Mapping[str, Any] = field(default_factory=dict)
    asks_label: bool = False
    of_checkpoint: bool = False


_ALL = (
    Action("savepoint", "Savepoint now", "savepoints", asks_label=True),
    Action("checkpoint", "Checkpoint now", "checkpoints"),
    Action("stop", "Stop", "stop", asks_label=True),
    Action("cancel", "Cancel", "cancel", tone="danger"),
    Action("restart", "Restart", "restart"),
    Action("pin", "Pin", "checkpoints/{id}/pin", of_checkpoint=True),
    Action("unpin", "Unpin", "checkpoints/{id}/pin", body={"off": True}, of_checkpoint=True),
    Action("verify", "Verify", "checkpoints/{id}/verify", of_checkpoint=True),
)
ACTIONS = {action.name: action for action in _ALL}


def buttons(state: str) -> list[tuple[str, str]]:
    """Names and titles of what can be asked of a job in this state.

    >>> [name for name, _ in buttons("RUNNING")]
    ['savepoint', 'checkpoint', 'stop', 'cancel']
    >>> [name for name, _ in buttons("STOPPED")]
    ['savepoint', 'restart']
    """
    if state in LIVE:
        return [
            ("savepoint", "Savepoint now"),
            ("checkpoint", "Checkpoint now"),
            ("stop", "Stop with savepoint"),
            ("cancel", "Cancel"),
        ]
    return [] if state == "CREATED" else [("savepoint", "Savepoint"), ("restart", "Start again")]
