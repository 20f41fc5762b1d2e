"""``headgate errors``: what has gone wrong in a job, and what became of it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Annotated

import typer

from headgate.cli.common import Ui, command
from headgate.cli.control import JobArgument
from headgate.cli.tables import local_time
from headgate.home.times import to_iso

if TYPE_CHECKING:
    from headgate.ui.model.exception import ExceptionView


def register(app: typer.Typer) -> None:
    """Add the verb."""
    command(app, "errors")(show_errors)


def show_errors(
    ui: Ui,
    job: JobArgument,
    limit: Annotated[
        int,
        typer.Option("--limit", metavar="N", min=1, help="Show at most this many, newest first."),
    ] = 20,
) -> None:
    """Show a job's failures and crashes, newest first, and what happened next."""
    from headgate.ui.model.exceptions import exceptions_view

    home = ui.home.find(job)
    view = exceptions_view(home, limit=limit)
    entries = view.exception_history.entries
    if not entries:
        ui.say(f"job {home.name} has not failed")
    ui.data(
        {"job": home.name, "total": view.total, "errors": [_json(one) for one in entries]},
        lambda: "\n\n".join(_text(one) for one in entries),
    )
    if view.exception_history.truncated:
        ui.say(f"the newest {limit} of {view.total}; see more with --limit")


def _text(one: ExceptionView) -> str:
    where = f"   step {one.task_name}" if one.task_name else ""
    at = one.run if one.batch is None else f"{one.run}/ck:{one.batch}"
    lines = [f"{local_time(one.timestamp)}   {one.exception_name}   {at}{where}"]
    lines.append(textwrap.indent(one.message, "  "))
    lines += [f"  {frame}" for frame in one.frames]
    lines.append(f"  next    {one.next}")
    if one.remedy:
        lines.append(f"  remedy  {one.remedy}")
    return "\n".join(lines)


def _json(one: ExceptionView) -> dict[str, object]:
    return {
        "at": to_iso(one.timestamp),
        "run": one.run,
        "batch": one.batch,
        "reason": one.exception_name,
        "step": one.task_name,
        "message": one.message,
        "frames": list(one.frames),
        "remedy": one.remedy,
        "next": one.next,
    }
