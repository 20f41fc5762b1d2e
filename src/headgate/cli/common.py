"""What every command shares: its common options, where its words go, and its data."""

from __future__ import annotations

import functools
import inspect
import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any

import typer

from headgate.base.errors import HeadgateError, StorageError
from headgate.base.project import Project, Value, load_project
from headgate.base.secrets import redact, redacted
from headgate.home.layout import Home, default_home

HELP = {"help_option_names": ["-h", "--help"]}


@dataclass(frozen=True)
class Ui:
    """The common options of one command, and the way to standard output and error."""

    json: bool = False
    home_url: str | None = None
    quiet: bool = False
    color: bool = True
    debug: bool = False
    env: str | None = None
    show_error: Callable[[HeadgateError], None] | None = None
    """Where an error goes, if not to standard error as a sentence."""

    @cached_property
    def project(self) -> Project:
        """headgate.toml, for the environment that the command names."""
        return load_project(self.env)

    @property
    def home(self) -> Home:
        """The home that the command works on."""
        home = Home(self.home_setting.value)
        folder = home.files.local()
        if folder is not None and folder.exists():
            if not folder.is_dir():
                raise StorageError(
                    f"the home {home.url} cannot be used: a file is where a folder should be",
                    remedy="choose another home with --home or HEADGATE_HOME",
                )
            if not os.access(folder, os.R_OK | os.X_OK):
                raise StorageError(
                    f"the home {home.url} cannot be read",
                    remedy="correct its permissions, or choose another home with --home or "
                    "HEADGATE_HOME",
                )
        return home

    @property
    def home_setting(self) -> Value:
        """The home's address, and who has said so."""
        if self.home_url:
            return Value(self.home_url, "--home")
        if "HEADGATE_HOME" in os.environ:
            return Value(default_home(), "HEADGATE_HOME")
        return self.project.home or Value(default_home(), "default")

    def say(self, text: str) -> None:
        """Words for a person, on standard error; none with --quiet."""
        if not self.quiet:
            print(redact(text), file=sys.stderr, flush=True)

    def said(self, text: str) -> str:
        """Text for `data` that `say` has in a sentence: nothing if both go to one terminal."""
        seen = not self.quiet and sys.stderr.isatty() and sys.stdout.isatty()
        return "" if seen else text

    def data(self, value: Mapping[str, Any], text: Callable[[], str]) -> None:
        """The command's result on standard output: JSON with --json, else the text."""
        if self.json:
            print(json.dumps({"version": 1, **redacted(value)}, ensure_ascii=False, default=str))
        elif shown := text():
            print(redact(shown))
        sys.stdout.flush()


_COMMON: dict[str, tuple[Any, Any]] = {
    "json_output": (
        Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")],
        False,
    ),
    "home": (
        Annotated[
            str | None,
            typer.Option(
                "--home",
                metavar="URI",
                help="Folder or URL of the home [env HEADGATE_HOME, headgate.toml, or .headgate].",
            ),
        ],
        None,
    ),
    "env": (
        Annotated[
            str | None,
            typer.Option(
                "--env", metavar="NAME", help="Environment in headgate.toml [env HEADGATE_ENV]."
            ),
        ],
        None,
    ),
    "quiet": (
        Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")],
        False,
    ),
    "no_color": (Annotated[bool, typer.Option("--no-color", help="No colours.")], False),
    "debug": (
        Annotated[bool, typer.Option("--debug", help="Show the stack trace of an error.")],
        False,
    ),
}

arguments: tuple[str, ...] = ()
"""The words of the running command, for those that start it again elsewhere."""
current: Ui = Ui()
"""The options of the running command, for whoever shows its error."""


def command(app: typer.Typer, name: str, **options: Any) -> Callable[[Callable[..., Any]], Any]:
    """Register a command whose first parameter is the Ui; the common options are added to it."""

    def register(function: Callable[..., Any]) -> Any:
        signature = inspect.signature(function, eval_str=True)
        own = list(signature.parameters.values())[1:]
        extra = [
            inspect.Parameter(
                key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation
            )
            for key, (annotation, default) in _COMMON.items()
        ]

        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            global current
            common = {key: kwargs.pop(key) for key in _COMMON}
            current = Ui(
                json=common["json_output"],
                home_url=common["home"],
                quiet=common["quiet"],
                color=not common["no_color"] and "NO_COLOR" not in os.environ,
                debug=common["debug"],
                env=common["env"],
            )
            return function(current, *args, **kwargs)

        wrapper.__signature__ = signature.replace(parameters=[*own, *extra])  # type: ignore[attr-defined]
        wrapper.__annotations__ = {p.name: p.annotation for p in [*own, *extra]}
        return app.command(name, context_settings=HELP, **options)(wrapper)

    return register
