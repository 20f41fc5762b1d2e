"""Errors that people read: one root, a code, what was expected, what came, and what to do."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import FrameType

from headgate.base.secrets import redact, redacted

_PACKAGE = str(Path(__file__).resolve().parents[1])


class ExitCode(int, Enum):
    """What the command line's exit code says."""

    DONE = 0
    FAILED = 1
    USAGE = 2
    NOT_FOUND = 3
    NOT_IN_TIME = 4
    REFUSED = 5
    INTERRUPTED = 130


@dataclass(frozen=True)
class Location:
    """A line of the user's own code."""

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def user_location() -> Location | None:
    """The innermost line on the stack that is not Headgate's: where the user wrote the step."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((_PACKAGE, "<")) and "/pyspark/" not in file:
            return Location(file, frame.f_lineno)
        frame = frame.f_back
    return None


class HeadgateError(Exception):
    """Something the user can act on.

    Its code, a name such as NOT_FOUND, is that of its class unless you pass one. Each code has an
    entry in the documentation, which `headgate explain CODE` prints too.

    >>> print(HeadgateError("the topic 'orders' does not exist", remedy="create it first"))
    the topic 'orders' does not exist: create it first
    """

    code = "HEADGATE"
    exit_code = ExitCode.FAILED

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        step: str | None = None,
        expected: str | None = None,
        got: str | None = None,
        remedy: str | None = None,
        location: Location | None = None,
    ) -> None:
        # addresses and values that came may have passwords in them
        self.message = redact(message)
        if code is not None:
            self.code = code
        self.step = step
        self.expected = redacted(expected)
        self.got = redacted(got)
        self.remedy = redacted(remedy)
        self.location = location
        super().__init__(str(self))

    def __str__(self) -> str:
        text = f"step '{self.step}': {self.message}" if self.step else self.message
        if self.expected is not None:
            text += f" (expected {self.expected}"
            text += f", got {self.got})" if self.got is not None else ")"
        elif self.got is not None:
            text += f", got {self.got}"
        if self.remedy:
            text += f": {self.remedy}"
        if self.location:
            text += f" [{self.location}]"
        return text


class StorageError(HeadgateError):
    """A file of the home could not be read or written, because of its disk or store.

    >>> from headgate.home.files import open_files
    >>> open_files("/dev/null/home").write_text("job.json", "{}")
    Traceback (most recent call last):
    headgate.base.errors.StorageError: cannot write /dev/null/home/job.json: a file is where ...
    """

    code = "STORAGE"


class UsageError(HeadgateError):
    """A wrong option, argument, parameter or configuration value.

    >>> hg.Checkpoints(retain=0)
    Traceback (most recent call last):
    headgate.base.errors.UsageError: Checkpoints.retain must be at least 1, got 0: keep one or more
    """

    code = "USAGE"
    exit_code = ExitCode.USAGE


class GraphError(HeadgateError):
    """The job's graph is not valid. Nothing was started.

    >>> hg.sliding("1 minute", every="1 hour")
    Traceback (most recent call last):
    headgate.base.errors.GraphError: every must be at most the size of the windows, 1 minute, ...
    """

    code = "INVALID_GRAPH"
    exit_code = ExitCode.USAGE


class NotFoundError(HeadgateError):
    """A job, topic, file or snapshot does not exist.

    >>> hg.start(store, home="home", restore="sp:before_v2").wait()
    Traceback (most recent call last):
    headgate.base.errors.NotFoundError: job 'store' has no savepoint 'before_v2': ...
    """

    code = "NOT_FOUND"
    exit_code = ExitCode.NOT_FOUND


class RefusedError(HeadgateError):
    """Headgate refuses to do this without an explicit option: state or output would be at risk.

    >>> t = job_driver(store)
    >>> t.send("orders", {"id": 7}).run().savepoint("before_v2")
    'sp:before_v2'
    >>> t.savepoint("before_v2")
    Traceback (most recent call last):
    headgate.base.errors.RefusedError: ...before_v2...
    """

    code = "REFUSED"
    exit_code = ExitCode.REFUSED


class JobFailedError(HeadgateError):
    """The job ran and failed.

    >>> try:
    ...     _ = job_driver(store).send("orders", "not JSON").run()
    ... except hg.JobFailedError as error:
    ...     print(f"{error.step}: {error.remedy}")
    orders: fix the producer, or set such records aside with malformed='side'
    """

    code = "JOB_FAILED"
    exit_code = ExitCode.FAILED
