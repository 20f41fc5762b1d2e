"""Owns what benchmarks of several engines share: the figures of a run, their table, the report."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.process import Finished

# Above this share of the CPU for other processes, the machine was measured and not the engine.
_QUIET = 0.1


@dataclass(frozen=True)
class Round:
    """One run of one engine: `seconds` from the start of its job to the last commit.

    Where the job was run twice in one session, `seconds` are of the second time and
    `first_seconds` of the first.

    The CPU time is of the same work, from the start of the job on. It is what compares engines on
    a machine that others use: they make an engine wait, but do not make it compute more.
    """

    engine: str
    events: int
    seconds: float
    start_seconds: float
    cpu_seconds: float
    others_cpu_seconds: float
    peak_rss_mb: float
    same_rows: bool
    data: str = ""
    keys: int = 0
    first_seconds: float | None = None

    @property
    def events_per_second(self) -> float:
        """How fast it was."""
        return self.events / self.seconds

    @property
    def others_share(self) -> float:
        """How much of the CPU that was used went to other processes."""
        return self.others_cpu_seconds / max(1e-9, self.cpu_seconds + self.others_cpu_seconds)


def finished_round(
    engine: str, events: int, ran: Finished, phases: Mapping[str, float], *, same_rows: bool,
    data: str = "", keys: int = 0,
) -> Round:  # fmt: skip
    """The round of a process that has ended, and of its phases."""
    twice = "again" in phases
    return Round(
        engine, events, phases["again" if twice else "events"], phases["start"],
        ran.marked_cpu_seconds, ran.others_cpu_seconds, ran.peak_rss_mb, same_rows, data, keys,
        phases["events"] if twice else None,
    )  # fmt: skip


def best(rounds: Sequence[Round], engine: str) -> Round | None:
    """The engine's quickest round."""
    return min((r for r in rounds if r.engine == engine), key=lambda r: r.seconds, default=None)


def aligned(lines: Sequence[Sequence[str]]) -> list[str]:
    """A table with its first line as a head: names to the left, figures to the right.

    >>> aligned([("engine", "n"), ("a", "10")])
    ['engine   n', '----------', 'a       10']
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = []
    for first, *cells in lines:
        padded = [f"{cell:>{w}}" for cell, w in zip(cells, widths[1:], strict=True)]
        text.append("  ".join([f"{first:<{widths[0]}}", *padded]))
    return [text[0], "-" * len(text[0]), *text[1:]]


def not_quiet(name: str, round: Round) -> list[str]:
    """A line that says so if others used the machine."""
    if round.others_share <= _QUIET:
        return []
    return [
        f"note: the machine was not quiet during {name}: other processes took "
        f"{round.others_cpu_seconds:.0f} CPU seconds ({round.others_share:.0%}); run it again"
    ]


def write_report(folder: Path, name: str, found: Mapping[str, object]) -> None:
    """Keep what was found, with the machine that it was found on."""
    folder.mkdir(parents=True, exist_ok=True)
    machine = {
        "cpus": os.cpu_count(),
        "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
        "system": platform.system(),
        "python": platform.python_version(),
    }
    aside = folder / f"{name}.aside"
    text = json.dumps({"machine": machine, **found}, indent=2)
    aside.write_text(text + "\n", encoding="utf-8")
    aside.rename(folder / name)
