"""``headgate check`` and ``headgate graph``: a job's graph, before anything runs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.app import load_app
from headgate.cli.common import Ui, command
from headgate.cli.options import SetOption, parse_params
from headgate.errors import ExitCode, NotFoundError
from headgate.graph.model import Graph

if TYPE_CHECKING:
    from headgate.jobdef import JobDef


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
) -> None:
    """Build a job's graph and check names, columns, keys and outputs; starts no query."""
    found = _build(load_app(app).job, parse_params(params))
    steps = len(found.steps)
    ui.data(
        {"job": found.job, "ok": not (strict and found.warnings), "warnings": list(found.warnings),
         "graph": found.to_json()},
        lambda: f"{found.job}: {steps} steps, {len(found.sources)} sources, "
        f"{len(found.warnings)} warnings",
    )  # fmt: skip
    for warning in found.warnings:
        ui.say(f"warning: {warning}")
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
    found = _graph_of(ui, target, parse_params(params))
    if format is GraphFormat.JSON or ui.json:
        print(found.json())
    else:
        print(found.mermaid() if format is GraphFormat.MERMAID else found.text())


def _graph_of(ui: Ui, target: str, params: dict[str, str]) -> Graph:
    if ".py" in Path(target).name:
        return _build(load_app(target).job, params)
    run = ui.home.find(target).current()
    if run is None:
        raise NotFoundError(f"job '{target}' has no run yet", remedy="name its file instead")
    return Graph.from_json(run.graph())


def _build(job: JobDef, params: dict[str, str]) -> Graph:
    from headgate.runtime.session import get_session

    # Column names and types are Spark's to resolve, so a check needs a session, but no data.
    spark = get_session(parallelism=1, master=None, conf={})
    return job.build(params, spark=spark).graph
