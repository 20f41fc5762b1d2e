"""The options of a start, its outcome, and the versions it ran with."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.base.errors import ExitCode, HeadgateError, UsageError
from headgate.base.secrets import protect_settings
from headgate.runtime.health import DEFAULT_LIMIT_SECONDS

if TYPE_CHECKING:
    from headgate.graph.definition import JobDefinition


@dataclass(frozen=True)
class RunOptions:
    """How a job is started."""

    home: str | None = None
    name: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    bounded: bool = False
    drain: bool = False
    """Whether a bounded run closes all windows at its end."""
    fresh: bool = False
    restore: str | None = None
    """The snapshot to start from; none for the job's own latest checkpoint."""
    allow_dropped_state: bool = False
    parallelism: int | None = None
    allow_duplicates: bool = False
    accept_sink_position: bool = False
    """Whether to go on behind what the sinks have, if the home is older than they are."""
    take_over: bool = False
    """Whether outputs that another home's job of the same name writes become this one's."""
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    """Where the job's code is and its hash, for the run's record."""
    modules: tuple[Path, ...] = ()
    """Modules, folders of them and archives that executors get."""
    savepoint_on_term: bool = False
    """Whether SIGTERM stops with a savepoint."""
    grace_seconds: float | None = None
    """How long a stop by SIGTERM may take; then the process ends in the middle of the batch."""

    health_port: int | None = None
    """Where /healthz and /readyz are answered."""
    health_limit_seconds: float = DEFAULT_LIMIT_SECONDS
    """How long checkpoints may stop before /healthz fails."""

    def __post_init__(self) -> None:
        protect_settings(self.conf)
        if self.parallelism is not None and self.parallelism < 1:
            raise UsageError(
                "parallelism must be 1 or more",
                got=str(self.parallelism),
                remedy="give the number of state partitions, for instance --parallelism 4",
            )
        if self.drain and not self.bounded:
            raise UsageError(
                "only a run that ends by itself can be drained",
                remedy="add --bounded, or drain a running job with headgate stop --drain",
            )
        if self.accept_sink_position and (self.fresh or self.restore is not None):
            raise UsageError(
                "--accept-sink-position is for a start that resumes the job's run",
                remedy="leave it out with --fresh and --from: their batch numbers start again",
            )
        if self.fresh and self.restore is not None:
            raise UsageError(
                f"a start is either from nothing (--fresh) or from a snapshot ({self.restore})",
                remedy="leave one of the two out",
            )


@dataclass(frozen=True)
class RunOutcome:
    """How a start ended."""

    job: str
    run: str
    how: str
    """finished (bounded, all input read), stopped, cancelled or failed."""
    checkpoint: int | None
    checkpoints: int
    seconds: float
    savepoint: str | None = None
    """The label of the savepoint with which it was stopped."""
    error: HeadgateError | None = None

    @property
    def exit_code(self) -> ExitCode:
        """What the command line exits with."""
        return self.error.exit_code if self.error else ExitCode.DONE


def versions() -> dict[str, str]:
    """The versions that a run is made with."""
    return {
        "headgate": _version("headgate"),
        "spark": _version("pyspark"),
        "python": platform.python_version(),
    }


def code_of(job: JobDefinition) -> tuple[Path, ...]:
    """The folder whose modules a job imports: that of its file; this one for a notebook's."""
    code = getattr(getattr(job, "function", None), "__code__", None)
    file = Path(code.co_filename) if code is not None else Path()
    return (file.parent if file.is_file() else Path.cwd(),)


def default_parallelism(master: str | None) -> int:
    """A state partition a core of a local run; on a cluster say --parallelism."""
    if master and master.startswith("local[") and master[6:-1].isdigit():
        return int(master[6:-1])
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 4)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"
