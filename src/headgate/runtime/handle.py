"""A job started from Python: it runs in a thread of its own, and the handle stops it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from headgate.durations import Duration, parse_duration
from headgate.errors import UsageError
from headgate.runtime.run import RunOutcome, run
from headgate.runtime.signals import StopRequest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.jobdef import JobDef


class RunHandle:
    """A running job."""

    def __init__(
        self, job: JobDef, spark: SparkSession | None, params: Mapping[str, str], home: str | None
    ) -> None:
        self._stop = StopRequest()
        self._outcome: RunOutcome | None = None
        self._error: BaseException | None = None

        def work() -> None:
            try:
                self._outcome = run(job, home=home, params=params, spark=spark, stop=self._stop)
            except BaseException as error:  # told to whoever waits
                self._error = error

        self._thread = threading.Thread(target=work, name=f"headgate-{job.name}", daemon=True)
        self._thread.start()

    def stop(self, *, savepoint: bool = False, drain: bool = False) -> str | None:
        """Finish the running batch and stop; the next start goes on from there."""
        if savepoint or drain:
            raise UsageError(
                "savepoints and drain are not in this version",
                remedy="stop() keeps the last checkpoint, and the next start resumes from it",
            )
        self._stop.ask("RunHandle.stop")
        self.wait()
        return None

    def wait(self, timeout: Duration | None = None) -> None:
        """Wait until the job has ended; raises what made it fail, or TimeoutError."""
        self._thread.join(None if timeout is None else parse_duration(timeout).total_seconds())
        if self._thread.is_alive():
            raise TimeoutError(f"the job still runs after {timeout}")
        if self._error is not None:
            raise self._error
        if self._outcome is not None and self._outcome.error is not None:
            raise self._outcome.error

    @property
    def running(self) -> bool:
        """Whether the job has not ended yet."""
        return self._thread.is_alive()


def start(
    job: JobDef,
    *,
    spark: SparkSession | None = None,
    restore: str | None = None,
    params: Mapping[str, str] | None = None,
    home: str | None = None,
) -> RunHandle:
    """Start a job in this process; it resumes where it was.

    Example: `handle = headgate.start(store, params={"orders": "log:data/orders"})`
    """
    if restore is not None:
        raise UsageError(
            "restoring from a chosen snapshot is not in this version",
            remedy="leave restore out: the job resumes from its latest checkpoint",
        )
    return RunHandle(job, spark, dict(params or {}), home)
