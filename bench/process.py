"""Owns running an engine as a process of its own, with its memory measured and its end assured."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_POLL_SECONDS = 0.25
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE_MB = os.sysconf("SC_PAGE_SIZE") / 1024 / 1024


class EngineFailed(RuntimeError):
    """The engine's process did not end well."""


@dataclass(frozen=True)
class Finished:
    """What a process printed, and what it and its children used of the machine.

    `others_cpu_seconds` is what everything else on the machine used meanwhile: a bench on a busy
    machine measures the machine.
    """

    lines: list[str]
    peak_rss_mb: float
    cpu_seconds: float
    others_cpu_seconds: float
    marked_cpu_seconds: float = 0.0
    """What it used since it printed `STARTED`: its work without the start of the engine."""


STARTED = "STARTED"


def run_measured(
    command: Sequence[str],
    *,
    log: Path,
    env: Mapping[str, str] | None = None,
    on_line: Callable[[str], None] | None = None,
) -> Finished:
    """Run a command to its end; its standard error goes to the log file.

    The memory is the resident set of the whole process tree, summed, read four times a second.
    Whatever happens, no process of the tree is left behind.
    """
    log.parent.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    before = machine_cpu_seconds()
    with open(log, "w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env={**os.environ, **(env or {})},
            start_new_session=True,
        )
        watch = _Watch(process.pid)
        watch.start()
        try:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line.rstrip("\n"))
                if lines[-1] == STARTED:
                    watch.mark()
                if on_line is not None:
                    on_line(lines[-1])
            code = process.wait()
        finally:
            end_group(process)
            watch.stop()
    if code != 0:
        raise EngineFailed(f"{Path(command[0]).name} ended with {code}; see {log}\n{why(log)}")
    others = max(0.0, machine_cpu_seconds() - before - watch.cpu_seconds)
    used = watch.cpu_seconds
    return Finished(lines, watch.peak_rss_mb, used, others, used - watch.marked)


def progress_printer(name: str, total: int) -> Callable[[str], None]:
    """Shows the lines `PROGRESS <what> <count>` that an engine prints while it runs."""
    live = sys.stderr.isatty()

    def show(line: str) -> None:
        if not line.startswith("PROGRESS "):
            return
        _, what, count = line.split()
        of = f" of {total:,}" if what == "orders" else ""
        text = f"{name}: {int(count):,}{of} {what}"
        if live:
            print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
        else:
            print(text, file=sys.stderr, flush=True)

    return show


def tree_rss_mb(root: int) -> float:
    """The resident memory of a process and all its descendants, now."""
    return sum(use.pages for use in _tree(root).values()) * _PAGE_MB


def tree_cpu_seconds(root: int) -> dict[int, float]:
    """What a process and each of its descendants have used until now."""
    return {pid: use.ticks / _TICKS for pid, use in _tree(root).items()}


@dataclass(frozen=True)
class _Use:
    """What one process holds and has used, as the kernel counts it."""

    pages: int
    ticks: int


def _tree(root: int) -> dict[int, _Use]:
    """What a process and each of its descendants use."""
    children: dict[int, list[int]] = {}
    uses: dict[int, _Use] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as file:
                # The command name may hold spaces and brackets: split after its last bracket.
                fields = file.read().rsplit(")", 1)[1].split()
        except (OSError, IndexError):
            continue
        children.setdefault(int(fields[1]), []).append(int(entry))
        uses[int(entry)] = _Use(int(fields[21]), int(fields[11]) + int(fields[12]))
    found, todo = {}, [root]
    while todo:
        pid = todo.pop()
        if pid in uses:
            found[pid] = uses[pid]
        todo += children.get(pid, [])
    return found


def machine_cpu_seconds() -> float:
    """What all processes together have used since the machine began."""
    with open("/proc/stat", encoding="utf-8") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    # The fourth and fifth are idle time.
    return (sum(ticks) - ticks[3] - ticks[4]) / _TICKS


def why(log: Path) -> str:
    """The lines of a log that name a failure, or its last ones."""
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    named = [line for line in lines if "Exception" in line or "Error" in line]
    return "\n".join(line[:300] for line in (named or lines)[-8:])


class _Watch(threading.Thread):
    """Polls what a process tree uses until it is stopped."""

    def __init__(self, root: int) -> None:
        super().__init__(daemon=True)
        self._root = root
        self._stopped = threading.Event()
        self._ticks: dict[int, int] = {}
        self.peak_rss_mb = 0.0
        self.marked = 0.0

    @property
    def cpu_seconds(self) -> float:
        """CPU time of every process seen, as it was when last seen."""
        return sum(self._ticks.values()) / _TICKS

    def run(self) -> None:
        while not self._stopped.wait(_POLL_SECONDS):
            tree = _tree(self._root)
            # a process that was just forked still shows its parent's memory as its own
            pages = sum(use.pages for pid, use in tree.items() if pid in self._ticks)
            self.peak_rss_mb = max(self.peak_rss_mb, pages * _PAGE_MB)
            self._ticks.update((pid, use.ticks) for pid, use in tree.items())

    def mark(self) -> None:
        """Remember what was used until now."""
        self.marked = sum(use.ticks for use in _tree(self._root).values()) / _TICKS

    def stop(self) -> None:
        self._stopped.set()
        self.join()


def end_group(process: subprocess.Popen[str]) -> None:
    """Ends what is left of the process's own group; it was started as the leader of one."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
