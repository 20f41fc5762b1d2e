"""``headgate replay``: give dead letters to their steps again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headgate.base.errors import ExitCode
from headgate.cli.common import Ui, command
from headgate.cli.options import ClientOption, parse_client_options

if TYPE_CHECKING:
    from headgate.runtime.replay import ReplayOutcome


def register(app: typer.Typer) -> None:
    """Add the verb."""
    command(app, "replay")(replay)


def replay(
    ui: Ui,
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="The topic with the dead letters.")
    ],
    job: Annotated[str, typer.Option("--job", metavar="JOB", help="The job that wrote them.")],
    where: Annotated[
        str | None,
        typer.Option(
            "--where",
            metavar="SQL",
            help="Only letters that match, such as \"step = 'users_lookup'\".",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", metavar="N", min=1, help="Replay at most this many letters."),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Include letters that were replayed before.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show which letters would be replayed.")
    ] = False,
    option: ClientOption = None,
) -> None:
    """Send dead letters back to the step that lost them, each once.

    Letters that were already replayed are skipped, so a killed command can be run again.
    """
    from headgate.runtime.replay import ReplayRequest
    from headgate.runtime.replay import replay as give

    home = ui.home.find(job)
    request = ReplayRequest(address, where, limit, again, parse_client_options(option))
    outcome = give(home, request, dry_run=dry_run, say=ui.say)
    ui.data(
        {
            "job": home.name,
            "replay": None if dry_run else outcome.id,
            "letters": dict(outcome.letters),
            "before": outcome.before,
            "left": dict(outcome.left),
        },
        lambda: "",
    )
    for line in _lines(outcome, home.name, dry_run=dry_run):
        ui.say(line)
    if not outcome.total and outcome.left:
        raise typer.Exit(ExitCode.REFUSED)


def _lines(outcome: ReplayOutcome, job: str, *, dry_run: bool) -> list[str]:
    lines = [f"{name} cannot be replayed: {why}" for name, why in outcome.left.items()]
    if outcome.before:
        lines.append(f"{outcome.before:,} were replayed before; take them too with --again")
    if not outcome.total:
        return [*lines, "nothing is left to replay"]
    of = ", ".join(f"{count:,} {name}" for name, count in outcome.letters.items())
    if dry_run:
        return [*lines, f"would replay {of}"]
    went_on = " (it had begun before)" if outcome.resumed else ""
    return [*lines, f"replayed {of}{went_on}: {job} takes them in its next batch"]
