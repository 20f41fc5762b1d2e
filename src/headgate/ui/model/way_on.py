"""The way to go on with a job: the command, and from where it begins."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from headgate.secrets import HIDDEN, shown
from headgate.snapshots.home import JobHome
from headgate.snapshots.model import RunRecord
from headgate.ui.model.view import View


@dataclass(frozen=True)
class WayOn(View):
    """How a job that does not run is started again."""

    text: str
    """Where it goes on, in a sentence."""
    command: str
    file_is_here: bool
    """Whether the file of the job is on the machine of the UI, unchanged or not."""


def start_command(job: JobHome, run: RunRecord | None, *, snapshot: str | None = None) -> str:
    """The command that starts a job as its run was first started; secrets are left out."""
    file = run.code.get("file") if run else None
    own = str(job.run(run.run).graph().get("job", job.name)) if run else job.name
    words = ["headgate", "run", f"{file}:{own}" if file else "APP", "--home", job.home.url]
    if own != job.name:
        words += ["--name", job.name]
    if snapshot is not None:
        words += ["--from", snapshot]
    for name, value in (run.params if run else {}).items():
        words += ["--set", f"{name}={shown(name, value)}"]
    # what is hidden is for the reader to fill in, so it is not quoted as if it were the value
    return " ".join(shlex.quote(word) if HIDDEN not in word else word for word in words)


def way_on(job: JobHome, run: RunRecord | None, text: str, *, snapshot: str | None = None) -> WayOn:
    """How to go on, with the sentence for it."""
    file = run.code.get("file") if run else None
    return WayOn(text, start_command(job, run, snapshot=snapshot), bool(file) and _is_file(file))


def _is_file(file: str | None) -> bool:
    return file is not None and Path(file).is_file()
