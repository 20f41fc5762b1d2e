"""Failures with a code and fields, in one line that is found again in any text around it.

The kernel's exceptions have the same form (`failures/Coded.scala`). What fails in a worker reaches
the driver only as text in another exception's message; the line ends where its JSON object ends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

_MARK = "HEADGATE "


class CodedFailure(Exception):
    """Why something failed, for `headgate.failures`, which makes a sentence of it."""

    def __init__(self, code: str, fields: Mapping[str, Any]) -> None:
        self.code, self.fields = code, dict(fields)
        super().__init__(coded_line(code, fields))


def coded_line(code: str, fields: Mapping[str, Any]) -> str:
    """A code and its fields in one line.

    >>> coded_line("TOPIC_MISSING", {"path": "data/orders"})
    'HEADGATE {"code": "TOPIC_MISSING", "path": "data/orders"}'
    """
    return _MARK + json.dumps({"code": code, **fields})


def find_coded(text: str) -> CodedFailure | None:
    """The first coded line in a text.

    >>> find_coded('... HEADGATE {"code": "CRASH", "batch": 3} SQLSTATE: 39000').fields
    {'batch': 3}
    """
    at = text.find(_MARK + "{")
    while at >= 0:
        try:
            found = json.JSONDecoder().raw_decode(text, at + len(_MARK))[0]
        except ValueError:
            found = {}
        if isinstance(code := found.pop("code", None), str):
            return CodedFailure(code, found)
        at = text.find(_MARK + "{", at + 1)
    return None
