"""``headgate run``: start a job and stay until it ends."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

import typer

from headgate.base.durations import format_duration
from headgate.base.handover import handed_over
from headgate.cli.app import load_app
from headgate.cli.common import Ui, command
from headgate.cli.options import SetOption, parse_params, parse_spark_flags
from headgate.home.layout import check_job_name


def register(app: typer.Typer) -> None:
    """Add the verb."""
    command(app, "run")(run_job)


def run_job(
    ui: Ui,
    app: Annotated[str, typer.Argument(metavar="APP", help="path/to/file.py or file.py:job.")],
    spark: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- SPARK_FLAGS]", help="Flags for Spark, such as --master."),
    ] = None,
    params: SetOption = None,
    bounded: Annotated[
        bool, typer.Option("--bounded", help="Read all that is there, then exit.")
    ] = False,
    drain: Annotated[
        bool, typer.Option("--drain", help="With --bounded: close all windows at the end.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="A new run from nothing; the old one is kept.")
    ] = False,
    snapshot: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SNAP",
            help="A new run from latest, ck:17, r1/ck:17, sp:label, JOB@SNAP or a path.",
        ),
    ] = None,
    allow_dropped_state: Annotated[
        bool,
        typer.Option("--allow-dropped-state", help="Start although a step's state is lost."),
    ] = False,
    parallelism: Annotated[
        int | None,
        typer.Option(
            "--parallelism", metavar="N", help="State partitions; another number starts a new run."
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="JOB", help="Run it as a job of this name.")
    ] = None,
    allow_duplicates: Annotated[
        bool,
        typer.Option(
            "--allow-duplicates",
            help="Start a changed graph although an unfinished batch is partly written.",
        ),
    ] = False,
    accept_sink_position: Annotated[
        bool,
        typer.Option(
            "--accept-sink-position",
            help="The home is older than its sinks: go on behind what they have.",
        ),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="Write outputs that a job of this name in another home has written.",
        ),
    ] = False,
) -> None:
    """Start a job; resumes where the same job stopped unless --from or --fresh."""
    flags = parse_spark_flags(spark)
    settings = parse_params([*(params or ()), *handed_over()])
    if name is not None:
        check_job_name(name)
    loaded = load_app(app)
    flags.export()

    from headgate.runtime.live import open_display
    from headgate.runtime.run import run

    outcome = run(
        loaded.job,
        home=ui.home.url,
        name=name,
        params=settings,
        bounded=bounded,
        drain=drain,
        fresh=fresh,
        restore=snapshot,
        allow_dropped_state=allow_dropped_state,
        parallelism=parallelism,
        allow_duplicates=allow_duplicates,
        accept_sink_position=accept_sink_position,
        take_over=take_over,
        master=flags.master,
        conf=flags.conf,
        code=loaded.code,
        display=open_display(quiet=ui.quiet, color=ui.color),
    )
    if outcome.error is not None:
        raise outcome.error
    took = format_duration(timedelta(seconds=outcome.seconds))
    where = f"ck:{outcome.checkpoint}" if outcome.checkpoint is not None else "no checkpoint"
    ui.say(
        f"job {outcome.job} {outcome.how} after {took} at {where} of run {outcome.run} "
        f"({outcome.checkpoints} checkpoints)"
    )
    ui.data(
        {
            "job": outcome.job,
            "run": outcome.run,
            "how": outcome.how,
            "checkpoint": outcome.checkpoint,
            "checkpoints": outcome.checkpoints,
            "seconds": round(outcome.seconds, 3),
        },
        lambda: "",
    )
