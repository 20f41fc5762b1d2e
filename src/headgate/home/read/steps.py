"""Each step of a job with its counts, its state and its watermark at one checkpoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headgate.home.model import CheckpointRecord
from headgate.home.read.counts import StepCounts, step_counts, tables_of
from headgate.home.read.load import NO_LOAD, StepLoad, step_loads


@dataclass(frozen=True)
class StepFigures:
    """One step."""

    name: str
    kind: str
    named: bool
    is_counted: bool
    """Whether the record has counts of it: unnamed steps have none."""
    totals: StepCounts
    """Since the run's line of parents began."""
    batch: StepCounts
    """Of the checkpoint alone."""
    state_rows: int | None
    state_bytes: int | None
    watermark: datetime | None
    load: StepLoad = NO_LOAD
    """Of the checkpoint's batch."""


def step_figures(graph: Mapping[str, Any], record: CheckpointRecord | None) -> list[StepFigures]:
    """The steps of graph.json in their order, at a checkpoint."""
    steps = graph["steps"]
    tables = tables_of(steps)
    loads = step_loads(record)
    return [
        _figures(step, tables.get(str(step["id"]), ()), record, loads.get(str(step["id"]), NO_LOAD))
        for step in steps
    ]


def step_watermark(record: CheckpointRecord | None, role: str, name: str) -> datetime | None:
    """A source's own watermark, or a table's, and for the steps behind sources the job's."""
    if record is None or role == "sink":
        return None
    if role == "table" or (role == "source" and record.event_time is not None):
        own = record.event_time.sources.get(name) if record.event_time else None
        return own.watermark if own else None
    return record.watermark_after


def _figures(
    step: Mapping[str, Any],
    tables: tuple[str, ...],
    record: CheckpointRecord | None,
    load: StepLoad,
) -> StepFigures:
    name, kind = str(step["id"]), str(step["kind"])
    state = record.state.get(name, {}) if record else {}
    none = 0 if step["stateful"] else None
    added = record.rows.get(name, {}) if record else {}
    waited = added.get("waiting_added", 0) - added.get("waiting_removed", 0)
    return StepFigures(
        name=name,
        kind=kind,
        named=bool(step["named"]),
        is_counted=record is not None and name in record.totals,
        totals=step_counts(
            step, record.totals if record else {}, tables=tables, waiting=state.get("waiting")
        ),
        batch=step_counts(
            step,
            record.rows if record else {},
            tables=tables,
            waiting=waited if "waiting_added" in added else None,
        ),
        state_rows=state.get("rows", none),
        state_bytes=state.get("bytes", none),
        watermark=step_watermark(record, str(step["role"]), name),
        load=load,
    )
