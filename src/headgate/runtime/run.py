"""One start of a job, from the lease to the stop: what ``headgate run`` does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from headgate.base.errors import HeadgateError, JobFailedError
from headgate.home.model import EventRecord
from headgate.runtime.drive import Drive, LeaseLostError
from headgate.runtime.ending import end_run
from headgate.runtime.execution import Execution
from headgate.runtime.fencing import Fences
from headgate.runtime.health import DEFAULT_LIMIT_SECONDS, HealthServer
from headgate.runtime.home_probe import HomeProbe
from headgate.runtime.launch import launch, parallelism_of
from headgate.runtime.lease import Lease
from headgate.runtime.live import Display, SilentDisplay
from headgate.runtime.metric_writer import MetricWriter
from headgate.runtime.operation_queue import OperationQueue
from headgate.runtime.options import RunOptions, RunOutcome, code_of
from headgate.runtime.patience import Patience
from headgate.runtime.query_failure import handle_failure
from headgate.runtime.relaunch import may_reread_topics, reread_topics, restart_elsewhere
from headgate.runtime.signals import Signals, shielded_children, signals
from headgate.runtime.stopping import StopRequest
from headgate.runtime.supervisor import Ended
from headgate.runtime.topics import named_replaced
from headgate.runtime.waiting import watch_waiting
from headgate.runtime.waits import Waits

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headgate.graph.definition import JobDefinition

__all__ = ["RunOptions", "RunOutcome", "run"]

# Spark reports triggers without input at most this often: `checkpoint create` waits for one.
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
    modules: Sequence[Path] | None = None,
    savepoint_on_term: bool = False,
    grace_seconds: float | None = None,
    health_port: int | None = None,
    health_limit_seconds: float = DEFAULT_LIMIT_SECONDS,
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
        modules=code_of(job) if modules is None else tuple(modules),
        savepoint_on_term=savepoint_on_term,
        grace_seconds=grace_seconds,
        health_port=health_port,
        health_limit_seconds=health_limit_seconds,
    )
    stop_request = StopRequest() if stop is None else stop  # it is false until it is made
    execution = Execution(job, options, stop_request, display or SilentDisplay(), on_event)
    return _run(execution, spark)


def _run(execution: Execution, spark: SparkSession | None) -> RunOutcome:
    with (
        _answering(execution),
        Lease(execution.home, say=execution.display.say) as execution.lease,
        _patient(execution),
        _measured(execution),
        signals(
            execution.stop,
            savepoint=execution.options.savepoint_on_term,
            grace=execution.options.grace_seconds,
        ) as handler,
        _operations(execution),
    ):
        execution.stop.starting = handler is not None
        parallelism = parallelism_of(execution, execution.options)
        own = spark is None and not _has_session()
        execution.spark = spark or _session(execution, parallelism, handler)
        try:
            _reach_home(execution)
            execution.outcome = execution.patience.settle(
                _drive(execution, parallelism),
                for_good=execution.job.restart.kind != "none",
                stop=lambda: execution.operations.stop_requested,
            )
            return execution.outcome
        except KeyboardInterrupt:
            own = False  # its JVM ends with this process, and sooner than a session stops
            raise
        finally:
            if execution.waiting is not None:
                execution.waiting.close()
            execution.display.close()
            if own:
                with suppress(Exception):  # a JVM that is gone need not be stopped
                    execution.spark.stop()


@contextmanager
def _answering(execution: Execution) -> Iterator[None]:
    """Answer a cluster's probes, if a port is given for it."""
    port = execution.options.health_port
    if port is None:
        yield
        return
    with HealthServer(execution.health, port, job=execution.home.name):
        yield


@contextmanager
def _patient(execution: Execution) -> Iterator[None]:
    """From here on a full disk ends nothing: what only tells of the job waits for room."""
    execution.patience = Patience(execution.home, execution.lease, execution.display.say)
    execution.lease.on_beat = execution.patience.beat
    execution.home = execution.patience.home
    with execution.patience.kept():
        yield


@contextmanager
def _measured(execution: Execution) -> Iterator[None]:
    """Keep the job's metrics over time; the last of them are written while the lease is held."""
    execution.metrics = MetricWriter(execution.home, ours=execution.lease.verify)
    try:
        yield
    finally:
        execution.metrics.close()


@contextmanager
def _operations(execution: Execution) -> Iterator[None]:
    """Serve operations while the job runs; at the end, answer all that are still waiting."""
    execution.operations = OperationQueue(
        execution.home,
        execution.stop,
        token=execution.lease.owner.token,
        savepoint=execution.savepoint,
        checkpoint=lambda when: execution.drive.checkpoint_since(when) if execution.drive else None,
    )
    execution.operations.open()
    try:
        yield
    finally:
        if execution.lease.held:
            with suppress(HeadgateError):  # the error that ended the job matters, not this one
                execution.operations.close(execution.outcome.how if execution.outcome else "failed")


def _has_session() -> bool:
    from headgate.runtime.session import has_session

    return has_session()


def _session(execution: Execution, parallelism: int, handler: Signals | None) -> SparkSession:
    from headgate.runtime.session import get_session

    execution.display.say("starting Spark")
    with shielded_children():
        spark = get_session(
            parallelism=parallelism, master=execution.options.master, conf=execution.options.conf
        )
    if handler is not None:
        handler.install()
    return spark


def _reach_home(execution: Execution) -> None:
    from headgate import jvm

    jvm.need_store(execution.spark, execution.home.home.url)


def _drive(execution: Execution, parallelism: int) -> RunOutcome:
    from headgate.jvm import DURABILITY
    from headgate.runtime.broker_check import prepare
    from headgate.runtime.travel import send_code
    from headgate.runtime.worker_check import check_workers

    # Spark keeps what its last batches need; the oldest of them also needs the one before it
    retain = max(2, execution.job.checkpoints.retain)
    execution.spark.conf.set("spark.sql.streaming.minBatchesToRetain", str(retain))
    execution.spark.conf.set(DURABILITY, execution.job.checkpoints.durability)
    execution.spark.conf.set("spark.sql.streaming.noDataProgressEventInterval", str(_IDLE_NEWS_MS))
    # before the job is built: what it makes of Python functions names the files that go with them
    send_code(execution.spark, execution.options.modules, execution.display.say)
    execution.built = execution.job.build(execution.options.params, spark=execution.spark)
    for warning in execution.built.graph.warnings:
        execution.display.say(f"warning: {warning}")
    waits = Waits(
        execution.home,
        execution.lease.owner.token,
        say=execution.display.say,
        held=lambda: execution.lease.held,
    )
    execution.waiting = watch_waiting(
        waits, execution.built, execution.spark, news=execution.last_trigger, query=execution.query
    )
    patient = execution.job.restart.kind != "none"
    for change in prepare(execution.built, execution.spark, patient=patient):
        execution.display.say(change)
    with (
        Fences(execution.home, execution.spark, execution.lease.owner.token) as execution.fences,
        HomeProbe(execution.home, execution.spark) as execution.probe,
    ):
        execution.probe.check(execution.poll, stop=lambda: execution.operations.stop_requested)
        if not execution.operations.stop_requested:
            check_workers(execution.spark, execution.display.say)
        drive = launch(execution, execution.options, parallelism)
        if execution.operations.stop_requested:
            return end_run(execution, drive, Ended("stopped"))
        try:
            return _until_the_end(execution, drive)
        except LeaseLostError as error:
            lost = JobFailedError(
                f"job '{execution.home.name}' was stopped at once because {error}",
                remedy="use headgate show to see which process is driving it now",
            )
            assert execution.drive is not None
            return execution.outcome_of(execution.drive, "failed", error=lost)


def _until_the_end(execution: Execution, drive: Drive) -> RunOutcome:
    """Watch the query; start it again after a failure, or elsewhere after a restart."""
    attempt = 0
    while True:
        started = partial(execution.event, drive.run, "restarted", attempt=attempt)
        ended = drive.watch(started if attempt else _nothing)
        ended = named_replaced(drive, ended)
        if ended.error is not None and may_reread_topics(execution, drive, ended.error):
            drive, attempt = reread_topics(execution, drive, ended.error), 0
            continue
        if ended.error is not None:
            failure = handle_failure(execution, drive, ended.error)
            if failure is not None:
                return execution.outcome_of(drive, "failed", error=failure)
            attempt = execution.restarts.attempts
            if not execution.operations.stop_requested:
                continue
            ended = Ended("cancelled" if execution.operations.now else "stopped")
        plan = execution.operations.stop_plan
        if plan is None or plan.then is None:
            return end_run(execution, drive, ended)
        drive, attempt = restart_elsewhere(execution, drive, plan, plan.then), 0


def _nothing() -> None:
    pass
