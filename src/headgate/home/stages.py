"""Where the time of a batch went: the stages that Spark ran, with the steps in each."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from math import sqrt
from typing import Any

from headgate.home.times import to_ms


@dataclass(frozen=True)
class Spread:
    """How rows of a step were spread over the tasks of its stage."""

    rows: int
    most: int
    """Of one task."""
    squares: float
    """The sum of squares of the tasks' rows."""

    def variation(self, tasks: int) -> float | None:
        """The coefficient of variation, by which Flink tells skew: 0 if all tasks had as many.

        >>> Spread(10, 5, 50).variation(2), Spread(10, 10, 100).variation(2)
        (0.0, 1.0)
        """
        if tasks < 2 or not self.rows:
            return None
        mean = self.rows / tasks
        return sqrt(max(0.0, self.squares / tasks - mean * mean)) / mean


@dataclass(frozen=True)
class StageRecord:
    """One stage of a batch. Steps that are computed together are in the same one."""

    at_ms: int
    """When it began, after the batch's trigger."""
    took_ms: int
    tasks: int
    run_ms: int
    """The time of all its tasks together."""
    longest_ms: int
    """The time of its longest task."""
    steps: Mapping[str, Spread | None] = field(default_factory=dict)
    """The steps that counted rows in it; nothing for one whose rows were counted in another."""

    def to_json(self) -> dict[str, Any]:
        """As it stands in a checkpoint's record."""
        return {
            "at_ms": self.at_ms,
            "took_ms": self.took_ms,
            "tasks": self.tasks,
            "run_ms": self.run_ms,
            "longest_ms": self.longest_ms,
            "steps": {
                name: [one.rows, one.most, one.squares] if one else None
                for name, one in self.steps.items()
            },
        }

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> StageRecord:
        """From what stands there."""
        return StageRecord(
            at_ms=int(data["at_ms"]),
            took_ms=int(data["took_ms"]),
            tasks=int(data["tasks"]),
            run_ms=int(data["run_ms"]),
            longest_ms=int(data["longest_ms"]),
            steps={
                str(name): Spread(int(one[0]), int(one[1]), float(one[2])) if one else None
                for name, one in data["steps"].items()
            },
        )


def stages_of_batch(
    reported: Iterable[Mapping[str, Any]], triggered: datetime | None, counted: Container[str]
) -> tuple[StageRecord, ...]:
    """Stages as the kernel tells of them (`StageTimes.scala`), in the order in which they began.

    `counted` are the steps that count rows: the kernel has other figures with names like theirs.
    """
    began = to_ms(triggered)
    if began is None:
        return ()
    found = (
        StageRecord(
            max(0, int(one["submitted_ms"]) - began),
            max(0, int(one["completed_ms"]) - int(one["submitted_ms"])),
            int(one["tasks"]),
            int(one["run_ms"]),
            int(one["longest_ms"]),
            {
                str(step): Spread(int(s["sum"]), int(s["most"]), float(s["squares"])) if s else None
                for step, s in one["steps"].items()
                if step in counted
            },
        )
        for one in reported
    )
    return tuple(sorted(found, key=lambda stage: stage.at_ms))
