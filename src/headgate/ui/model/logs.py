"""What a job has printed: its log files, and lines of one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from headgate.base.errors import NotFoundError
from headgate.home.layout import JobHome
from headgate.home.log_lines import EVERY_LINE, Level, LogFilter, LogPart, read_back, read_on
from headgate.home.run_logs import logs
from headgate.ui.model.view import IsoTime, View

_NAME = "%Y%m%dT%H%M%S.%fZ.log"


@dataclass(frozen=True)
class LogFileView(View):
    """The log of one start of a job: what its driver, Spark and its functions printed."""

    name: str
    started: IsoTime
    size: int
    """In bytes."""


@dataclass(frozen=True)
class LogsView(View):
    """The log files of a job, the newest first."""

    job: str
    files: tuple[LogFileView, ...]
    """Of starts in the background; others print where they were started."""


@dataclass(frozen=True)
class LogLineView(View):
    """One line; secrets that its text shows by name or in an address are masked."""

    at: int
    """The byte of the file at which it begins."""
    text: str
    level: Level
    """debug, info, warn or error; empty where the line does not say."""
    cut: bool
    """Whether it is longer than what is shown."""


@dataclass(frozen=True)
class LogPartView(View):
    """Lines of a stretch of a log, in their order."""

    job: str
    file: str
    lines: tuple[LogLineView, ...]
    start: int
    """Ask with `before` for what is above; 0 if nothing is."""
    end: int
    """Ask with `after` for what comes; a last line without an end comes again, with its `at`."""
    size: int


def logs_view(job: JobHome) -> LogsView:
    """All log files of a job."""
    return LogsView(job.name, tuple(_file(file) for file in reversed(logs(job))))


def log_file(job: JobHome, name: str) -> Path:
    """The log file of this name; only names that are there are looked for."""
    for file in logs(job):
        if file.name == name:
            return file
    raise NotFoundError(f"job '{job.name}' has no such log", remedy="see its logs")


def log_part(
    job: JobHome,
    name: str,
    *,
    limit: int,
    before: int | None = None,
    after: int | None = None,
    of: LogFilter = EVERY_LINE,
) -> LogPartView:
    """Lines after a byte, else the last ones before a byte or before the end."""
    file = log_file(job, name)
    if after is not None:
        part = read_on(file, after=after, limit=limit, of=of)
    else:
        part = read_back(file, before=before, limit=limit, of=of)
    return _part(job.name, name, part)


def _part(job: str, name: str, part: LogPart) -> LogPartView:
    lines = (LogLineView(line.at, line.text, line.level, line.cut) for line in part.lines)
    return LogPartView(job, name, tuple(lines), part.start, part.end, part.size)


def _file(file: Path) -> LogFileView:
    started = datetime.strptime(file.name, _NAME).replace(tzinfo=UTC)
    return LogFileView(file.name, started, file.stat().st_size)
