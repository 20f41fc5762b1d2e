"""The part of the REST interface that reads state, through Spark in a process of its own."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Depends

from headgate.base.errors import UsageError
from headgate.snapshots.snapshot import find_snapshot
from headgate.ui.model import Model
from headgate.ui.model.state import StateDiff, StateRows, StateView
from headgate.ui.rest.openapi import READING
from headgate.ui.rest.params import (
    Job,
    KeyParts,
    Offset,
    RowLimit,
    Search,
    Snapshot,
    StateName,
    Step,
)
from headgate.ui.rest.services import ReadModel, Spark, known_query

_ROWS = 20

router = APIRouter(tags=["state"], responses=READING, dependencies=[Depends(known_query)])


@router.get("/jobs/{job}/state")
def state(job: Job, model: ReadModel, snapshot: Snapshot = "latest") -> StateView:
    """Which state a snapshot has; quick, reads none of it."""
    return model.state(job, snapshot=snapshot)


@router.get("/jobs/{job}/state/{step}")
def state_rows(
    job: Job,
    step: Step,
    model: ReadModel,
    spark: Spark,
    snapshot: Snapshot = "latest",
    state: StateName = "default",
    key: KeyParts = [],  # noqa: B006 FastAPI copies it
    search: Search = None,
    limit: RowLimit = _ROWS,
    offset: Offset = 0,
) -> StateRows:
    """Rows of a step's state, or those of one key; the first response waits for Spark.

    To go on, ask with a greater offset for the `snapshot` of the response: `latest` moves.
    """
    _check(model, job, step, state, snapshot)
    query: dict[str, Any] = {"work": "rows", "job": job, "step": step, "state": state,
                             "snapshot": snapshot, "limit": limit, "offset": offset,
                             "search": search}  # fmt: skip
    if key:
        query["key"] = _key(key)
    found = spark.query(query)
    rows = tuple(found["rows"])
    return StateRows(job, found["snapshot"], step, state, offset, rows, found["truncated"])


@router.get("/jobs/{job}/state/{step}/diff")
def state_diff(
    job: Job,
    step: Step,
    model: ReadModel,
    spark: Spark,
    before: Snapshot,
    after: Snapshot = "latest",
    state: StateName = "default",
    limit: RowLimit = _ROWS,
) -> StateDiff:
    """Keys that were added, removed or changed between two snapshots."""
    for snapshot in (before, after):
        _check(model, job, step, state, snapshot)
    found = spark.query(
        {"work": "diff", "job": job, "step": step, "state": state, "snapshot": before,
         "after": after, "limit": limit}
    )  # fmt: skip
    return StateDiff(job, found["before"], found["after"], step, state, found["counts"],
                     tuple(found["rows"]), found["truncated"])  # fmt: skip


def _check(model: Model, job: str, step: str, state: str, snapshot: str) -> None:
    """Refuse what the graph does not know before Spark starts."""
    from headgate.state.shape import StateShape  # brings pyspark, which takes a second

    home = model.job_home(job)
    StateShape(find_snapshot(model.home, snapshot, home.name)).check_name(step, state)


def _key(parts: list[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if name in found:
            raise UsageError(f"the key's part '{name}' is given twice", remedy="give it once")
        found[name] = value if equals else None
    return found
