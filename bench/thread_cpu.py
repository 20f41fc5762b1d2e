"""Owns what the threads of an engine used of the processor, as /proc counts it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.process import machine_cpu_seconds, tree_cpu_seconds

_TICKS = os.sysconf("SC_CLK_TCK")
# Linux keeps 15 characters of a thread's name.
_GROUPS = {
    "JIT": ("C1 CompilerThre", "C2 CompilerThre", "Sweeper thread"),
    "GC": ("GC Thread", "ParGC Thread", "G1 ", "VM Thread"),
    "tasks": ("Executor task",),
    "stream": ("stream executio",),
    "scheduler": ("dag-scheduler-e", "dispatcher-", "task-result-get"),
    "Kafka": ("kafka-",),
}


@dataclass(frozen=True)
class Sample:
    """What a process tree and the machine have used until now, in CPU seconds."""

    tree: float
    machine: float
    threads: Mapping[tuple[int, int], tuple[str, float]]


@dataclass(frozen=True)
class Used:
    """What an engine, its threads by kind, and all other processes used between two samples."""

    engine: float
    others: float
    by_kind: Mapping[str, float]

    @property
    def jit(self) -> float:
        """What Java's compilers used."""
        return self.by_kind.get("JIT", 0.0)


def sample(root: int) -> Sample:
    """What a process and its descendants used until now."""
    by_process = tree_cpu_seconds(root)
    threads = {}
    for pid in by_process:
        threads.update(_threads(pid))
    return Sample(sum(by_process.values()), machine_cpu_seconds(), threads)


def used(before: Sample, after: Sample) -> Used:
    """The difference of two samples; threads that ended in between count for the engine alone."""
    engine = after.tree - before.tree
    kinds: dict[str, float] = {}
    for key, (name, seconds) in after.threads.items():
        began = before.threads.get(key, (name, 0.0))[1]
        kind = kind_of(name)
        kinds[kind] = kinds.get(kind, 0.0) + seconds - began
    return Used(engine, max(0.0, after.machine - before.machine - engine), kinds)


def kind_of(thread: str) -> str:
    """The kind of a thread by its name: a kind that is known, or the name without its number.

    >>> kind_of("C2 CompilerThre"), kind_of("Thread-4")
    ('JIT', 'Thread-')
    """
    for kind, names in _GROUPS.items():
        if thread.startswith(names):
            return kind
    return thread.rstrip("0123456789")


def _threads(pid: int) -> dict[tuple[int, int], tuple[str, float]]:
    found = {}
    for tid in _entries(Path(f"/proc/{pid}/task")):
        try:
            text = Path(f"/proc/{pid}/task/{tid}/stat").read_text(errors="replace")
        except OSError:  # it has just ended
            continue
        found[pid, tid] = parse_stat(text)
    return found


def parse_stat(text: str) -> tuple[str, float]:
    """A thread's name and its CPU seconds; the name may hold blanks and brackets."""
    head, tail = text.rsplit(")", 1)
    fields = tail.split()
    return head.split("(", 1)[1], (int(fields[11]) + int(fields[12])) / _TICKS


def _entries(folder: Path) -> Iterable[int]:
    try:
        return [int(name) for name in os.listdir(folder)]
    except OSError:
        return []
