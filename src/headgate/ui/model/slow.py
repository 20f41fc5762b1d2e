"""What is slow now: the few things that keep a job from being faster, in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from headgate.base.durations import format_duration
from headgate.runtime.status import JobStatus
from headgate.ui.model.graph import GraphView
from headgate.ui.model.history import CheckpointRow
from headgate.ui.model.load import busy_share, level
from headgate.ui.model.view import View

_MANY_SECONDS = 10.0
_NAMED = 4


@dataclass(frozen=True)
class Hint(View):
    """One thing worth knowing, the most important first."""

    level: str
    """OK, LOW or HIGH, as Flink says of back pressure."""
    step: str | None
    text: str


def hints(graph: GraphView, rows: Sequence[CheckpointRow], status: JobStatus) -> list[Hint]:
    """What is slow in a running job; empty for one that does not run."""
    if status.state not in ("RUNNING", "RESTARTING"):
        return []
    found: list[Hint] = []
    share = busy_share(rows)
    if share is not None and level(share) == "HIGH":
        found.append(Hint("HIGH", None, _busy(share, rows[-1], graph)))
    rate = status.records_in_per_second or 0.0
    for node in graph.nodes:
        if node.behind:
            seconds = node.behind / rate if rate else None
            late = f", {format_duration(timedelta(seconds=seconds))} of work" if seconds else ""
            high = seconds is None or seconds > _MANY_SECONDS
            text = f"source '{node.id}' is behind by {node.behind:,} records{late}"
            found.append(Hint("HIGH" if high else "LOW", node.id, text))
        if node.waiting:
            text = f"{node.waiting:,} rows in '{node.id}' wait for their table row"
            found.append(Hint("LOW", node.id, text))
        if node.skew_level == "HIGH":
            text = f"rows of '{node.id}' are uneven: partitions differ by {node.skew:.0%}"
            found.append(Hint("LOW", node.id, text))
    time = status.checkpoint.event_time if status.checkpoint else None
    if time is not None and (reason := time.reason()):
        holder = time.holder()
        advice = time.advice()
        text = f"the watermark stands still: {reason}" + (f"; {advice}" if advice else "")
        found.append(Hint("LOW", holder[0] if holder else None, text))
    return sorted(found, key=lambda hint: hint.level != "HIGH")


def _busy(share: float, row: CheckpointRow, graph: GraphView) -> str:
    total = sum(row.phases.values())
    if not total:
        return f"batches take {share:.0%} of the time"
    phase, ms = max(row.phases.items(), key=lambda item: item[1])
    text = f"batches take {share:.0%} of the time; of the last one {phase} took {ms / total:.0%}"
    busiest = max(graph.nodes, key=lambda node: node.batch_share or 0.0, default=None)
    if busiest is None or not busiest.batch_share:
        return text
    steps = [one.id for one in graph.nodes if one.id in (busiest.id, *busiest.computed_with)]
    more = f" and {len(steps) - _NAMED} more" if len(steps) > _NAMED else ""
    names = ", ".join(steps[:_NAMED]) + more
    return f"{text}, and the stage of {names} {busiest.batch_share:.0%}"
