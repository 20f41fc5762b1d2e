"""ResumeHint: the command that starts a job again, and where it resumes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from headgate.home.layout import JobHome
from headgate.home.model import RunRecord
from headgate.home.resume_hint import start_command
from headgate.ui.model.view import View


@dataclass(frozen=True)
class ResumeHint(View):
    """How a job that does not run is started again."""

    text: str
    """Where it resumes, in a sentence."""
    command: str
    file_is_here: bool
    """Whether the file of the job is on the machine of the UI, unchanged or not."""


def resume_hint(
    job: JobHome, run: RunRecord | None, text: str, *, snapshot: str | None = None
) -> ResumeHint:
    """The hint with its sentence and command."""
    file = run.code.get("file") if run else None
    command = start_command(job, run, snapshot=snapshot)
    return ResumeHint(text, command, file is not None and Path(file).is_file())
