"""Actions on the pages: which buttons a job has, and what their forms send."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from headgate.base.errors import NotFoundError
from headgate.ui.action_request import ActionName
from headgate.ui.model.jobs import LIVE


@dataclass(frozen=True)
class Action:
    """One action; `name` is that of its plan."""

    name: ActionName
    path: str
    """Where it is sent, below the job."""
    tone: str = "main"
    has_label: bool = False


_ALL = (
    Action("savepoint", "savepoints", has_label=True),
    Action("checkpoint", "checkpoints"),
    Action("stop", "stop", has_label=True),
    Action("cancel", "cancel", tone="danger"),
    Action("restart", "restart"),
)
_OF_SNAPSHOTS: tuple[ActionName, ...] = ("pin", "unpin", "verify")
_CHECKPOINT = re.compile(r"(?:(r[0-9]{1,9})/)?ck:([0-9]{1,9})")


def find_action(name: str, snapshot: str | None) -> tuple[Action, dict[str, Any]]:
    """An action and what its request says of the snapshot.

    >>> action, body = find_action("unpin", "r1/ck:7")
    >>> action.path, body
    ('checkpoints/7/pin', {'run': 'r1', 'off': True})
    >>> find_action("verify", "sp:v1")[0].path, find_action("restart", "sp:v1")[1]
    ('savepoints/v1/verify', {'snapshot': 'sp:v1'})
    """
    for action in _ALL:
        if action.name == name:
            return action, {"snapshot": snapshot} if snapshot else {}
    for known in _OF_SNAPSHOTS:
        if known != name or snapshot is None:
            continue
        if snapshot.startswith("sp:") and known == "verify":
            return Action(known, f"savepoints/{quote(snapshot[3:], safe='')}/verify"), {}
        if match := _CHECKPOINT.fullmatch(snapshot):
            body: dict[str, Any] = {"run": match[1]} if match[1] else {}
            if known == "unpin":
                body["off"] = True
            return Action(known, f"checkpoints/{match[2]}/{known.removeprefix('un')}"), body
    raise NotFoundError("there is no such action", remedy="use the buttons of the job's pages")


def buttons(state: str) -> list[tuple[str, str]]:
    """Names and titles of the actions on a job in this state.

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
