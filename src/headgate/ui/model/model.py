"""Model: everything that pages and REST show, read from the home alone."""

from __future__ import annotations

import re

from headgate.errors import HeadgateError, NotFoundError
from headgate.snapshots.home import Home, JobHome, RunHome
from headgate.ui.model.checkpoints import CheckpointsView, checkpoints_view
from headgate.ui.model.history import History
from headgate.ui.model.jobs import JobsView, JobView, job_view, jobs_view
from headgate.ui.model.sizes import SizeBook

_RUN = re.compile(r"r[0-9]{1,9}")
DEFAULT_LIMIT = 50


class Model:
    """Reads jobs that run, stopped or crashed; an id that does not exist is NotFoundError.

    >>> Model(Home("memory://model_doc")).jobs().jobs
    ()
    """

    def __init__(self, home: Home) -> None:
        self.home = home
        self._history = History()
        self._sizes = SizeBook()

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
        return jobs_view(self.home.jobs(), self.home.url)

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
