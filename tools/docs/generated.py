"""Pages that the code writes: every command with its help, and every metric."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator
from typing import Any

import typer

import headgate
from headgate.cli.main import app, invoke
from headgate.ui.metric_families import COUNTERS, GAUGES, HISTOGRAMS


def commands() -> Iterator[tuple[str, ...]]:
    """Every command by its words, `run` or `topic create`, in the order of the help."""
    root: Any = typer.main.get_command(app)
    for name, command in root.commands.items():
        yield from _below((name,), command)


def _below(words: tuple[str, ...], command: Any) -> Iterator[tuple[str, ...]]:
    verbs = getattr(command, "commands", None)
    if verbs is None:
        yield words
        return
    for name, verb in verbs.items():
        yield from _below((*words, name), verb)


def help_of(*words: str) -> str:
    """What `headgate WORDS --help` prints."""
    out = io.StringIO()
    width = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "80"
    try:
        with contextlib.redirect_stdout(out):
            invoke([*words, "--help"])
    finally:
        if width is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = width
    return "\n".join(line.rstrip() for line in out.getvalue().strip().splitlines())


def commands_page() -> str:
    """The reference of the command line."""
    parts = [
        "# Every command and option",
        "",
        "This page has the output of `headgate VERB --help`. [The command line](../cli.md) "
        "explains the verbs.",
        "",
        f"```text\n{help_of()}\n```",
    ]
    for words in commands():
        parts += ["", f"## headgate {' '.join(words)}", "", f"```text\n{help_of(*words)}\n```"]
    return "\n".join(parts) + "\n"


def with_other_names(page: str) -> str:
    """The page of the API with the public names that it does not list yet, at its end."""
    listed = set(re.findall(r"^::: headgate\.(\w+)$", page, re.M))
    rest = [name for name in headgate.__all__ if name not in listed]
    more = "\n\n".join(f"::: headgate.{name}" for name in rest)
    return f"{page.rstrip()}\n\n## More\n\n{more}\n" if rest else page


def metrics_page() -> str:
    """The reference of the metrics at /metrics."""
    parts = [
        "# Metrics",
        "",
        "`headgate ui` serves these metrics in Prometheus' format at `/metrics`, for every job in "
        "the home, including jobs that are not running. `headgate metrics JOB` prints the most "
        "important ones in the terminal. [The web interface](../ui.md) says who may read them.",
    ]
    for title, families, suffix in (
        ("Counters", COUNTERS, "_total"), ("Gauges", GAUGES, ""), ("Histograms", HISTOGRAMS, ""),
    ):  # fmt: skip
        parts += ["", f"## {title}", "", "| Name | Labels | |", "|---|---|---|"]
        for name, (labels, about) in families.items():
            shown = ", ".join(f"`{label}`" for label in labels) or "–"
            parts.append(f"| `{name}{suffix}` | {shown} | {about} |")
    return "\n".join(parts) + "\n"
