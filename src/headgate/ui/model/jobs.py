"""Jobs of a home: the list, and one job with its graph, its last failure and how to resume it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from headgate.base.durations import format_duration
from headgate.base.errors import HeadgateError
from headgate.graph.model import Graph
from headgate.home.layout import JobHome
from headgate.home.model import EventRecord
from headgate.home.times import now
from headgate.runtime.crash import Crash, resume_text
from headgate.runtime.status import STATES, JobStatus, job_status
from headgate.ui.model.graph import GraphView, graph_view
from headgate.ui.model.history import CheckpointRow, History
from headgate.ui.model.load import busy_share
from headgate.ui.model.resume_hint import ResumeHint, resume_hint
from headgate.ui.model.slow import Hint, hints
from headgate.ui.model.view import FlinkDuration, FlinkTime, IsoTime, Seconds, View, json_name

_HOUR = timedelta(hours=1)
_RECENT = 20
LIVE = ("INITIALIZING", "RUNNING", "RESTARTING")
"""States of a job that a process drives."""


@dataclass(frozen=True)
class WaitView(View):
    """Something that a job waits for."""

    kind: str
    """broker, executors or disk."""
    subject: str
    why: str
    since: IsoTime


@dataclass(frozen=True)
class JobSummary(View):
    """A job as the list shows it."""

    jid: str
    """As in Flink; here it is the job's name."""
    name: str
    state: str
    start_time: FlinkTime | None = field(metadata=json_name("start-time"))
    end_time: FlinkTime | None = field(metadata=json_name("end-time"))
    duration: FlinkDuration | None
    last_modification: FlinkTime | None = field(metadata=json_name("last-modification"))
    tasks: Mapping[str, int]
    """How many steps there are, and in which state."""
    run: str | None
    checkpoint: int | None
    checkpoint_at: IsoTime | None
    records_in_per_second: float | None
    records_out_per_second: float | None
    records_in: int | None
    records_out: int | None
    """Of all sources and all sinks since the run's line of parents began."""
    behind: int | None
    """Records that were there and are not in the newest checkpoint."""
    watermark: IsoTime | None
    watermark_lag: Seconds | None
    restarts: int
    """Since the last start."""
    restarts_last_hour: int
    waiting: tuple[WaitView, ...]
    """What its driver waits for now."""


@dataclass(frozen=True)
class JobsView(View):
    """Every job of the home."""

    home: str
    at: IsoTime
    jobs: tuple[JobSummary, ...]
    counts: Mapping[str, int]
    """How many jobs are in each state."""
    unreadable: Mapping[str, str]
    """Jobs whose files are damaged, and what is wrong."""


@dataclass(frozen=True)
class FailureView(View):
    """The last failure in short; the page of exceptions has all of it."""

    at: IsoTime
    reason: str
    message: str
    step: str | None
    remedy: str | None


@dataclass(frozen=True)
class CrashView(View):
    """A driver that is gone without a word."""

    message: str
    last_seen: IsoTime | None
    host: str | None
    pid: int | None
    checkpoint: int | None
    pending_batch: int | None
    """Started and not committed: the next start runs it again."""


@dataclass(frozen=True)
class DriverView(View):
    """The process that drives a job."""

    host: str
    pid: int
    heartbeat: IsoTime
    ttl: Seconds


@dataclass(frozen=True)
class LatencyView(View):
    """From the timestamps of records to the commit of a sink, over the last checkpoints."""

    sink: str
    p50_ms: int
    p99_ms: int
    records: int


@dataclass(frozen=True)
class JobView(View):
    """One job: its header, its graph, what is slow, and how to resume it if it does not run."""

    summary: JobSummary
    at: IsoTime
    state_text: str
    """The state in a sentence."""
    job_type: str
    parallelism: int | None
    master: str | None
    versions: Mapping[str, str]
    params: Mapping[str, str]
    code_file: str | None
    driver: DriverView | None
    graph: GraphView
    last_failure: FailureView | None
    crash: CrashView | None
    """Of a job that is CRASHED."""
    slow: tuple[Hint, ...]
    resume_hint: ResumeHint | None
    phases: Mapping[str, int]
    """Milliseconds of the newest checkpoint in each part of its work."""
    latency: tuple[LatencyView, ...]


def jobs_view(jobs: list[JobHome], home: str) -> JobsView:
    """The list."""
    counts = dict.fromkeys(STATES, 0)
    found: list[JobSummary] = []
    damaged: dict[str, str] = {}
    for job in jobs:
        try:
            found.append(summary(job, job_status(job)))
            counts[found[-1].state] += 1
        except HeadgateError as error:  # one damaged job must not hide the others
            damaged[job.name] = str(error)
    return JobsView(home, now(), tuple(found), counts, damaged)


def summary(job: JobHome, status: JobStatus) -> JobSummary:
    """One line of the list."""
    figures, record = status.figures, status.checkpoint
    start = status.started.at if status.started else None
    end = None if status.state in LIVE else _end(status)
    until = end or (now() if status.state in LIVE else None)
    steps = len(figures.graph["steps"]) if figures else 0
    return JobSummary(
        jid=job.name,
        name=job.name,
        state=status.state,
        start_time=start,
        end_time=end,
        duration=max(until - start, timedelta(0)) if until and start else None,
        last_modification=record.completed_at if record else status.since,
        tasks={"total": steps, status.state.lower(): steps},
        run=status.run.run if status.run else None,
        checkpoint=record.id if record else None,
        checkpoint_at=record.completed_at if record else None,
        records_in_per_second=status.records_in_per_second,
        records_out_per_second=status.records_out_per_second,
        records_in=figures.records_in if figures else None,
        records_out=figures.records_out if figures else None,
        behind=figures.behind if figures else None,
        watermark=figures.watermark if figures else None,
        watermark_lag=status.watermark_lag,
        restarts=status.restarts,
        restarts_last_hour=figures.restarts_since(now() - _HOUR) if figures else 0,
        waiting=tuple(WaitView(w.kind, w.subject, w.why, w.since) for w in status.waiting),
    )


def _end(status: JobStatus) -> datetime | None:
    """When it ended; a crash leaves no record, so the last sign of life."""
    if status.state != "CRASHED":
        return status.since
    last = status.checkpoint.completed_at if status.checkpoint else None
    return max(filter(None, [last, status.since]), default=None)


def job_view(job: JobHome, history: History) -> JobView:
    """One job, as its page shows it."""
    status = job_status(job)
    figures = status.figures
    graph = Graph.from_json(figures.graph) if figures else Graph(job.name, (), ())
    parallelism = status.run.parallelism if status.run else None
    rows = history.rows(figures.run, limit=_RECENT) if figures else []
    busy = busy_share(rows) if status.state == "RUNNING" else None
    drawn = graph_view(graph, status.checkpoint, parallelism=parallelism or 1, busy=busy)
    started = status.started.details if status.started else {}
    return JobView(
        summary=summary(job, status),
        at=now(),
        state_text=state_text(status),
        job_type="BATCH" if started.get("bounded") else "STREAMING",
        parallelism=parallelism,
        master=started.get("master"),
        versions={str(k): str(v) for k, v in (started.get("versions") or {}).items()},
        params=dict(status.run.params) if status.run else {},
        code_file=status.run.code.get("file") if status.run else None,
        driver=_driver(status),
        graph=drawn,
        last_failure=_failure(status.failure),
        crash=_crash(status.crash),
        slow=tuple(hints(drawn, rows, status)),
        resume_hint=_resume_hint(job, status),
        phases=dict(rows[-1].phases) if rows else {},
        latency=tuple(
            LatencyView(found.sink, found.p50_ms, found.p99_ms, found.records)
            for found in (figures.latencies() if figures else ())
        ),
    )


def state_text(status: JobStatus) -> str:
    """A job's state in a sentence."""
    where = f"its last checkpoint is ck:{status.checkpoint.id}" if status.checkpoint else (
        "it has no checkpoint yet"
    )  # fmt: skip
    sentences = {
        "CREATED": "it was never started, or its start was interrupted",
        "INITIALIZING": "a process has taken the job and is starting Spark",
        "RUNNING": "a process drives it",
        "RESTARTING": "it has failed and restarts after a delay",
        "STOPPED": f"it was stopped on request; {where}",
        "CANCELED": f"it was cancelled in the middle of a batch; {where}",
        "FINISHED": f"it has read everything in its sources; {where}",
        "FAILED": f"it has failed and was not restarted; {where}",
        "CRASHED": status.crash.sentence() if status.crash else where,
    }
    return sentences[status.state]


def _resume_hint(job: JobHome, status: JobStatus) -> ResumeHint | None:
    if status.state in LIVE:
        return None
    record = status.checkpoint
    if status.crash is not None and status.crash.pending is not None:
        return resume_hint(job, status.run, resume_text(job))
    if record is None:
        return resume_hint(job, status.run, "it starts from scratch, because it has no checkpoint")
    if record.event_time is not None and record.event_time.ended:
        text = (
            f"it resumes after ck:{record.id}, but a drain has ended its event time: new rows are "
            "too late for its windows, unless it starts with --fresh"
        )
        return resume_hint(job, status.run, text)
    ago = f", {format_duration(now() - record.completed_at)} old" if record.completed_at else ""
    lost = " nothing is lost or written twice" if status.state == "CRASHED" else ""
    text = f"it resumes after ck:{record.id}{ago}" + (f":{lost}" if lost else "")
    return resume_hint(job, status.run, text)


def _driver(status: JobStatus) -> DriverView | None:
    lease = status.lease
    if lease is None or status.state not in LIVE:
        return None
    ttl = timedelta(seconds=lease.ttl_seconds)
    return DriverView(lease.owner.host, lease.owner.pid, lease.heartbeat, ttl)


def _crash(crash: Crash | None) -> CrashView | None:
    if crash is None:
        return None
    return CrashView(
        crash.sentence(),
        crash.last_seen,
        crash.host,
        crash.pid,
        crash.checkpoint,
        crash.pending,
    )


def _failure(event: EventRecord | None) -> FailureView | None:
    if event is None:
        return None
    details = event.details
    return FailureView(
        event.at,
        str(details.get("reason")),
        str(details.get("message")),
        details.get("step"),
        details.get("remedy"),
    )


__all__ = ["LIVE", "CheckpointRow", "JobSummary", "JobView", "JobsView", "job_view", "jobs_view"]
