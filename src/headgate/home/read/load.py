"""How the time of a batch and its rows were spread: by step, and over the tasks of each."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from headgate.home.model import CheckpointRecord

_FEW = 20
"""With fewer rows for each task it is chance which of them gets how many."""


@dataclass(frozen=True)
class StepLoad:
    """One step in one batch."""

    batch_share: float | None
    """The part of the batch in which the busiest task of its stages worked."""
    skew: float | None
    """The coefficient of variation of its rows over tasks; nothing where rows are too few."""
    together: tuple[str, ...]
    """Other steps in its stages: the time is theirs as well."""


NO_LOAD = StepLoad(None, None, ())


def step_loads(record: CheckpointRecord | None) -> dict[str, StepLoad]:
    """The load of each step that the stages of a record know.

    >>> from headgate.home.stages import Spread, StageRecord
    >>> stage = StageRecord(5, 50, 2, 60, 40, {"orders": Spread(100, 90, 8200), "found": None})
    >>> record = CheckpointRecord(1, "r1", "COMPLETED", "periodic", None, None, 80, stages=(stage,))
    >>> step_loads(record)["orders"]
    StepLoad(batch_share=0.5, skew=0.8, together=('found',))
    """
    if record is None:
        return {}
    longest: dict[str, int] = defaultdict(int)
    skew: dict[str, float | None] = {}
    others: dict[str, set[str]] = defaultdict(set)
    for stage in record.stages:
        for step, spread in stage.steps.items():
            longest[step] += stage.longest_ms
            others[step].update(stage.steps)
            if spread is not None and spread.rows >= _FEW * stage.tasks:
                skew[step] = spread.variation(stage.tasks)
    took = record.duration_ms
    return {
        step: StepLoad(
            min(1.0, ms / took) if took else None,
            skew.get(step),
            tuple(sorted(others[step] - {step})),
        )
        for step, ms in longest.items()
    }
