"""What is known of a failure before it is put into words."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PYTHON = "PYTHON"
"""The code of what the job's own Python code raised in a worker."""


@dataclass(frozen=True)
class Report:
    """A code with its fields, or none if nobody could tell."""

    code: str | None
    fields: Mapping[str, Any] = field(default_factory=dict)
    said: str = ""
    """What the innermost exception said."""
    python: str = ""
    """What Python said in a worker, with its traceback."""

    @staticmethod
    def from_json(text: str) -> Report:
        """From what the kernel says of a Java exception (`FailureReport.scala`).

        >>> Report.from_json('{"code":"STORAGE","causes":[{"class":"a.B","message":"no"}]}').said
        'no'
        """
        data = json.loads(text)
        last = data["causes"][-1]
        said = last.get("message") or last["class"]
        return Report(data.get("code"), data.get("fields") or {}, said, data.get("python") or "")
