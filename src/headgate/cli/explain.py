"""``headgate explain``: what a code of an error means, and what to do."""

from __future__ import annotations

from dataclasses import asdict
from textwrap import fill
from typing import Annotated

import typer

from headgate.base.errors import NotFoundError
from headgate.base.near import did_you_mean, or_else
from headgate.cli.common import Ui, command
from headgate.cli.tables import table
from headgate.failures.codes import Code, code_named, code_names

_WIDTH = 100


def register(app: typer.Typer) -> None:
    """Add the verb."""
    command(app, "explain")(explain)


def _complete(incomplete: str) -> list[str]:
    return [name for name in code_names() if name.startswith(incomplete.upper())]


def explain(
    ui: Ui,
    code: Annotated[
        str | None,
        typer.Argument(
            metavar="CODE",
            help="The code at the end of an error message.",
            autocompletion=_complete,
        ),
    ] = None,
) -> None:
    """Explain the code at the end of an error; without a code, list all codes."""
    if code is None:
        every = [found for name in code_names() if (found := code_named(name)) is not None]
        ui.data(
            {"codes": [_json(found) for found in every]},
            lambda: table(["CODE", "MEANING"], [[found.name, found.meaning] for found in every]),
        )
        return
    found = code_named(code.upper())
    if found is None:
        raise NotFoundError(
            f"there is no code {code}",
            remedy=or_else(
                did_you_mean(code.upper(), code_names()), "headgate explain lists them all"
            ),
        )
    ui.data(_json(found), lambda: _text(found))


def _json(code: Code) -> dict[str, object]:
    fields = asdict(code)
    return {"code": fields.pop("name"), **fields, "page": code.anchor}


def _text(code: Code) -> str:
    lines = [code.name, f"What happened: {code.meaning}."]
    if code.may_pass is not None:
        lines.append(
            "May go away:   yes, so a restart strategy tries again."
            if code.may_pass
            else "May go away:   no, so a restart strategy tries once more at most."
        )
    lines.append(f"What to do:    {code.remedy}.")
    return "\n".join(fill(line, _WIDTH, subsequent_indent=" " * 15) for line in lines)
