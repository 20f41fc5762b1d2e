"""``headgate run``: start a job and stay until it ends."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.base.durations import format_duration, parse_duration
from headgate.base.handover import handed_over
from headgate.base.py_files import put_on_path
from headgate.cli import common
from headgate.cli.app import find_app, load_app, stop_session
from headgate.cli.common import Ui, command
from headgate.cli.detach import run_detached
from headgate.cli.options import (
    SUBMITTED,
    SetOption,
    params_of,
    parse_params,
    parse_spark_flags,
)
from headgate.home.layout import check_job_name
from headgate.runtime.detached import MARK

if TYPE_CHECKING:
    from headgate.runtime.live import Display


class LogFormat(StrEnum):
    """How a run speaks on standard error."""

    TEXT = "text"
    JSON = "json"


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
        bool, typer.Option("--bounded", help="Read all available input, then exit.")
    ] = False,
    drain: Annotated[
        bool, typer.Option("--drain", help="With --bounded: close all windows at the end.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start a new run from scratch; the old run is kept.")
    ] = False,
    snapshot: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="SNAP",
            help="Start a new run from latest, ck:17, r1/ck:17, sp:label, JOB@SNAP or a path.",
        ),
    ] = None,
    allow_dropped_state: Annotated[
        bool,
        typer.Option("--allow-dropped-state", help="Start even if a step's state is lost."),
    ] = False,
    parallelism: Annotated[
        int | None,
        typer.Option(
            "--parallelism",
            metavar="N",
            help="Number of state partitions; a different number starts a new run.",
        ),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="JOB", help="Run it as a job with this name.")
    ] = None,
    allow_duplicates: Annotated[
        bool,
        typer.Option(
            "--allow-duplicates",
            help="Start a changed graph even if an unfinished batch is partly written.",
        ),
    ] = False,
    accept_sink_position: Annotated[
        bool,
        typer.Option(
            "--accept-sink-position",
            help="If the home is older than its sinks, continue after what they have.",
        ),
    ] = False,
    take_over: Annotated[
        bool,
        typer.Option(
            "--take-over",
            help="Take over outputs written by a job with this name in a different home.",
        ),
    ] = False,
    savepoint_on_term: Annotated[
        bool,
        typer.Option(
            "--savepoint-on-term",
            help="SIGTERM stops the job with a savepoint, as it does under spark-submit.",
        ),
    ] = False,
    grace: Annotated[
        str | None,
        typer.Option(
            "--grace",
            metavar="DURATION",
            help="After SIGTERM, stop in the middle of a batch that takes longer than this.",
        ),
    ] = None,
    health_port: Annotated[
        int | None,
        typer.Option(
            "--health-port",
            metavar="N",
            min=1,
            max=65535,
            help="Serve /healthz and /readyz on this port.",
        ),
    ] = None,
    health_limit: Annotated[
        str,
        typer.Option(
            "--health-limit",
            metavar="DURATION",
            help="/healthz fails if there is no checkpoint for longer than this.",
        ),
    ] = "5 minutes",
    detach: Annotated[
        bool,
        typer.Option(
            "--detach",
            "-d",
            help="Run it in the background, with a log that `headgate logs` shows.",
        ),
    ] = False,
    log_format: Annotated[
        LogFormat,
        typer.Option("--log-format", help="text, or json: one object per line on standard error."),
    ] = LogFormat.TEXT,
) -> None:
    """Start a job, or resume it where it stopped (unless --from or --fresh)."""
    flags = parse_spark_flags(spark).beside(ui.project)
    given = [*(params or ()), *handed_over()]
    parse_params(given)
    if name is not None:
        check_job_name(name)
    flags.export()
    own = ui.project.local_py_files(brought=SUBMITTED in os.environ)
    put_on_path([*flags.py_files, *(own or ())])
    in_background = os.environ.pop(MARK, None) is not None
    find_app(app)
    if in_background or not detach:
        flags.begin()
    loaded = load_app(app, session=flags.session)
    if detach and not in_background:
        stop_session()  # one that the import needed: the job gets its own
        asked = dict(pair.split("=", 1) for pair in given)
        run_detached(ui, ui.home.job(name or loaded.job.name), common.arguments, asked)
        return
    settings = params_of(loaded.job.name, ui.project, given)

    from headgate.runtime.json_display import JsonDisplay
    from headgate.runtime.live import open_display
    from headgate.runtime.run import run

    display: Display
    if log_format is LogFormat.JSON:
        display = lines = JsonDisplay(name or loaded.job.name)
        common.current = ui = replace(ui, quiet=True, show_error=lines.error)
    else:
        display = open_display(quiet=ui.quiet, color=ui.color)
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
        savepoint_on_term=savepoint_on_term or SUBMITTED in os.environ,
        grace_seconds=parse_duration(grace).total_seconds() if grace is not None else None,
        master=flags.master,
        conf=flags.conf,
        code=loaded.code,
        modules=[loaded.file.parent] if own is None else [loaded.file, *map(Path, own)],
        health_port=health_port,
        health_limit_seconds=parse_duration(health_limit).total_seconds(),
        display=display,
    )
    if outcome.error is not None:
        raise outcome.error
    took = format_duration(timedelta(seconds=outcome.seconds))
    where = f"ck:{outcome.checkpoint}" if outcome.checkpoint is not None else "no checkpoint"
    ui.say(
        f"job {outcome.job} {outcome.how} after {took} at {where} of run {outcome.run} "
        f"({outcome.checkpoints} checkpoint{'s' * (outcome.checkpoints != 1)})"
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
