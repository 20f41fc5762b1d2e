"""Model: everything that pages and REST show, read from the home alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from headgate.base.errors import HeadgateError, NotFoundError
from headgate.base.secrets import redact
from headgate.home.audit import audit
from headgate.home.layout import Home, JobHome, RunHome
from headgate.home.log_lines import EVERY_LINE, LogFilter, masked_text
from headgate.home.metric_files import Segment
from headgate.home.operations import OperationRecord, Operations
from headgate.home.read.over_time import caching
from headgate.home.read.run import RECENT, RunFigures
from headgate.home.read.series import TimeRange
from headgate.snapshots.snapshot import find_snapshot
from headgate.ui.model.checkpoint_detail import CheckpointDetail, checkpoint_detail
from headgate.ui.model.checkpoints import (
    CheckpointsView,
    RunLatest,
    checkpoints_view,
    run_latest,
)
from headgate.ui.model.configuration import ConfigurationView, configuration_view
from headgate.ui.model.exceptions import ExceptionsView, exceptions_view
from headgate.ui.model.history import CheckpointRow, History
from headgate.ui.model.jobs import JobsView, JobView, job_view, jobs_view
from headgate.ui.model.logs import LogPartView, LogsView, log_file, log_part, logs_view
from headgate.ui.model.operations import OperationsView, audit_view, operation_view
from headgate.ui.model.outputs import OutputsView, OutputView, output_view, outputs_view
from headgate.ui.model.over_time import OverTimeView, over_time_view
from headgate.ui.model.runs import RunsView, runs_view
from headgate.ui.model.savepoints import SavepointsView, savepoints_view
from headgate.ui.model.sizes import SizeBook
from headgate.ui.model.state import KeptState, StateView
from headgate.ui.model.watermarks import WatermarksView, watermarks_view

_RUN = re.compile(r"r[0-9]{1,9}")
DEFAULT_LIMIT = 50
_MOST_SEGMENTS = 60
"""Files of metrics that are remembered; a whole range of one job is 20 of them."""


class Model:
    """Reads jobs that run, stopped or crashed; an id that does not exist is NotFoundError.

    >>> Model(Home("memory://model_doc")).jobs().jobs
    ()
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        self._history = History()
        self._sizes = SizeBook()
        self._segments: dict[str, Segment] = {}

    def job_home(self, job: str) -> JobHome:
        """A job that exists: every id that comes from outside goes through here."""
        try:
            found = self.home.job(job)
        except HeadgateError:
            found = None
        if found is None or not found.exists():
            raise NotFoundError("there is no such job in this home", remedy="see /jobs/overview")
        return found

    def run_home(self, job: JobHome, run: str | None) -> RunHome | None:
        """A run that exists; the current one, else the newest, if none is named."""
        if run is None:
            return job.current() or next(reversed(job.runs()), None)
        if not _RUN.fullmatch(run) or run not in {known.id for known in job.runs()}:
            raise NotFoundError(f"job '{job.name}' has no such run", remedy="see its runs")
        return job.run(run)

    def jobs(self) -> JobsView:
        """Every job of the home."""
        return jobs_view(self.home.jobs(), redact(self.home.url))

    def job(self, job: str) -> JobView:
        """One job with its graph."""
        return job_view(self.job_home(job), self._history)

    def checkpoints(
        self,
        job: str,
        *,
        run: str | None = None,
        limit: int = DEFAULT_LIMIT,
        before: int | None = None,
    ) -> CheckpointsView:
        """Checkpoints of a run: counts, latest, summary, and the newest of the history."""
        found = self.job_home(job)
        at = self.run_home(found, run)
        return checkpoints_view(found, at, self._history, self._sizes, limit=limit, before=before)

    def checkpoint(self, job: str, id: int, *, run: str | None = None) -> CheckpointDetail:
        """One checkpoint by step and partition, with source offsets."""
        found = self.job_home(job)
        at = self.run_home(found, run)
        if at is None:
            raise NotFoundError(f"job '{found.name}' has no run", remedy="start the job first")
        return checkpoint_detail(found, at, id, self._sizes)

    def over_time(self, job: str, within: TimeRange, *, most: int) -> OverTimeView:
        """Metrics of a job in a range of time, with so many numbers each at most."""
        found = self.job_home(job)
        while len(self._segments) > _MOST_SEGMENTS:
            self._segments.pop(next(iter(self._segments)), None)
        return over_time_view(found, within, most=most, read=caching(found, self._segments))

    def savepoints(self, job: str) -> SavepointsView:
        """Every savepoint of a job."""
        return savepoints_view(self.job_home(job))

    def exceptions(self, job: str, *, limit: int = DEFAULT_LIMIT) -> ExceptionsView:
        """Failures of all runs of a job."""
        return exceptions_view(self.job_home(job), limit=limit)

    def watermarks(self, job: str) -> WatermarksView:
        """The job's watermark and its sources'."""
        found = self.job_home(job)
        return watermarks_view(found.name, self.run_home(found, None))

    def runs(self, job: str) -> RunsView:
        """Every run of a job, parents before their children."""
        return runs_view(self.job_home(job))

    def configuration(self, job: str) -> ConfigurationView:
        """What a job was last started with, and where each value came from."""
        found = self.job_home(job)
        return configuration_view(found.name, self.run_home(found, None))

    def outputs(self, job: str) -> OutputsView:
        """The sinks of a job."""
        found = self.job_home(job)
        return outputs_view(found.name, self.run_home(found, None))

    def output(self, job: str, sink: str, *, limit: int = DEFAULT_LIMIT) -> OutputView:
        """The newest records of a sink."""
        found = self.job_home(job)
        return output_view(found.name, self.run_home(found, None), sink, limit=limit)

    def logs(self, job: str) -> LogsView:
        """The log files of a job."""
        return logs_view(self.job_home(job))

    def log(
        self,
        job: str,
        file: str,
        *,
        limit: int = DEFAULT_LIMIT,
        before: int | None = None,
        after: int | None = None,
        of: LogFilter = EVERY_LINE,
    ) -> LogPartView:
        """Some lines of a log file, however large it is."""
        found = self.job_home(job)
        return log_part(found, file, limit=limit, before=before, after=after, of=of)

    def log_text(self, job: str, file: str) -> Iterator[str]:
        """All of a log file, piece by piece."""
        return masked_text(log_file(self.job_home(job), file))

    def state(self, job: str, *, snapshot: str = "latest") -> StateView:
        """Which state a snapshot has; reads none of it."""
        from headgate.state.shape import kept_states  # brings pyspark, which takes a second

        found = self.job_home(job)
        at = find_snapshot(self.home, snapshot, found.name)
        kept = [
            KeptState(
                str(one["step"]),
                str(one["kind"]),
                tuple(one["states"]),
                tuple(one["key"]),
                one["rows"],
                one["bytes"],
            )
            for one in kept_states(at)
        ]
        return StateView(found.name, at.name, tuple(kept))

    def operations(
        self, job: str, *, own: list[OperationRecord] | None = None, limit: int = DEFAULT_LIMIT
    ) -> OperationsView:
        """Operations of a job: its own, and those that this server runs for it."""
        found = self.job_home(job)
        operations = Operations(found)
        records = [*(own or []), *map(operations.read, operations.ids())]
        records.sort(key=lambda record: record.requested_at, reverse=True)
        audited = audit(found, limit=limit)
        return OperationsView(
            found.name,
            tuple(operation_view(record) for record in records[:limit]),
            tuple(audit_view(record) for record in reversed(audited)),
        )

    def history(self, run: RunHome, *, limit: int = RECENT) -> list[CheckpointRow]:
        """The newest checkpoints of a run in short, oldest first."""
        return self._history.rows(run, limit=limit)

    def latest(self, job: JobHome, figures: RunFigures) -> RunLatest:
        """The counts and the newest checkpoint of a run; reads no history."""
        return run_latest(job, figures, self._sizes)
