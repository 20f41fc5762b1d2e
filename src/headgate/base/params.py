"""A job's params: values given by reference, and what of them is written down.

On the command line a value may be a reference: `env:NAME` is the value of an environment variable,
`@FILE` what a file holds. A record has the reference, so that the job can be started again with it;
the value of a secret is in no record.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from headgate.base.errors import UsageError
from headgate.base.secrets import HIDDEN, is_secret, shown

ENVIRONMENT, FILE, LITERAL = "env:", "@", "literal:"


class Reference(str):
    """Where a value is to be had: `env:NAME` or `@/path/of/a/file`."""

    __slots__ = ()


class Resolved(str):
    """A value that was given by reference."""

    reference: Reference

    def __new__(cls, value: str, reference: str) -> Resolved:
        made = super().__new__(cls, value)
        made.reference = Reference(reference)
        return made


def resolve(name: str, written: str) -> str:
    """A param's value, from what stands behind `--set NAME=`.

    >>> resolve("topic", "log:orders"), resolve("at", "literal:@home")
    ('log:orders', '@home')
    >>> resolve("db_password", "env:NO_SUCH_VARIABLE")
    Traceback (most recent call last):
        ...
    headgate.base.errors.UsageError: --set db_password: there is no environment variable \
NO_SUCH_VARIABLE: set it, or write literal:env:NO_SUCH_VARIABLE if that is the value itself
    """
    if written.startswith(LITERAL):
        return written.removeprefix(LITERAL)
    if written.startswith(ENVIRONMENT):
        variable = written.removeprefix(ENVIRONMENT)
        if variable not in os.environ:
            raise _missing(name, written, f"there is no environment variable {variable}", "set it")
        return Resolved(os.environ[variable], written)
    if written.startswith(FILE):
        file = Path(written.removeprefix(FILE)).expanduser().absolute()
        return Resolved(_content(name, written, file), f"{FILE}{file}")
    return written


def _content(name: str, written: str, file: Path) -> str:
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise _missing(name, written, f"{file} is not UTF-8 text", "correct the file") from None
    except OSError as error:
        why = f"the file {file} cannot be read ({error.strerror})"
        raise _missing(name, written, why, "correct the path") from None
    return text.removesuffix("\n").removesuffix("\r")


def _missing(name: str, written: str, why: str, remedy: str) -> UsageError:
    return UsageError(
        f"--set {name}: {why}",
        remedy=f"{remedy}, or write {LITERAL}{written} if that is the value itself",
    )


def recorded(params: Mapping[str, str], secrets: Collection[str] = ()) -> dict[str, str]:
    """Params as they are written down: references, and masks for secrets.

    >>> recorded({"topic": "log:orders", "key": "k-1", "db_password": "hunter2"}, ["key"])
    {'topic': 'log:orders', 'key': '******', 'db_password': '******'}
    >>> recorded({"db_password": Resolved("hunter2", "env:DB_PASSWORD")})
    {'db_password': 'env:DB_PASSWORD'}
    """
    found: dict[str, str] = {}
    for name, value in params.items():
        if isinstance(value, Resolved):
            found[name] = value.reference
        elif isinstance(value, Reference):
            found[name] = value
        else:
            found[name] = HIDDEN if name in secrets else shown(name, value)
    return found


def references(params: Mapping[str, str]) -> list[str]:
    """The names of recorded params whose value is a reference."""
    return [name for name, value in params.items() if isinstance(value, Reference)]


def from_record(data: Mapping[str, Any]) -> dict[str, str]:
    """Params of a record; what an older Headgate wrote is masked as far as it is recognised.

    >>> from_record({"params": {"db_password": "hunter2", "n": "1"}})
    {'db_password': '******', 'n': '1'}
    """
    known = set(data.get("references") or ())
    return {
        str(name): Reference(value) if name in known else shown(str(name), str(value))
        for name, value in (data.get("params") or {}).items()
    }


def written(params: Mapping[str, str]) -> dict[str, str]:
    """Recorded params as `--set` takes them.

    >>> written({"at": "@home", "db_password": Reference("env:DB_PASSWORD")})
    {'at': 'literal:@home', 'db_password': 'env:DB_PASSWORD'}
    """
    return {
        name: value
        if isinstance(value, Reference) or not value.startswith((ENVIRONMENT, FILE, LITERAL))
        else f"{LITERAL}{value}"
        for name, value in params.items()
    }


def not_recorded(params: Mapping[str, str]) -> list[str]:
    """The names of recorded params whose value is nowhere, because it is secret."""
    return [
        name
        for name, value in params.items()
        if not isinstance(value, Reference) and HIDDEN in value
    ]


def is_hidden(name: str, value: str) -> bool:
    """Whether a param, as `--set` takes it, must not stand on a command line."""
    by_reference = value.startswith((ENVIRONMENT, FILE))
    return not by_reference and (is_secret(name) or shown(name, value) != value)
