"""Owns where a batch's time goes, read from Spark's event log: medians over batches.

A batch is what `StreamingQueryProgress` says of it (`durationMs`), and the stages of its jobs. A
stage is shown by the task that ended last: its parts add up to what the stage took.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

STAGE_PARTS = (
    "wait", "deserialise", "open state", "rows", "commit state", "write", "result"
)  # fmt: skip
"""Of a stage's task, in its order.

`wait` is from the end of the stage before, or the job's start, to the task's launch; `rows` is
reading, the work on rows and, in the last stage of a stream, handing them to the sink; `write` is
what comes after the rows: the shuffle files, or the sink's commit; `result` from the task's end to
the stage's.
"""
_DRIVER = (
    ("sources", ("latestOffset", "getBatch")),
    ("planning", ("queryPlanning",)),
    ("offset log", ("walCommit",)),
    ("commit", ("commitOffsets", "commitBatch")),
)
_LOAD = "RocksDB: load - time taken to load the store"
_UPDATE = "time to update"
_COMMIT = "time to commit changes"
_SHUFFLE = "internal.metrics.shuffle.write.writeTime"
_PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent"


@dataclass(frozen=True)
class StageProfile:
    """One stage of a batch: the steps that counted rows in it, and milliseconds by part."""

    steps: str
    batches: int
    took: float
    parts: Mapping[str, float]


@dataclass(frozen=True)
class Profile:
    """Medians, in milliseconds, over so many batches with rows."""

    batches: int
    rows: float
    took: float
    driver: Mapping[str, float]
    stages: list[StageProfile]


@dataclass
class _Stage:
    steps: str
    submitted: int
    completed: int
    last: Mapping[str, Any]
    """The event of the task that ended last."""


@dataclass
class _Batch:
    jobs: dict[int, int] = field(default_factory=dict)
    """Numbers of jobs, and when each began."""
    stages: list[_Stage] = field(default_factory=list)
    progress: Mapping[str, Any] | None = None

    @property
    def rows(self) -> int:
        sources = self.progress["sources"] if self.progress else []
        return sum(source["numInputRows"] for source in sources)


def profile(lines: Iterable[str]) -> Profile | None:
    """What an event log says; None if it has no whole batch with rows."""
    batches = [b for b in _batches(lines) if b.progress and b.stages and b.jobs and b.rows]
    if not batches:
        return None
    by_place: dict[tuple[int, str], list[tuple[float, dict[str, float]]]] = {}
    around = []
    for batch in batches:
        ended = min(batch.jobs.values())
        began = ended
        for place, stage in enumerate(sorted(batch.stages, key=lambda s: s.submitted)):
            found = _parts(stage, ended)
            by_place.setdefault((place, stage.steps), []).append((sum(found.values()), found))
            ended = max(ended, stage.completed)
        around.append(_durations(batch)["addBatch"] - (ended - began))
    driver = {name: _median(batches, _of(keys)) for name, keys in _DRIVER}
    driver["around stages"] = statistics.median(around)
    return Profile(
        len(batches),
        statistics.median(batch.rows for batch in batches),
        _median(batches, _of(("triggerExecution",))),
        driver,
        [
            StageProfile(
                steps, len(found), statistics.median(took for took, _ in found),
                {p: statistics.median(parts[p] for _, parts in found) for p in STAGE_PARTS},
            )
            for (_, steps), found in sorted(by_place.items())
        ],
    )  # fmt: skip


def _batches(lines: Iterable[str]) -> list[_Batch]:
    batches: dict[int, _Batch] = {}
    batch_of_stage: dict[int, _Batch] = {}
    last_task: dict[int, Mapping[str, Any]] = {}
    for event in _events(lines):
        kind = event["Event"]
        if kind == _PROGRESS:
            progress = event["progress"]
            batches.setdefault(progress["batchId"], _Batch()).progress = progress
        elif kind == "SparkListenerJobStart":
            number = (event.get("Properties") or {}).get("streaming.sql.batchId")
            if number is not None:
                batch = batches.setdefault(int(number), _Batch())
                batch.jobs[event["Job ID"]] = event["Submission Time"]
                batch_of_stage.update(dict.fromkeys(event["Stage IDs"], batch))
        elif kind == "SparkListenerTaskEnd":
            known = last_task.get(event["Stage ID"])
            if known is None or _finish(event) >= _finish(known):
                last_task[event["Stage ID"]] = event
        elif kind == "SparkListenerStageCompleted":
            info = event["Stage Info"]
            number = info["Stage ID"]
            if number in batch_of_stage and number in last_task:
                batch_of_stage[number].stages.append(
                    _Stage(_steps(info), info["Submission Time"], info["Completion Time"],
                           last_task.pop(number))
                )  # fmt: skip
    return list(batches.values())


def _events(lines: Iterable[str]) -> Iterable[Mapping[str, Any]]:
    for line in lines:
        try:
            yield json.loads(line)
        except ValueError:  # the last line of a log that is being written
            continue


def _finish(task: Mapping[str, Any]) -> int:
    finish: int = task["Task Info"]["Finish Time"]
    return finish


def _steps(info: Mapping[str, Any]) -> str:
    """The steps that counted rows in a stage: their counters are named after them."""
    names = (a["Name"].split() for a in info["Accumulables"] if "Name" in a)
    return " ".join(dict.fromkeys(words[1] for words in names if words[0] == "headgate"))


def _parts(stage: _Stage, before: int) -> dict[str, float]:
    info, metrics = stage.last["Task Info"], stage.last["Task Metrics"]
    counted = {a["Name"]: float(a["Update"]) for a in info["Accumulables"] if _is_time(a)}
    launched, finished = info["Launch Time"], info["Finish Time"]
    deserialise, run = metrics["Executor Deserialize Time"], metrics["Executor Run Time"]
    load, commit = counted.get(_LOAD, 0.0), counted.get(_COMMIT, 0.0)
    shuffle = counted.get(_SHUFFLE, 0.0) / 1e6
    # Headgate's steps count from the loading of state to the last row
    until_last_row = counted.get(_UPDATE, run - shuffle)
    rows = max(0.0, until_last_row - load)
    return {
        "wait": launched - before,
        "deserialise": deserialise,
        "open state": load,
        "rows": rows,
        "commit state": commit,
        "write": max(0.0, run - load - rows - commit),
        "result": max(0.0, finished - launched - deserialise - run) + stage.completed - finished,
    }


def _is_time(accumulable: Mapping[str, Any]) -> bool:
    return accumulable.get("Name") in (_LOAD, _UPDATE, _COMMIT, _SHUFFLE)


def _durations(batch: _Batch) -> Mapping[str, float]:
    assert batch.progress is not None
    durations: Mapping[str, float] = batch.progress["durationMs"]
    return durations


def _of(keys: tuple[str, ...]) -> Callable[[_Batch], float]:
    return lambda batch: sum(_durations(batch).get(key, 0) for key in keys)


def _median(batches: list[_Batch], value: Callable[[_Batch], float]) -> float:
    return statistics.median(map(value, batches))
