"""assert_crash_safe: the same rows and state whatever point of a commit the job dies at."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from headgate.api.job import JobDef
from headgate.connectors.letters import HEADERS
from headgate.steps.dead_letters import SINK as LETTERS
from headgate.testing.job_driver import CrashPoint, JobDriver
from headgate.testing.real_sinks import ReadSink
from headgate.testing.records import Record

_BATCHES = 2


def assert_crash_safe(
    job: JobDef,
    script: Sequence[tuple[str, Record]],
    *,
    params: Mapping[str, str] | None = None,
    real_sinks: Mapping[str, ReadSink] | None = None,
) -> None:
    """Run a script of (source, record) without a crash, then with one at each point of a commit.

    The script is split into two batches, and the job dies in each of them. Rows of every sink, the
    state of every step and all counters must be the same as without a crash. Sinks in `real_sinks`
    are the job's real ones, and these functions read them; the job then also dies after such a sink
    has written a batch and before anything records that.
    """
    parts = _parts(script)
    wanted = _outcome(job, parts, params, real_sinks, crash=None)
    for point in get_args(CrashPoint):
        if point == "mid_sink" and not real_sinks:
            continue  # the sinks of tests are our own
        found = _outcome(job, parts, params, real_sinks, crash=point)
        for what, value in wanted.items():
            assert found[what] == value, (
                f"a crash at {point} changes {what}:\n  {found[what]}\ninstead of\n  {value}"
            )


def _parts(script: Sequence[tuple[str, Record]]) -> list[Sequence[tuple[str, Record]]]:
    size = max(1, -(-len(script) // _BATCHES))
    return [script[at : at + size] for at in range(0, len(script), size)]


def _outcome(
    job: JobDef,
    parts: Sequence[Sequence[tuple[str, Record]]],
    params: Mapping[str, str] | None,
    real_sinks: Mapping[str, ReadSink] | None,
    *,
    crash: CrashPoint | None,
) -> dict[str, Any]:
    with JobDriver(job, params=params, real_sinks=real_sinks) as driver:
        for part in parts:
            for source, record in part:
                driver.send(source, record)
            if crash is not None:
                driver.crash(at=crash).restore()
            driver.run()
        steps = driver.built.graph.steps
        found: dict[str, Any] = {}
        for step in steps:
            if step.role == "sink":
                rows = driver.rows(step.id)
                if step.id == LETTERS:
                    rows = [_without_clock(row) for row in rows]
                found[f"the rows of {step.id}"] = _sorted(rows)
            operation = driver.built.node(step.id).operation
            names = operation.state_names
            if names is not None:
                # by name: the step's rows also have times of the clock, which no two runs share
                for name in names:
                    rows = driver.state(step.id, name).all()
                    found[f"the state {name} of {step.id}"] = _sorted(rows)
            elif step.stateful:
                rows = driver.state(step.id).all()
                for row in rows:
                    for name in operation.passing_columns:
                        del row["row"][name]
                # without the end of rows with a ttl, which may be a time of the clock as well
                kept = [{k: v for k, v in row.items() if k != "expires"} for row in rows]
                found[f"the state of {step.id}"] = _sorted(kept)
            found[f"the counters of {step.id}"] = driver.metrics(step.id)
        return found


def _without_clock(letter: Mapping[str, Any]) -> dict[str, Any]:
    """A dead letter without what no two runs share."""
    passing = [f"{HEADERS}{name}" for name in ("time", "timestamp", "topic")]
    headers = {k: v for k, v in letter["headers"].items() if k not in passing}
    return {**letter, "headers": headers}


def _sorted(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, default=str, sort_keys=True) for row in rows)
