"""A griffe extension: examples in docstrings become code blocks of the API reference."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?:^|\n)((?:>>> ).*?)(?=\n\s*\n|\Z)", re.S)


def fenced(text: str) -> str:
    """A docstring whose examples stand in fences.

    >>> fenced("Adds.\\n\\n>>> add(1)\\n2").splitlines()
    ['Adds.', '', '```pycon', '>>> add(1)', '2', '```']
    """
    return _EXAMPLE.sub(lambda m: f"\n```pycon\n{m[1]}\n```", text).strip("\n")


class Fences(griffe.Extension):
    """Puts the examples of each docstring into a fence."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Called for every module, class, function and attribute that was loaded."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)
