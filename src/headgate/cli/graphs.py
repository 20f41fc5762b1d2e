"""``headgate check`` and ``headgate graph``: a job's graph, before anything runs."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.base.errors import ExitCode, NotFoundError
from headgate.base.py_files import put_on_path
from headgate.base.still import still
from headgate.cli.app import find_app, load_app
from headgate.cli.common import Ui, command
from headgate.cli.options import SetOption, SparkArgument, params_of, parse_spark_flags
from headgate.graph.model import Graph

if TYPE_CHECKING:
    from headgate.graph.plan import BuiltJob
    from headgate.runtime.broker_check import LiveCheck


class GraphFormat(StrEnum):
    """How a graph is printed."""

    TEXT = "text"
    MERMAID = "mermaid"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the verbs."""
    command(app, "check")(check)
    command(app, "graph")(graph)


def check(
    ui: Ui,
    app: Annotated[str, typer.Argument(metavar="APP", help="path/to/file.py or file.py:job.")],
    spark: SparkArgument = None,
    params: SetOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Treat warnings as errors.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Also check topics and permissions on the brokers.")
    ] = False,
) -> None:
    """Build a job's graph and check names, columns, keys and outputs without starting a query."""
    built = _built(ui, app, params, spark)
    job = built.graph.job
    found = built.graph
    checked = _check_live(ui, built, job) if live else None
    problem = checked.problem if checked else None
    ok = not (strict and found.warnings) and problem is None
    ui.data(
        {"job": found.job, "ok": ok, "warnings": list(found.warnings), "graph": found.to_json(),
         **({"live": checked.to_json()} if checked else {})},
        lambda: f"{found.job}: {len(found.steps)} steps, {len(found.sources)} sources, "
        f"{len(found.warnings)} warnings",
    )  # fmt: skip
    for warning in found.warnings:
        ui.say(f"warning: {warning}")
    if problem is not None and ui.json:
        raise typer.Exit(problem.exit_code)  # the output already says why
    if problem is not None:
        raise problem
    if strict and found.warnings:
        raise typer.Exit(ExitCode.USAGE)


def graph(
    ui: Ui,
    target: Annotated[
        str, typer.Argument(metavar="APP|JOB", help="A file with a job, or a job in the home.")
    ],
    spark: SparkArgument = None,
    params: SetOption = None,
    format: Annotated[
        GraphFormat, typer.Option("--format", help="Output format.")
    ] = GraphFormat.TEXT,
) -> None:
    """Print a job's graph."""
    found = _graph_of(ui, target, params, spark)
    if format is GraphFormat.JSON or ui.json:
        print(found.json())
    else:
        print(found.mermaid() if format is GraphFormat.MERMAID else found.text())


def _graph_of(ui: Ui, target: str, params: list[str] | None, spark: list[str] | None) -> Graph:
    if ".py" in Path(target).name:
        return _built(ui, target, params, spark).graph
    run = ui.home.find(target).current()
    if run is None:
        raise NotFoundError(f"job '{target}' has no run yet", remedy="name its file instead")
    return Graph.from_json(run.graph())


def _built(ui: Ui, app: str, params: list[str] | None, spark_words: list[str] | None) -> BuiltJob:
    flags = parse_spark_flags(spark_words).for_reading(ui.project)
    flags.export()
    put_on_path([*flags.py_files, *(ui.project.local_py_files() or ())])
    find_app(app)
    flags.begin(brief=True)
    job = load_app(app, session=partial(flags.session, brief=True)).job
    values = params_of(job.name, ui.project, params)
    from headgate.runtime.session import get_session

    # Column names and types are Spark's to resolve, so a check needs a session, but no data.
    with still(ui.say, "starting Spark") if sys.stderr.isatty() else nullcontext():
        spark = get_session(parallelism=1, master=flags.master, conf=flags.conf, brief=True)
    return job.build(values, spark=spark)


def _check_live(ui: Ui, built: BuiltJob, job: str) -> LiveCheck:
    from headgate.runtime.broker_check import check_live
    from headgate.runtime.session import get_session

    checked = check_live(built, get_session(parallelism=1), job)
    for step, finding in checked.findings:
        ui.say(f"{'ok' if finding.reason is None else 'WRONG'}  {step.id}: {finding.text}")
    for transaction in checked.transactions:
        ui.say(f"open transaction: {transaction}")
    return checked
