"""``headgate plan``: what a start from a snapshot would do, before it is done."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.base.errors import ExitCode
from headgate.base.py_files import put_on_path
from headgate.cli.app import find_app, load_app
from headgate.cli.common import Ui, command
from headgate.cli.options import (
    SetOption,
    SparkArgument,
    SparkFlags,
    params_of,
    parse_spark_flags,
)
from headgate.snapshots.snapshot import Snapshot, find_snapshot, is_newest
from headgate.snapshots.upgrade import UpgradePlan, plan_upgrade

if TYPE_CHECKING:
    from headgate.api.job import JobDef


def register(app: typer.Typer) -> None:
    """Add the verb."""
    command(app, "plan")(plan)


def plan(
    ui: Ui,
    app: Annotated[str, typer.Argument(metavar="APP", help="path/to/file.py or file.py:job.")],
    spark: SparkArgument = None,
    against: Annotated[
        str,
        typer.Option(
            "--against", metavar="SNAP", help="latest, ck:17, sp:label, JOB, JOB@SNAP, or a path."
        ),
    ] = "latest",
    params: SetOption = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="JOB", help="The job's name in the home.")
    ] = None,
    parallelism: Annotated[
        int | None, typer.Option("--parallelism", metavar="N", help="Number of state partitions.")
    ] = None,
) -> None:
    """Show which state is kept, new, changed or dropped, and where sources resume."""
    flags = parse_spark_flags(spark).for_reading(ui.project)
    put_on_path([*flags.py_files, *(ui.project.local_py_files() or ())])
    find_app(app)
    flags.begin(brief=True)
    loaded = load_app(app, session=partial(flags.session, brief=True))
    jobs = {found.name for found in ui.home.jobs()}
    text = f"{against}@latest" if against in jobs else against
    snapshot = find_snapshot(ui.home, text, name or loaded.job.name, loaded.job.name)
    values = params_of(loaded.job.name, ui.project, params)
    found = _plan(ui, loaded.job, values, snapshot, parallelism, flags)
    refusal = found.refusal(allow_dropped_state=False)
    ui.data({"job": loaded.job.name, **found.to_json()}, lambda: "\n".join(found.lines()))
    if refusal is not None:
        ui.say(f"Refused: {refusal.message.splitlines()[-1]}: {refusal.remedy}")
        raise typer.Exit(ExitCode.REFUSED)
    if found.trivial:
        ui.say(f"nothing changes: the job goes on from {snapshot.name} as it is")


def _plan(
    ui: Ui,
    job: JobDef,
    params: dict[str, str],
    snapshot: Snapshot,
    parallelism: int | None,
    flags: SparkFlags,
) -> UpgradePlan:
    from headgate.compile import compile_job
    from headgate.runtime.topics import JobTopics

    ui.say("starting Spark to build the graph")
    partitions = parallelism or snapshot.run.parallelism
    with flags.reading(parallelism=partitions, brief=True) as spark:
        compiled = compile_job(job.build(params, spark=spark), spark, parallelism=partitions)
        return plan_upgrade(
            snapshot,
            compiled.graph.to_json(),
            parallelism=partitions,
            earliest=compiled.earliest,
            newest=is_newest(ui.home.job(snapshot.job), snapshot),
            topics=JobTopics(compiled),
        )
