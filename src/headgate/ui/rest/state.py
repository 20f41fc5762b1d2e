"""The part of the REST interface that reads state, through Spark in a process of its own."""

from __future__ import annotations

from typing import Any

from headgate.base.errors import UsageError
from headgate.snapshots.snapshot import find_snapshot
from headgate.ui.model import Model
from headgate.ui.model.state import StateDiff, StateRows, StateView
from headgate.ui.rest.acting import SNAPSHOT_PATTERN
from headgate.ui.rest.endpoint import JOB, Endpoint, Param
from headgate.ui.rest.reading import STEP
from headgate.ui.spark_process import SparkProcess

_SNAPSHOTS = "latest, ck:17, r1/ck:17 or sp:label."
SNAPSHOT = Param("snapshot", _SNAPSHOTS, pattern=SNAPSHOT_PATTERN, default="latest")
BEFORE = Param("before", _SNAPSHOTS, pattern=SNAPSHOT_PATTERN, required=True)
AFTER = Param("after", _SNAPSHOTS, pattern=SNAPSHOT_PATTERN, default="latest")
STATE = Param("state", "Which state of the step.", default="default")
KEY = Param(
    "key",
    "A part of the key as NAME=VALUE, or NAME alone for null; may be repeated.",
    pattern=r"[^=\x00]+(=[^\x00]*)?",
    many=True,
)
LIMIT = Param("limit", "At most so many rows.", "integer", least=1, most=1000, default=20)


def endpoints(model: Model, spark: SparkProcess) -> list[Endpoint]:
    """What can be read of state."""
    state = _State(model, spark)
    return [
        Endpoint(
            "/jobs/{job}/state",
            "Which state a snapshot has; quick, reads none of it.",
            lambda job, snapshot: model.state(job, snapshot=snapshot),
            StateView,
            parts=[JOB],
            query=[SNAPSHOT],
            tag="state",
        ),
        Endpoint(
            "/jobs/{job}/state/{step}",
            "Rows of a step's state, or those of one key; the first answer waits for Spark.",
            state.rows,
            StateRows,
            parts=[JOB, STEP],
            query=[SNAPSHOT, STATE, KEY, LIMIT],
            tag="state",
        ),
        Endpoint(
            "/jobs/{job}/state/{step}/diff",
            "Keys that were added, removed or changed between two snapshots.",
            state.diff,
            StateDiff,
            parts=[JOB, STEP],
            query=[BEFORE, AFTER, STATE, LIMIT],
            tag="state",
        ),
    ]


class _State:
    """Asks the process; what the graph knows is checked before."""

    def __init__(self, model: Model, spark: SparkProcess) -> None:
        self._model = model
        self._spark = spark

    def rows(
        self,
        job: str,
        step: str,
        snapshot: str,
        state: str,
        key: list[str] | None,
        limit: int,
    ) -> StateRows:
        self._check(job, step, state, snapshot)
        question: dict[str, Any] = {"work": "rows", "job": job, "step": step, "state": state,
                                    "snapshot": snapshot, "limit": limit}  # fmt: skip
        if key:
            question["key"] = _key(key)
        found = self._spark.ask(question)
        rows = tuple(found["rows"])
        return StateRows(job, found["snapshot"], step, state, rows, found["truncated"])

    def diff(
        self, job: str, step: str, before: str, after: str, state: str, limit: int
    ) -> StateDiff:
        for snapshot in (before, after):
            self._check(job, step, state, snapshot)
        found = self._spark.ask(
            {"work": "diff", "job": job, "step": step, "state": state, "snapshot": before,
             "after": after, "limit": limit}
        )  # fmt: skip
        return StateDiff(job, found["before"], found["after"], step, state, found["counts"],
                         tuple(found["rows"]), found["truncated"])  # fmt: skip

    def _check(self, job: str, step: str, state: str, snapshot: str) -> None:
        from headgate.state.shape import StateShape  # brings pyspark, which takes a second

        home = self._model.job_home(job)
        StateShape(find_snapshot(self._model.home, snapshot, home.name)).check_name(step, state)


def _key(parts: list[str]) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for part in parts:
        name, equals, value = part.partition("=")
        if name in found:
            raise UsageError(f"the key's part '{name}' is given twice", remedy="give it once")
        found[name] = value if equals else None
    return found
