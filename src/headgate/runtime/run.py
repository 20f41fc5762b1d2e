"""One start of a job, from the lease to the stop: what ``headgate run`` does."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headgate.errors import ExitCode, HeadgateError, JobFailedError, RefusedError, UsageError
from headgate.runtime.lease import Lease
from headgate.runtime.live import Display, SilentDisplay
from headgate.runtime.records import Recorder
from headgate.runtime.resume import Chosen, Start, choose_parallelism, choose_run
from headgate.runtime.signals import Signals, StopRequest, shielded_children, signals
from headgate.runtime.supervisor import Ended, Supervisor
from headgate.snapshots.fork import pending_batch
from headgate.snapshots.home import Home, RunHome
from headgate.snapshots.model import EventRecord

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.compile import CompiledJob
    from headgate.jobdef import JobDef

_LOCK_SECONDS = 60.0


@dataclass(frozen=True)
class RunOptions:
    """How a job is started."""

    home: str | None = None
    name: str | None = None
    params: Mapping[str, str] = field(default_factory=dict)
    bounded: bool = False
    fresh: bool = False
    parallelism: int | None = None
    allow_duplicates: bool = False
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    code: Mapping[str, str] = field(default_factory=dict)
    """Where the job's code is and its hash, for the run's record."""


@dataclass(frozen=True)
class RunOutcome:
    """How a start ended."""

    job: str
    run: str
    how: str
    """finished (bounded, all input read), stopped or failed."""
    checkpoint: int | None
    checkpoints: int
    seconds: float
    error: HeadgateError | None = None

    @property
    def exit_code(self) -> ExitCode:
        """What the command line exits with."""
        return self.error.exit_code if self.error else ExitCode.DONE


class _LeaseLostError(Exception):
    """Somebody else drives the job now: nothing more may be written."""


def run(
    job: JobDef,
    *,
    home: str | None = None,
    name: str | None = None,
    params: Mapping[str, str] | None = None,
    bounded: bool = False,
    fresh: bool = False,
    parallelism: int | None = None,
    allow_duplicates: bool = False,
    master: str | None = None,
    conf: Mapping[str, str] | None = None,
    code: Mapping[str, str] | None = None,
    spark: SparkSession | None = None,
    stop: StopRequest | None = None,
    display: Display | None = None,
    on_event: Callable[[EventRecord], None] = lambda event: None,
) -> RunOutcome:
    """Start a job and stay until it has ended; ``stop`` asks for the end from another thread.

    1. Take the job's lease, or refuse.
    2. Start Spark (unless a session is given) and build the job's graph.
    3. Choose the run: resume, fork for a changed graph, or new.
    4. Write the records that a killed driver left unwritten.
    5. Compile, start the query, write a record for each checkpoint.
    6. Stop between two batches when asked to; release the lease.
    """
    options = RunOptions(
        home=home,
        name=name,
        params=dict(params or {}),
        bounded=bounded,
        fresh=fresh,
        parallelism=parallelism,
        allow_duplicates=allow_duplicates,
        master=master,
        conf=dict(conf or {}),
        code=dict(code or {}),
    )
    wish = StopRequest() if stop is None else stop  # one that is not asked yet is false
    start = _Start(job, options, wish, display or SilentDisplay(), on_event)
    return start.go(spark)


class _Start:
    """The state of one start while it happens."""

    def __init__(
        self,
        job: JobDef,
        options: RunOptions,
        stop: StopRequest,
        display: Display,
        on_event: Callable[[EventRecord], None],
    ) -> None:
        if options.parallelism is not None and options.parallelism < 1:
            raise UsageError(
                "the parallelism is too small",
                expected="1 or more",
                got=str(options.parallelism),
                remedy="say how many state partitions the job has, for instance --parallelism 4",
            )
        self.job = job
        self.options = options
        self.stop = stop
        self.display = display
        self.on_event = on_event
        self.home = Home(options.home).job(options.name or job.name)
        self.written = 0
        self.began = time.monotonic()

    def go(self, spark: SparkSession | None) -> RunOutcome:
        with Lease(self.home) as lease, signals(self.stop) as handler:
            parallelism = choose_parallelism(
                self.home,
                self.options.parallelism,
                fresh=self.options.fresh,
                default=lambda: _default_parallelism(self.options.master),
            )
            own = spark is None
            if spark is None:
                spark = self._session(parallelism, handler)
            else:
                spark.conf.set("spark.sql.shuffle.partitions", str(parallelism))
            try:
                return self._drive(spark, lease, parallelism)
            finally:
                self.display.close()
                if own:
                    spark.stop()

    def _session(self, parallelism: int, handler: Signals | None) -> SparkSession:
        from headgate.runtime.session import get_session

        self.display.say("starting Spark")
        with shielded_children():
            spark = get_session(
                parallelism=parallelism, master=self.options.master, conf=self.options.conf
            )
        if handler is not None:
            handler.install()
        return spark

    def _drive(self, spark: SparkSession, lease: Lease, parallelism: int) -> RunOutcome:
        from headgate.compile import compile_job

        # Spark keeps what its last batches need; the oldest of them also needs the one before it
        retain = max(2, self.job.checkpoints.retain)
        spark.conf.set("spark.sql.streaming.minBatchesToRetain", str(retain))
        built = self.job.build(self.options.params, spark=spark)
        for warning in built.graph.warnings:
            self.display.say(f"warning: {warning}")
        compiled = compile_job(built, spark, parallelism=parallelism)
        with self._alone(spark):
            chosen = self._choose(compiled, parallelism)
            self.display.say(f"job {self.home.name}: {chosen.text}")
            recorder = Recorder(chosen.run, compiled.graph.sources)
            recorder.recover()
            if self.stop:
                return self._outcome(chosen.run, recorder, Ended("stopped"))
            self._event(
                chosen.run,
                "started",
                how=chosen.how,
                bounded=self.options.bounded,
                master=spark.sparkContext.master,
                application=spark.sparkContext.applicationId,
                pid=os.getpid(),
                params=dict(self.options.params),
                versions=versions(),
            )
            return self._end(compiled, chosen.run, recorder, lease)

    def _end(
        self, compiled: CompiledJob, run: RunHome, recorder: Recorder, lease: Lease
    ) -> RunOutcome:
        try:
            ended = self._watch(compiled, run, recorder, lease)
        except _LeaseLostError as error:
            lost = JobFailedError(
                f"job '{self.home.name}' was stopped at once because {error}",
                remedy="see which process drives it now with headgate show",
            )
            return self._outcome(run, recorder, Ended("failed"), lost)
        if ended.error is not None:
            return self._failed(run, recorder, ended.error)
        details: dict[str, Any] = {"checkpoint": recorder.last.id if recorder.last else None}
        if ended.how == "stopped":
            details["reason"] = self.stop.reason
        self._event(run, ended.how, **details)
        return self._outcome(run, recorder, ended)

    @contextmanager
    def _alone(self, spark: SparkSession) -> Iterator[None]:
        """Keep the JVM of another driver out: a killed one's lives on and may commit its batch."""
        from headgate import kernel

        path = self.home.lock_file
        if path is None:
            yield
            return
        if not kernel.hold_run_lock(spark, str(path), _LOCK_SECONDS):
            raise RefusedError(
                f"Spark of an earlier start of job '{self.home.name}' still runs after "
                f"{_LOCK_SECONDS:.0f} s and holds {path}",
                remedy="end that Java process, then start again",
            )
        try:
            yield
        finally:
            with suppress(Exception):  # a JVM that is gone holds nothing
                kernel.release_run_lock(spark, str(path))

    def _choose(self, compiled: CompiledJob, parallelism: int) -> Chosen:
        def batch_is_out(run: RunHome, batch: int) -> Sequence[str]:
            # Asked through the new graph: what it has no sink for it cannot write again either.
            out = compiled.committed_batches(job=self.home.name, run=run.id)
            return sorted(sink for sink, last in out.items() if last >= batch)

        return choose_run(
            self.home,
            Start(compiled.graph, parallelism, self.options.params, versions(), self.options.code),
            fresh=self.options.fresh,
            batch_is_out=batch_is_out,
            allow_duplicates=self.options.allow_duplicates,
        )

    def _watch(
        self, compiled: CompiledJob, run: RunHome, recorder: Recorder, lease: Lease
    ) -> Ended:
        from headgate import kernel

        def poll() -> None:
            self.display.tick()
            if lease.lost is not None:
                raise _LeaseLostError(lease.lost)

        def checkpoint(record: Any) -> None:
            self.written += 1
            self.display.checkpoint(record)

        def start(bounded: bool) -> Supervisor:
            query = compiled.start(
                job=self.home.name,
                run=run.id,
                journal=run.journal,
                checkpoint=run.spark,
                bounded=bounded,
                every=self.job.checkpoints.interval,
            )
            return Supervisor(
                query,
                recorder,
                self.stop,
                on_checkpoint=checkpoint,
                on_poll=poll,
                stop_after_batch=kernel.stop_after_batch,
            )

        supervisor: Supervisor | None = None
        try:
            supervisor = start(self.options.bounded)
            ended = supervisor.watch()
            if ended.how == "stopped" and pending_batch(run) is not None:
                # The stop met a trigger that had just begun. A stop on request leaves no batch
                # half done, so that the next start may bring a changed graph.
                supervisor = start(True)
                ended = supervisor.finish_one()
            return ended
        except (_LeaseLostError, HeadgateError):
            if supervisor is not None:
                supervisor.stop_now()
            raise
        except Exception as error:  # the JVM is gone, or Spark refused to start the query
            return Ended("failed", error)

    def _failed(self, run: RunHome, recorder: Recorder, error: Exception) -> RunOutcome:
        from headgate import kernel

        recorder.recover()
        reason, sentence, step, remedy = kernel.explain_failure(error)
        self._event(
            run,
            "failed",
            reason=reason,
            message=sentence,
            step=step,
            remedy=remedy,
            batch=pending_batch(run),
        )
        failure = JobFailedError(sentence, step=step, remedy=remedy)
        failure.__cause__ = error
        return self._outcome(run, recorder, Ended("failed", error), failure)

    def _event(self, run: RunHome, kind: str, **details: Any) -> None:
        self.on_event(run.add_event(kind, **details))

    def _outcome(
        self,
        run: RunHome,
        recorder: Recorder,
        ended: Ended,
        error: HeadgateError | None = None,
    ) -> RunOutcome:
        return RunOutcome(
            job=self.home.name,
            run=run.id,
            how=ended.how,
            checkpoint=recorder.last.id if recorder.last else None,
            checkpoints=self.written,
            seconds=time.monotonic() - self.began,
            error=error,
        )


def versions() -> dict[str, str]:
    """The versions that a run is made with."""
    return {
        "headgate": _version("headgate"),
        "spark": _version("pyspark"),
        "python": platform.python_version(),
    }


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def _default_parallelism(master: str | None) -> int:
    """A state partition a core of a local run; on a cluster say --parallelism."""
    if master and master.startswith("local[") and master[6:-1].isdigit():
        return int(master[6:-1])
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 4)
