"""The home: jobs, their runs, and each run's graph, checkpoints and events (docs/format.md)."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from headgate.base.errors import NotFoundError, UsageError
from headgate.base.near import did_you_mean, or_else
from headgate.base.secrets import protect_address
from headgate.graph import formats as graph_formats
from headgate.home.changes import change_text
from headgate.home.checkpoint_log import CheckpointLog
from headgate.home.event_log import EventLog
from headgate.home.files import Files, json_text, open_files, parse_json, read_json, write_json
from headgate.home.model import CheckpointRecord, EventRecord, JobRecord, Parent, RunRecord
from headgate.home.times import now
from headgate.home.versions import VERSION, check_version

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_RUN = re.compile(r"r(\d+)")


def default_home() -> str:
    """The home's address: HEADGATE_HOME, else ``.headgate`` in the working directory."""
    return os.environ.get("HEADGATE_HOME") or ".headgate"


def check_job_name(name: str) -> str:
    """Give the name back if it can name a job's folder, else say what is wrong with it."""
    if not _NAME.fullmatch(name) or len(name) > 100:
        raise UsageError(
            "a job's name must be a letter, then letters, digits, '_', '-' or '.', at most 100 "
            "in all",
            got=repr(name),
            remedy="rename the job, for instance 'order_enrichment'",
        )
    return name


class Home:
    """All jobs under one folder or URL.

    >>> Home("/tmp/no_such_home").jobs()
    []
    """

    def __init__(self, url: str | os.PathLike[str] | None = None) -> None:
        protect_address(str(url or default_home()))
        self.files: Files = open_files(url if url is not None else default_home(), home=True)
        self.url = self.files.url

    def jobs(self) -> list[JobHome]:
        """Every job, by name."""
        names = (name for name in self.files.list("jobs") if _NAME.fullmatch(name))
        return [job for job in (JobHome(self, name) for name in names) if job.exists()]

    def job(self, name: str) -> JobHome:
        """One job's part of the home; it may not exist yet."""
        return JobHome(self, check_job_name(name))

    def find(self, prefix: str) -> JobHome:
        """The job of this name, or the only one whose name starts so."""
        jobs = self.jobs()
        exact = [job for job in jobs if job.name == prefix]
        found = exact or [job for job in jobs if job.name.startswith(prefix)]
        if len(found) == 1:
            return found[0]
        if found:
            several = ", ".join(job.name for job in found)
            raise UsageError(
                f"'{prefix}' is the start of several jobs: {several}",
                remedy="write more of the name",
            )
        names = [job.name for job in jobs]
        raise NotFoundError(
            f"there is no job '{prefix}' in {self.url}",
            remedy=or_else(did_you_mean(prefix, names), f"it has: {', '.join(names)}")
            if jobs
            else "the home has no jobs yet; start one with headgate run, or name another --home",
        )


class JobHome:
    """``jobs/<job>``: the job's record and runs."""

    def __init__(self, home: Home, name: str) -> None:
        self.home = home
        self.name = name
        self.files = home.files
        self.path = f"jobs/{name}"

    @property
    def lock_file(self) -> Path | None:
        """The file that Spark's driver process locks while it commits; local homes only."""
        return self.files.local(f"{self.path}/driver.lock")

    def exists(self) -> bool:
        """Whether the job was ever started."""
        return self.files.exists(f"{self.path}/job.json")

    def read(self) -> JobRecord:
        """The job's record; an empty one if the job was never started."""
        data = read_json(self.files, f"{self.path}/job.json")
        return JobRecord.from_json(data) if data else JobRecord(self.name)

    def change(self, decide: Callable[[JobRecord], JobRecord | None]) -> None:
        """Read, decide and write ``job.json`` with no other process between.

        ``decide`` may be asked more than once; nothing leaves the record as it is.
        """
        path = f"{self.path}/job.json"

        def changed(text: str | None) -> str | None:
            data = None if text is None else parse_json(text, self.files.location(path))
            new = decide(JobRecord.from_json(data) if data else JobRecord(self.name))
            return None if new is None else json_text(new.to_json())

        change_text(self.files, path, f"{self.path}/job.lock", changed)

    def own_id(self) -> str:
        """What tells this job from one of the same name in another home; a copy has the same.

        Sinks note it as the owner of their outputs. The caller holds the job's lease.
        """
        path = f"{self.path}/id.json"
        known = read_json(self.files, path)
        if known is None:
            known = {"version": VERSION, "id": uuid.uuid4().hex}
            write_json(self.files, path, known)
        check_version(known, "id.json")
        return str(known["id"])

    def set_current(self, run: str) -> None:
        """Make a run the one that ``headgate run`` resumes."""
        self.change(lambda old: JobRecord(old.name, run, old.lease))

    def runs(self) -> list[RunHome]:
        """Every run, oldest first."""
        numbers = []
        for name in self.files.list(f"{self.path}/runs"):
            match = _RUN.fullmatch(name)
            if match and self.files.exists(f"{self.path}/runs/{name}/run.json"):
                numbers.append(int(match[1]))
        return [RunHome(self, f"r{number}") for number in sorted(numbers)]

    def run(self, run: str) -> RunHome:
        """One run, by its id."""
        return RunHome(self, run)

    def current(self) -> RunHome | None:
        """The run that ``headgate run`` resumes."""
        run = self.read().current_run
        return RunHome(self, run) if run else None

    def new_run(
        self,
        *,
        graph: Mapping[str, Any],
        graph_fingerprint: str,
        parallelism: int,
        params: Mapping[str, str],
        versions: Mapping[str, str],
        code: Mapping[str, str],
        parent: Parent | None = None,
        fill: Callable[[RunHome], object] | None = None,
        out_until: int | None = None,
    ) -> RunHome:
        """Make the next run; ``fill`` prepares its Spark folder before the run counts as made.

        The caller holds the job's lease, so nobody else takes the same number.
        """
        taken = [
            int(match[1])
            for name in self.files.list(f"{self.path}/runs")
            if (match := _RUN.fullmatch(name))
        ]
        run = RunHome(self, f"r{max(taken, default=0) + 1}")
        write_json(self.files, f"{run.path}/graph.json", {"version": VERSION, **graph})
        if fill is not None:
            fill(run)
            self.files.sync(run.path)
        record = RunRecord(
            job=self.name,
            run=run.id,
            created_at=now(),
            parallelism=parallelism,
            graph_fingerprint=graph_fingerprint,
            params=dict(params),
            versions=dict(versions),
            code=dict(code),
            parent=parent,
            uid=uuid.uuid4().hex[:12],
            out_until=out_until,
        )
        # Last: a run without run.json is one whose making was cut short, and is passed over.
        write_json(self.files, f"{run.path}/run.json", record.to_json())
        return run


class RunHome:
    """``jobs/<job>/runs/<run>``: one line of checkpoints."""

    def __init__(self, job: JobHome, run: str) -> None:
        self.job = job
        self.id = run
        self.files = job.files
        self.path = f"{job.path}/runs/{run}"
        self.spark_path = f"{self.path}/spark"

    @property
    def spark(self) -> str:
        """Spark's checkpoint location of this run."""
        return self.files.location(self.spark_path)

    @property
    def journal(self) -> str:
        """Where the kernel leaves each batch's counts until they are in a record."""
        return self.files.location(f"{self.path}/journal")

    def read(self) -> RunRecord:
        """The run's record."""
        data = read_json(self.files, f"{self.path}/run.json")
        if data is None:
            raise NotFoundError(
                f"job '{self.job.name}' has no run {self.id} in {self.job.home.url}",
                remedy=f"it has: {', '.join(run.id for run in self.job.runs()) or 'no runs'}",
            )
        return RunRecord.from_json(data)

    def graph(self) -> dict[str, Any]:
        """The run's graph, as ``Graph.to_json`` gives it, also if an older version wrote it."""
        data = read_json(self.files, f"{self.path}/graph.json")
        if data is None:
            raise NotFoundError(
                f"run {self.id} of job '{self.job.name}' has no graph.json",
                remedy="restore the file from a backup, or start from nothing with --fresh",
            )
        check_version(data, "graph.json", newest=graph_formats.NEWEST)
        return dict(graph_formats.current(data))

    @cached_property
    def checkpoint_log(self) -> CheckpointLog:
        """The records of its checkpoints."""
        return CheckpointLog(self.files, self.path)

    def event_log(self) -> EventLog:
        """What has happened to it by now."""
        return EventLog(self.job, self.path)

    def checkpoint_ids(self) -> list[int]:
        """Checkpoints that have a record, oldest first; reads every pack of a long history."""
        return self.checkpoint_log.ids()

    def checkpoint(self, id: int) -> CheckpointRecord:
        """One checkpoint's record."""
        record = self.checkpoint_log.at(id)
        if record is None:
            ends = self.checkpoint_log.bounds()
            raise NotFoundError(
                f"run {self.id} of job '{self.job.name}' has no checkpoint ck:{id}",
                remedy=f"it has ck:{ends[0]} to ck:{ends[1]}" if ends else "it has none yet",
            )
        return record

    def record_at(self, id: int) -> CheckpointRecord | None:
        """A checkpoint's record if there is one."""
        return self.checkpoint_log.at(id)

    def pinned(self) -> list[int]:
        """Checkpoints that are kept whatever retention does, oldest first."""
        names = self.files.list(f"{self.path}/pinned")
        return [
            int(name)
            for name in names
            if name.isdigit() and self.files.exists(f"{self.path}/pinned/{name}/manifest.json")
        ]

    def pin_path(self, id: int) -> str:
        """Where a pinned checkpoint's files are."""
        return f"{self.path}/pinned/{id:010d}"

    def checkpoints(self, *, limit: int | None = None) -> list[CheckpointRecord]:
        """Records of checkpoints, oldest first; the last ``limit`` of them."""
        return self.checkpoint_log.last(limit)

    def latest_checkpoint(self) -> CheckpointRecord | None:
        """The newest checkpoint's record."""
        return self.checkpoint_log.newest()

    def write_checkpoint(self, record: CheckpointRecord) -> None:
        """Keep a checkpoint's record."""
        self.checkpoint_log.write(record)

    def events(self, *, limit: int | None = None) -> list[EventRecord]:
        """What happened to the run, oldest first; the last ``limit`` of it."""
        return self.event_log().events(limit)

    def add_event(self, kind: str, **details: Any) -> EventRecord:
        """Write down that something happened."""
        return self.event_log().add(kind, details)
