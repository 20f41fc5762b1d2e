"""``headgate check`` and ``headgate graph``: a job's graph, before anything runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.base.errors import ExitCode, NotFoundError
from headgate.base.py_files import put_on_path
from headgate.cli.app import load_app
from headgate.cli.common import Ui, command
from headgate.cli.options import SetOption, params_of
from headgate.graph.model import Graph

if TYPE_CHECKING:
    from headgate.api.job import JobDef
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
    params: SetOption = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings count as errors.")] = False,
    live: Annotated[
        bool, typer.Option("--live", help="Also ask the brokers about topics and rights.")
    ] = False,
) -> None:
    """Build a job's graph and check names, columns, keys and outputs; starts no query."""
    put_on_path(ui.project.local_py_files() or ())
    job = load_app(app).job
    built = _built(job, params_of(job.name, ui.project, params))
    found = built.graph
    checked = _check_live(ui, built, job.name) if live else None
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
        str, typer.Argument(metavar="APP|JOB", help="A file with a job, or a job of the home.")
    ],
    params: SetOption = None,
    format: Annotated[
        GraphFormat, typer.Option("--format", help="How to print it.")
    ] = GraphFormat.TEXT,
) -> None:
    """Print a job's graph."""
    found = _graph_of(ui, target, params)
    if format is GraphFormat.JSON or ui.json:
        print(found.json())
    else:
        print(found.mermaid() if format is GraphFormat.MERMAID else found.text())


def _graph_of(ui: Ui, target: str, params: list[str] | None) -> Graph:
    if ".py" in Path(target).name:
        put_on_path(ui.project.local_py_files() or ())
        job = load_app(target).job
        return _build(job, params_of(job.name, ui.project, params))
    run = ui.home.find(target).current()
    if run is None:
        raise NotFoundError(f"job '{target}' has no run yet", remedy="name its file instead")
    return Graph.from_json(run.graph())


def _build(job: JobDef, params: dict[str, str]) -> Graph:
    return _built(job, params).graph


def _built(job: JobDef, params: dict[str, str]) -> BuiltJob:
    from headgate.runtime.session import get_session

    # Column names and types are Spark's to resolve, so a check needs a session, but no data.
    spark = get_session(parallelism=1, brief=True)
    return job.build(params, spark=spark)


def _check_live(ui: Ui, built: BuiltJob, job: str) -> LiveCheck:
    from headgate.runtime.broker_check import check_live
    from headgate.runtime.session import get_session

    checked = check_live(built, get_session(parallelism=1), job)
    for step, finding in checked.findings:
        ui.say(f"{'ok' if finding.reason is None else 'WRONG'}  {step.id}: {finding.text}")
    for transaction in checked.transactions:
        ui.say(f"open transaction: {transaction}")
    return checked
