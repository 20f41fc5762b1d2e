"""From a template to a page: every text is escaped, and a name that is not there is an error."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from headgate.ui.pages import words
from headgate.ui.pages.actions import buttons
from headgate.ui.pages.links import page

_HERE = Path(__file__).parent
STATIC = _HERE / "static"
"""The style sheet and the scripts."""

_GOOD = ("RUNNING", "FINISHED", "COMPLETED", "DONE", "OK", "KEPT", "ACTIVE")
_BAD = ("FAILED", "CRASHED", "HIGH", "DAMAGED")
_WARN = ("RESTARTING", "IN_PROGRESS", "LOW", "CANCELLED", "CANCELED", "IDLE", "REQUESTED")


def tone(state: str) -> str:
    """The colour of a state: good, warn, bad, or none for one that is neither.

    >>> tone("RUNNING"), tone("CRASHED"), tone("STOPPED")
    ('good', 'bad', '')
    """
    word = state.upper()
    for name, states in (("good", _GOOD), ("warn", _WARN), ("bad", _BAD)):
        if word in states:
            return name
    return ""


@cache
def asset(name: str) -> str:
    """The address of a file in static, with a mark that changes when the file does."""
    mark = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:10]
    return f"/static/{name}?{mark}"


@cache
def _environment() -> Environment:
    env = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters.update(
        count=words.count,
        size=words.size,
        duration=words.duration,
        percent=words.percent,
        moment=words.moment,
        short=words.short,
        plural=words.plural,
        marked=words.marked,
        tone=tone,
    )
    env.globals.update(asset=asset, page=page, buttons=buttons)
    return env


def render(template: str, **values: Any) -> str:
    """A page as HTML text."""
    return _environment().get_template(template).render(**values)
