"""What a shell may complete beside verbs and options: the names of jobs."""

from __future__ import annotations

from contextlib import suppress

import typer

from headgate.base.errors import HeadgateError
from headgate.cli.common import Ui


def job_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """The jobs of the home whose names begin so; of a home on this machine, which answers at once.

    A shell shows no errors here: a home that cannot be read has no names.
    """
    with suppress(HeadgateError, OSError):
        home = Ui(home_url=ctx.params.get("home"), env=ctx.params.get("env")).home
        if home.files.local() is not None:
            return [job.name for job in home.jobs() if job.name.startswith(incomplete)]
    return []
