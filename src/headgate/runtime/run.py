"""One start of a job, from the lease to the stop: what ``headgate run`` does."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from headgate.base.durations import format_duration
from headgate.base.errors import (
    HeadgateError,
    JobFailedError,
    NotFoundError,
    RefusedError,
    StorageError,
)
from headgate.base.params import recorded, references
from headgate.base.secrets import scrub
from headgate.failures import Reason
from headgate.home.layout import Home, RunHome
from headgate.home.model import CheckpointRecord, EventRecord
from headgate.runtime.blame import kafka_reads, name_broker
from headgate.runtime.configuration import configuration
from headgate.runtime.drive import Drive, LeaseLostError
from headgate.runtime.ending import (
    delete_run,
    ending_details,
    last_savepoint,
    not_drained,
    not_readable,
)
from headgate.runtime.fencing import Fences
from headgate.runtime.home_probe import HomeProbe
from headgate.runtime.lease import Lease
from headgate.runtime.live import Display, SilentDisplay
from headgate.runtime.operation_queue import OperationQueue
from headgate.runtime.options import RunOptions, RunOutcome, default_parallelism, versions
from headgate.runtime.outputs import Outputs
from headgate.runtime.patience import Patience
from headgate.runtime.records import Recorder
from headgate.runtime.restarts import Failed, GiveUp, Restarts
from headgate.runtime.restore_services import restore_services
from headgate.runtime.resume import Chosen, Start, StartRequest, choose_parallelism, choose_run
from headgate.runtime.signals import Signals, shielded_children, signals
from headgate.runtime.stopping import Resume, StopPlan, StopRequest
from headgate.runtime.supervisor import Ended
from headgate.runtime.topics import JobTopics, named_replaced
from headgate.runtime.waiting import WaitingWatch, watch_waiting
from headgate.runtime.waits import Waits
from headgate.snapshots.savepoints import SavepointRecord, create_savepoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.compile import CompiledJob
    from headgate.graph.definition import JobDefinition
    from headgate.graph.plan import BuiltJob

__all__ = ["RunOptions", "RunOutcome", "run"]

_WAIT_SECONDS = 0.1
# Spark tells of triggers without input once in this time: `checkpoint create` waits for one.
_IDLE_NEWS_MS = 1000


def run(
    job: JobDefinition,
    *,
    home: str | None = None,
    name: str | None = None,
    params: Mapping[str, str] | None = None,
    bounded: bool = False,
    drain: bool = False,
    fresh: bool = False,
    restore: str | None = None,
    allow_dropped_state: bool = False,
    parallelism: int | None = None,
    allow_duplicates: bool = False,
    accept_sink_position: bool = False,
    take_over: bool = False,
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
    3. Choose the run: resume, restore, fork for a changed graph, or new.
    4. Write the records that a killed driver left unwritten.
    5. Compile, start the query, write a record for each checkpoint, do what operations ask for.
    6. After a failure start the query again, as the job's restart strategy says.
    7. Stop between two batches on request; release the lease.
    """
    options = RunOptions(
        home=home,
        name=name,
        params=dict(params or {}),
        bounded=bounded,
        drain=drain,
        fresh=fresh,
        restore=restore,
        allow_dropped_state=allow_dropped_state,
        parallelism=parallelism,
        allow_duplicates=allow_duplicates,
        accept_sink_position=accept_sink_position,
        take_over=take_over,
        master=master,
        conf=dict(conf or {}),
        code=dict(code or {}),
    )
    stop_request = StopRequest() if stop is None else stop  # it is false until it is made
    start = _Start(job, options, stop_request, display or SilentDisplay(), on_event)
    return start.go(spark)


class _Start:
    """The state of one start while it happens."""

    lease: Lease
    patience: Patience
    operations: OperationQueue
    spark: SparkSession
    built: BuiltJob
    drive: Drive | None = None
    waits: Waits
    watch: WaitingWatch | None = None
    outcome: RunOutcome | None = None

    def __init__(
        self,
        job: JobDefinition,
        options: RunOptions,
        stop: StopRequest,
        display: Display,
        on_event: Callable[[EventRecord], None],
    ) -> None:
        self.job = job
        self.options = options
        self.stop = stop
        self.display = display
        self.on_event = on_event
        self.home = Home(options.home).job(options.name or job.name)
        self.restarts = Restarts(job.restart)
        self.written = 0
        self.began = time.monotonic()

    def go(self, spark: SparkSession | None) -> RunOutcome:
        with (
            Lease(self.home, say=self.display.say) as self.lease,
            self._patient(),
            signals(self.stop) as handler,
            self._operations(),
        ):
            parallelism = self._parallelism(self.options)
            own = spark is None and not self._has_session()
            self.spark = spark or self._session(parallelism, handler)
            try:
                self.outcome = self.patience.settle(
                    self._drive(parallelism),
                    for_good=self.job.restart.kind != "none",
                    stop=lambda: self.operations.stop_requested,
                )
                return self.outcome
            finally:
                if self.watch is not None:
                    self.watch.close()
                self.display.close()
                if own:
                    with suppress(Exception):  # a JVM that is gone need not be stopped
                        self.spark.stop()

    @contextmanager
    def _patient(self) -> Iterator[None]:
        """From here on a full disk ends nothing: what only tells of the job waits for room."""
        self.patience = Patience(self.home, self.lease, self.display.say)
        self.lease.on_beat = self.patience.beat
        self.home = self.patience.home
        with self.patience.kept():
            yield

    @contextmanager
    def _operations(self) -> Iterator[None]:
        """Serve operations while the job runs; at the end, answer all that are still waiting."""
        self.operations = OperationQueue(
            self.home,
            self.stop,
            token=self.lease.owner.token,
            savepoint=self._savepoint,
            checkpoint=lambda when: self.drive.checkpoint_since(when) if self.drive else None,
        )
        self.operations.open()
        try:
            yield
        finally:
            if self.lease.held:
                with suppress(HeadgateError):  # the error that ended the job matters, not this one
                    self.operations.close(self.outcome.how if self.outcome else "failed")

    @staticmethod
    def _has_session() -> bool:
        from headgate.runtime.session import has_session

        return has_session()

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

    def _drive(self, parallelism: int) -> RunOutcome:
        from headgate.jvm import DURABILITY
        from headgate.runtime.broker_check import prepare

        # Spark keeps what its last batches need; the oldest of them also needs the one before it
        retain = max(2, self.job.checkpoints.retain)
        self.spark.conf.set("spark.sql.streaming.minBatchesToRetain", str(retain))
        self.spark.conf.set(DURABILITY, self.job.checkpoints.durability)
        self.spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", str(_IDLE_NEWS_MS))
        self.built = self.job.build(self.options.params, spark=self.spark)
        for warning in self.built.graph.warnings:
            self.display.say(f"warning: {warning}")
        self.waits = Waits(
            self.home,
            self.lease.owner.token,
            say=self.display.say,
            held=lambda: self.lease.held,
        )
        self.watch = watch_waiting(
            self.waits, self.built, self.spark, news=self._news, query=self._query
        )
        patient = self.job.restart.kind != "none"
        for change in prepare(self.built, self.spark, patient=patient):
            self.display.say(change)
        with (
            Fences(self.home, self.spark, self.lease.owner.token) as self.fences,
            HomeProbe(self.home, self.spark) as self.probe,
        ):
            self.probe.check(self._poll, stop=lambda: self.operations.stop_requested)
            drive = self._begin(self.options, parallelism)
            if self.operations.stop_requested:
                return self._end(drive, Ended("stopped"))
            try:
                return self._until_the_end(drive)
            except LeaseLostError as error:
                lost = JobFailedError(
                    f"job '{self.home.name}' was stopped at once because {error}",
                    remedy="see which process drives it now with headgate show",
                )
                assert self.drive is not None
                return self._outcome(self.drive, "failed", error=lost)

    def _until_the_end(self, drive: Drive) -> RunOutcome:
        """Watch the query; start it again after a failure, or elsewhere after a restart."""
        attempt = 0
        while True:
            started = partial(self._event, drive.run, "restarted", attempt=attempt)
            ended = drive.watch(started if attempt else _nothing)
            ended = named_replaced(drive, ended)
            if ended.error is not None and self._may_begin_anew(drive, ended.error):
                drive, attempt = self._anew(drive, ended.error), 0
                continue
            if ended.error is not None:
                failure = self._failed(drive, ended.error)
                if failure is not None:
                    return self._outcome(drive, "failed", error=failure)
                attempt = self.restarts.attempts
                if not self.operations.stop_requested:
                    continue
                ended = Ended("cancelled" if self.operations.now else "stopped")
            plan = self.operations.stop_plan
            if plan is None or plan.then is None:
                return self._end(drive, ended)
            drive, attempt = self._elsewhere(drive, plan, plan.then), 0

    def _parallelism(self, options: RunOptions) -> int:
        return choose_parallelism(
            self.home,
            options.parallelism,
            self._request(options),
            default=lambda: default_parallelism(options.master),
        )

    def _request(self, options: RunOptions) -> StartRequest:
        return StartRequest(
            fresh=options.fresh,
            restore=options.restore,
            allow_dropped_state=options.allow_dropped_state,
            allow_duplicates=options.allow_duplicates,
            accept_sink_position=options.accept_sink_position,
            own_job=self.job.name,
        )

    def _begin(self, options: RunOptions, parallelism: int) -> Drive:
        """Compile the job, choose its run, and say so."""
        from headgate.compile import compile_job

        self.spark.conf.set("spark.sql.shuffle.partitions", str(parallelism))
        compiled = compile_job(self.built, self.spark, parallelism=parallelism)
        topics = JobTopics(compiled)
        chosen = self._choose(compiled, topics, options, parallelism)
        self.fences.around(chosen.run)
        topics.keep(chosen.run)
        self.display.say(f"job {self.home.name}: {chosen.text}")
        if chosen.plan is not None and not chosen.plan.trivial:
            for line in chosen.plan.lines():
                self.display.say(line)
        for reset in chosen.resets:
            self.display.say(f"warning: {reset.source}: {reset.text}")
            self._event(
                chosen.run, "reset", source=reset.source, topics=list(reset.topics),
                message=reset.text,
            )  # fmt: skip
        recorder = Recorder(
            chosen.run, compiled.graph.sources, history=self.job.checkpoints.records_kept
        )
        recorder.recover()
        self.drive = Drive(
            compiled,
            chosen.run,
            recorder,
            every=self.job.checkpoints.interval,
            bounded=options.bounded,
            drain=options.drain,
            operations=self.operations,
            on_poll=self._poll,
            on_checkpoint=self._checkpoint,
            on_disk=self.job.checkpoints.durability == "disk",
            batch_limit=self.job.checkpoints.batch_limit,
            check=partial(topics.check, chosen.run),
        )
        if not self.stop:
            given = recorded(options.params, self.built.secrets)
            self._event(
                chosen.run,
                "started",
                how=chosen.how,
                bounded=options.bounded,
                master=self.spark.sparkContext.master,
                application=self.spark.sparkContext.applicationId,
                pid=os.getpid(),
                params=given,
                references=references(given),
                versions=versions(),
                config=configuration(
                    self.job,
                    options,
                    params=given,
                    parallelism=parallelism,
                    master=str(self.spark.sparkContext.master),
                    spark=dict(self.spark.sparkContext.getConf().getAll()),
                ),
            )
        return self.drive

    def _choose(
        self, compiled: CompiledJob, topics: JobTopics, options: RunOptions, parallelism: int
    ) -> Chosen:
        given = recorded(options.params, self.built.secrets)
        start = Start(compiled.graph, parallelism, given, versions(), options.code)
        outputs = Outputs(compiled, self.home)
        outputs.check(take_over=options.take_over)
        services = restore_services(compiled, outputs, topics)
        chosen = choose_run(self.home, start, self._request(options), services)
        if options.take_over and (taken := outputs.take_over(chosen.run)):
            self.display.say(taken)
        outputs.remember(chosen.run)
        return chosen

    def _poll(self) -> None:
        self.display.tick()
        if self.lease.lost is not None:
            raise LeaseLostError(self.lease.lost)
        self.patience.poll()
        self.probe.poll()
        self.operations.poll()

    def _news(self) -> object:
        """Something else whenever a trigger has ended."""
        drive = self.drive
        supervisor = drive.supervisor if drive else None
        return (id(drive), id(supervisor), supervisor.triggered if supervisor else None)

    def _query(self) -> Any:
        return self.drive.query if self.drive else None

    def _checkpoint(self, record: CheckpointRecord) -> None:
        self.written += 1
        self.display.checkpoint(record)

    def _failed(self, drive: Drive, error: Exception) -> HeadgateError | None:
        """Write the failure down; wait if the query is to be started again, else give it back."""
        from headgate import jvm

        failure = jvm.explain_failure(error)
        failure = name_broker(failure, kafka_reads(self.built))
        failure = self.patience.named(failure)
        if failure.reason is Reason.LEASE_LOST or self.lease.lost is not None:
            raise LeaseLostError(self.lease.lost or failure.sentence)
        with suppress(StorageError):  # the query was lost to the same disk: its start tries again
            drive.recorder.recover()
        failed = Failed(time.monotonic(), drive.next_batch, failure.reason)
        decision = (
            GiveUp("it was being stopped")
            if self.operations.stop_requested
            else self.restarts.after(failed)
        )
        self._event(
            drive.run,
            "failed",
            reason=failure.reason.name,
            message=failure.sentence,
            step=failure.step,
            remedy=failure.remedy,
            batch=drive.pending,
            frames=list(failure.frames),
            gives_up=decision.why if isinstance(decision, GiveUp) else None,
        )
        if isinstance(decision, GiveUp):
            explains = self.job.restart.kind != "none" and not self.operations.stop_requested
            why = f"; not started again, because {decision.why}" if explains else ""
            kind = RefusedError if failure.reason is Reason.HOME_UNSEEN else JobFailedError
            final = kind(failure.sentence + why, step=failure.step, remedy=failure.remedy)
            scrub(error)
            final.__cause__ = error
            return final
        strategy, delay = self.restarts.strategy.kind, decision.delay
        self._event(
            drive.run,
            "restarting",
            attempt=decision.attempt,
            delay_seconds=round(delay.total_seconds(), 3),
            strategy=strategy,
            reason=failure.reason.name,
        )
        self.display.say(f"failed: {failure.sentence}")
        self.display.say(f"restart {decision.attempt} ({strategy}) in {format_duration(delay)}")
        self._wait(delay)
        return None

    def _may_begin_anew(self, drive: Drive, error: Exception) -> bool:
        """Whether a failure is a topic that was made again, of sources that may lose records."""
        from headgate import jvm

        if (
            self.operations.stop_requested
            or jvm.explain_failure(error).reason is not Reason.TOPIC_REPLACED
        ):
            return False
        topics = JobTopics(drive.compiled)
        replaced = topics.replaced(drive.run)
        return bool(replaced) and all(topics.may_lose(source) for source in replaced)

    def _anew(self, drive: Drive, error: Exception) -> Drive:
        """Go on in a run that reads topics that were made again from their beginning."""
        from headgate import jvm

        drive.recorder.recover()
        failure = jvm.explain_failure(error)
        options = replace(self.options, fresh=False, restore=None, parallelism=None)
        try:
            new = self._begin(options, self._parallelism(options))
        except HeadgateError as problem:
            self._event(
                drive.run, "failed", reason=failure.reason.name, message=problem.message,
                step=failure.step, remedy=problem.remedy, batch=drive.pending, frames=[],
                gives_up=failure.sentence,
            )  # fmt: skip
            raise
        self._event(
            drive.run, "stopped", checkpoint=drive.last_checkpoint, reason=failure.sentence,
            savepoint=None,
        )  # fmt: skip
        return new

    def _wait(self, delay: timedelta) -> None:
        until = time.monotonic() + delay.total_seconds()
        while not self.operations.stop_requested and (
            time.monotonic() < until or self.patience.pending
        ):
            self._poll()
            time.sleep(max(0.0, min(_WAIT_SECONDS, until - time.monotonic())) or _WAIT_SECONDS)

    def _elsewhere(self, drive: Drive, plan: StopPlan, then: Resume) -> Drive:
        """Stop the run with a savepoint and go on from there, or from the requested snapshot."""
        saved, problem = last_savepoint(drive, plan)
        self._event(drive.run, "stopped", **ending_details(drive, plan, saved))
        options = replace(
            self.options,
            fresh=False,
            restore=then.restore or (f"sp:{saved.label}" if saved else None),
            parallelism=then.parallelism,
            allow_dropped_state=False,
            accept_sink_position=False,
        )
        self.restarts = Restarts(self.job.restart)
        try:
            if problem is not None:
                raise problem
            new = self._begin(options, self._parallelism(options))
        except HeadgateError as error:
            problem = error
            as_it_was = replace(options, restore=None, parallelism=None)
            new = self._begin(as_it_was, self._parallelism(as_it_was))
        result = {"run": new.run.id, "savepoint": saved.to_json() if saved else None}
        goes_on = f"the job goes on as it was: {problem}" if problem else None
        self.operations.end(plan, result=result, error=goes_on)
        return new

    def _end(self, drive: Drive, ended: Ended) -> RunOutcome:
        """Write down how the job ended, with a savepoint if one was requested."""
        plan = self.operations.stop_plan
        saved, problem = last_savepoint(drive, plan)
        problem = problem or not_drained(drive, plan)
        if warning := not_readable(drive, ended.how):
            self.display.say(f"warning: {warning}")
        self._event(drive.run, ended.how, **ending_details(drive, plan, saved))
        outcome = self._outcome(drive, ended.how, saved=saved)
        if plan is not None:
            result = {
                "run": outcome.run,
                "checkpoint": outcome.checkpoint,
                "savepoint": saved.to_json() if saved else None,
            }
            self.operations.end(plan, result=result, error=str(problem) if problem else None)
            if plan.operation is None:
                outcome = replace(outcome, error=problem)
        if ended.how == "cancelled" and self.job.checkpoints.on_cancel == "delete":
            delete_run(drive.run)
        return outcome

    def _savepoint(self, label: str | None) -> Mapping[str, Any]:
        if self.drive is None:
            raise NotFoundError("the job has not started yet", remedy="try again in a moment")
        return create_savepoint(self.drive.run, label=label).to_json()

    def _event(self, run: RunHome, kind: str, **details: Any) -> None:
        self.on_event(run.add_event(kind, **details))

    def _outcome(
        self,
        drive: Drive,
        how: str,
        *,
        saved: SavepointRecord | None = None,
        error: HeadgateError | None = None,
    ) -> RunOutcome:
        return RunOutcome(
            job=self.home.name,
            run=drive.run.id,
            how=how,
            checkpoint=drive.last_checkpoint,
            checkpoints=self.written,
            seconds=time.monotonic() - self.began,
            savepoint=saved.label if saved else None,
            error=error,
        )


def _nothing() -> None:
    pass
