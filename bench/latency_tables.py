"""Owns the tables of the latency bench: times by stretch, and where a batch's time goes."""

from __future__ import annotations

from collections.abc import Sequence

from bench.batch_profile import STAGE_PARTS, Profile
from bench.latency_run import Outcome
from bench.rounds import aligned

_HEAD = ("engine", "job", "every ms", "orders/s", "warm-up s", "p50", "p90", "p99", "max ms",
         "CPU s", "JIT s", "others s", "of s")  # fmt: skip


def latencies(outcomes: Sequence[Outcome]) -> list[str]:
    """A line for each measured stretch; a void run shows no times."""
    lines: list[Sequence[str]] = [_HEAD]
    notes = []
    for outcome in outcomes:
        setting = outcome.setting
        for part in outcome.measured:
            void = outcome.verdict.void or part.spread is None
            times = ("void",) * 4
            if not void and part.spread is not None:
                found = part.spread
                times = tuple(f"{t:,.0f}" for t in (found.p50, found.p90, found.p99, found.max))
            lines.append(
                (setting.engine, setting.job, f"{setting.every_ms:,}", f"{setting.rate:,}",
                 str(part.warm_up), *times, f"{part.used.engine:.1f}", f"{part.used.jit:.1f}",
                 f"{part.used.others:.1f}", str(part.seconds))
            )  # fmt: skip
        if outcome.verdict.void:
            notes.append(f"void: {setting}: {outcome.verdict.reason()}")
    return [*aligned(lines), *notes]


def where_time_goes(found: Profile) -> list[str]:
    """A batch as a table: the driver's parts, then each stage with its parts."""
    lines: list[Sequence[str]] = [("median ms", "took", *STAGE_PARTS)]
    blank = ("",) * len(STAGE_PARTS)
    lines.append((f"batch of {found.rows:,.0f} rows ({found.batches} batches)",
                  f"{found.took:.0f}", *blank))  # fmt: skip
    for name, millis in found.driver.items():
        lines.append((f"  {name}", f"{millis:.0f}", *blank))
    for stage in found.stages:
        parts = [f"{stage.parts[part]:.0f}" for part in STAGE_PARTS]
        lines.append((f"  stage: {stage.steps}", f"{stage.took:.0f}", *parts))
    return aligned(lines)
