"""The way to go on with a job: the command, and from where it begins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headgate.home.layout import JobHome
from headgate.home.model import RunRecord
from headgate.home.resume_hint import start_command
from headgate.ui.model.view import View


@dataclass(frozen=True)
class WayOn(View):
    """How a job that does not run is started again."""

    text: str
    """Where it goes on, in a sentence."""
    command: str
    file_is_here: bool
    """Whether the file of the job is on the machine of the UI, unchanged or not."""


def way_on(job: JobHome, run: RunRecord | None, text: str, *, snapshot: str | None = None) -> WayOn:
    """How to go on, with the sentence for it."""
    file = run.code.get("file") if run else None
    return WayOn(text, start_command(job, run, snapshot=snapshot), bool(file) and _is_file(file))


def _is_file(file: str | None) -> bool:
    return file is not None and Path(file).is_file()
