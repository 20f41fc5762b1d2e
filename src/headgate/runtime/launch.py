"""Bring a run up: choose its parallelism and its run, compile the job, make its drive."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING

from headgate import jvm
from headgate.base.params import recorded, references
from headgate.base.still import still
from headgate.runtime.configuration import configuration
from headgate.runtime.drive import Drive
from headgate.runtime.execution import Execution
from headgate.runtime.options import RunOptions, default_parallelism, versions
from headgate.runtime.outputs import Outputs
from headgate.runtime.records import Recorder
from headgate.runtime.restore_services import restore_services
from headgate.runtime.resume import Chosen, Start, StartRequest, choose_parallelism, choose_run
from headgate.runtime.topics import JobTopics

if TYPE_CHECKING:
    from headgate.compile import CompiledJob


def parallelism_of(execution: Execution, options: RunOptions) -> int:
    """The number of partitions of the run that these options choose."""
    return choose_parallelism(
        execution.home,
        options.parallelism,
        _request(execution, options),
        default=lambda: default_parallelism(options.master),
    )


def launch(execution: Execution, options: RunOptions, parallelism: int) -> Drive:
    """Compile the job, choose its run, and say so."""
    from headgate import jvm
    from headgate.compile import compile_job

    if options.restore is not None:
        jvm.need_store(execution.spark, options.restore)  # it may be elsewhere than the home
    execution.spark.conf.set("spark.sql.shuffle.partitions", str(parallelism))
    compiled = compile_job(execution.built, execution.spark, parallelism=parallelism)
    topics = JobTopics(compiled)
    chosen = _choose(execution, compiled, topics, options, parallelism)
    execution.fences.around(chosen.run)
    topics.keep(chosen.run)
    execution.display.say(f"job {execution.home.name}: {chosen.text}")
    if chosen.plan is not None and not chosen.plan.trivial:
        for line in chosen.plan.lines():
            execution.display.say(line)
    for reset in chosen.resets:
        execution.display.say(f"warning: {reset.source}: {reset.text}")
        execution.event(
            chosen.run, "reset", source=reset.source, topics=list(reset.topics),
            message=reset.text,
        )  # fmt: skip
    recorder = Recorder(
        chosen.run,
        compiled.graph.sources,
        history=execution.job.checkpoints.records_kept,
        ours=execution.lease.verify,
    )
    recorder.recover()
    execution.metrics.begin(chosen.run)
    execution.drive = Drive(
        compiled,
        chosen.run,
        recorder,
        every=execution.job.checkpoints.interval,
        bounded=options.bounded,
        drain=options.drain,
        operations=execution.operations,
        on_poll=execution.poll_query,
        on_checkpoint=execution.checkpoint_written,
        on_disk=execution.job.checkpoints.durability == "disk",
        batch_limit=execution.job.checkpoints.batch_limit,
        check=partial(topics.check, chosen.run),
    )
    execution.stop.starting = False  # from here on Ctrl-C stops in order
    if not execution.stop:
        _record_start(execution, chosen, options, parallelism)
    return execution.drive


def _choose(
    execution: Execution,
    compiled: CompiledJob,
    topics: JobTopics,
    options: RunOptions,
    parallelism: int,
) -> Chosen:
    given = recorded(options.params, execution.built.secrets)
    start = Start(compiled.graph, parallelism, given, versions(), options.code)
    outputs = Outputs(compiled, execution.home)
    outputs.check(take_over=options.take_over)
    services = restore_services(compiled, outputs, topics)
    with still(execution.display.say, "getting the state ready"):
        chosen = choose_run(execution.home, start, _request(execution, options), services)
    if options.take_over and (taken := outputs.take_over(chosen.run)):
        execution.display.say(taken)
    outputs.remember(chosen.run)
    return chosen


def _request(execution: Execution, options: RunOptions) -> StartRequest:
    return StartRequest(
        fresh=options.fresh,
        restore=options.restore,
        allow_dropped_state=options.allow_dropped_state,
        allow_duplicates=options.allow_duplicates,
        accept_sink_position=options.accept_sink_position,
        own_job=execution.job.name,
    )


def _record_start(
    execution: Execution, chosen: Chosen, options: RunOptions, parallelism: int
) -> None:
    """Write down with what the run was started."""
    given = recorded(options.params, execution.built.secrets)
    execution.event(
        chosen.run,
        "started",
        how=chosen.how,
        bounded=options.bounded,
        master=execution.spark.sparkContext.master,
        application=execution.spark.sparkContext.applicationId,
        pid=os.getpid(),
        params=given,
        references=references(given),
        versions=versions(),
        config=configuration(
            execution.job,
            options,
            params=given,
            parallelism=parallelism,
            master=str(execution.spark.sparkContext.master),
            spark=jvm.settings(execution.spark),
        ),
    )
