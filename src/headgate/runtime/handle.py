"""A job started from Python: it runs in a thread of its own, and the handle stops it."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headgate.base.durations import Duration, parse_duration
from headgate.base.errors import HeadgateError, NotFoundError
from headgate.home.layout import Home
from headgate.home.operations import Operations
from headgate.runtime.own_session import session_for_job
from headgate.runtime.progress_view import progress_html, progress_line
from headgate.runtime.run import RunOutcome, run
from headgate.runtime.signals import StopRequest
from headgate.snapshots.savepoints import create_savepoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.graph.definition import JobDefinition

_POLL_SECONDS = 0.05


class RunHandle:
    """A running job; returned by `hg.start`.

    >>> handle = hg.start(store, home="home")
    """

    def __init__(
        self,
        job: JobDefinition,
        spark: SparkSession | None,
        params: Mapping[str, str],
        home: str | None,
        name: str | None = None,
        **options: Any,
    ) -> None:
        self._stop = StopRequest()
        self._home = Home(home).job(name or job.name)
        self._outcome: RunOutcome | None = None
        self._error: BaseException | None = None

        def work() -> None:
            try:
                self._outcome = run(
                    job, home=home, name=name, params=params, spark=spark, stop=self._stop,
                    **options,
                )  # fmt: skip
            except BaseException as error:  # raised in the thread that waits
                self._error = error

        self._thread = threading.Thread(target=work, name=f"headgate-{job.name}", daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether the job is still running.

        >>> handle.running
        True
        """
        return self._thread.is_alive()

    def __repr__(self) -> str:
        """How the job is.

        >>> handle
        <RunHandle job store: ..., run r1, checkpoint ck:...>
        """
        return f"<RunHandle {progress_line(self._home, running=self.running, error=self._failure)}>"

    def _repr_html_(self) -> str:
        """How the job is, with its steps, where a notebook shows the handle."""
        return progress_html(self._home, running=self.running, error=self._failure)

    @property
    def _failure(self) -> BaseException | None:
        return self._error or (self._outcome.error if self._outcome else None)

    def savepoint(self, label: str | None = None) -> str:
        """Make a savepoint of the latest checkpoint while the job runs, and return its name.

        >>> handle.savepoint("before_v2")
        'sp:before_v2'
        """
        operations = Operations(self._home)
        requested = operations.request("savepoint", {"label": label} if label else {})
        while self.running:
            record = operations.read(requested.id)
            if record.ended:
                if record.state == "done" and record.result is not None:
                    return f"sp:{record.result['label']}"
                raise HeadgateError(
                    f"there is no savepoint: {record.message}",
                    code="OPERATION",
                    remedy="ask again when its cause is gone",
                )
            self._thread.join(_POLL_SECONDS)
        record = operations.cancel(requested.id)  # a job that has ended takes no requests
        if record.state == "done" and record.result is not None:
            return f"sp:{record.result['label']}"
        current = self._home.current()
        if current is None:
            raise NotFoundError(
                f"job '{self._home.name}' has no run", remedy="wait() says why it ended"
            )
        return f"sp:{create_savepoint(current, label=label).label}"

    def stop(self, *, savepoint: bool = True, drain: bool = False) -> str | None:
        """Finish the current batch and stop; the next start continues from there.

        With `drain`, everything in the sources is read first, and then event time ends: every
        window closes, and rows that arrive later are too late. Returns the savepoint's name for
        `restore` and `--from`, or None if you did not want one or the job has no checkpoint yet.

        >>> handle.stop(savepoint=False)
        >>> handle.running
        False
        """
        self._stop.request("RunHandle.stop", savepoint=savepoint, drain=drain)
        self.wait()
        label = self._outcome.savepoint if self._outcome else None
        return f"sp:{label}" if label else None

    def wait(self, timeout: Duration | None = None) -> None:
        """Wait until the job has ended; raises the error that made it fail, or TimeoutError.

        >>> handle.wait("1 minute")
        """
        self._thread.join(None if timeout is None else parse_duration(timeout).total_seconds())
        if self._thread.is_alive():
            raise TimeoutError(f"the job still runs after {timeout}")
        if (failure := self._failure) is not None:
            raise failure


def start(
    job: JobDefinition,
    *,
    spark: SparkSession | None = None,
    restore: str | None = None,
    params: Mapping[str, str] | None = None,
    home: str | None = None,
    name: str | None = None,
    bounded: bool = False,
    drain: bool = False,
    fresh: bool = False,
    parallelism: int | None = None,
    conf: Mapping[str, str] | None = None,
    master: str | None = None,
    py_files: Sequence[str] | None = None,
    allow_dropped_state: bool = False,
    allow_duplicates: bool = False,
    accept_sink_position: bool = False,
    take_over: bool = False,
) -> RunHandle:
    """Start a job in this process; it resumes where it left off, or starts from a snapshot.

    The options are those of `headgate run`: `restore` is its `--from`, such as `"sp:before_v2"`;
    `conf` and `master` are for Spark. With `spark`, or in a process that has a session, the job
    runs in a copy of that session, with all its views and functions. What Headgate needs is added
    to the copy. `py_files` are modules, folders and archives for executors, by default the job's
    folder. A notebook shows a handle as a table with the job's state.

    >>> handle = hg.start(store, home="home", params={"orders": "log:orders"})
    >>> handle.stop(savepoint=False)
    >>> hg.start(store, home="home", bounded=True).wait()
    """
    return RunHandle(
        job,
        session_for_job(spark, master=master, conf=conf or {}),
        dict(params or {}),
        home,
        name,
        restore=restore,
        bounded=bounded,
        drain=drain,
        fresh=fresh,
        parallelism=parallelism,
        conf=conf,
        master=master,
        modules=None if py_files is None else [Path(file) for file in py_files],
        allow_dropped_state=allow_dropped_state,
        allow_duplicates=allow_duplicates,
        accept_sink_position=accept_sink_position,
        take_over=take_over,
    )
