"""How a run is started again: its params and the command, from what its last start wrote down."""

from __future__ import annotations

import shlex

from headgate.base.params import from_record, not_recorded, written
from headgate.base.secrets import HIDDEN, redact
from headgate.home.layout import JobHome, RunHome
from headgate.home.model import RunRecord


def run_params(run: RunHome) -> dict[str, str]:
    """The params of the last start of a run: it may have other references than the first had."""
    started = run.event_log().last("started")
    details = started.details if started is not None else {}
    known = "references" in details or details.get("params")
    return from_record(details) if known else dict(run.read().params)


def unknown_secret(run: RunHome) -> str | None:
    """Why a run cannot be started again by somebody who knows only its home."""
    names = not_recorded(run_params(run))
    if not names:
        return None
    params = f"parameter {names[0]} was" if len(names) == 1 else f"{', '.join(names)} were"
    return (
        f"the secret {params} given as text, which is not kept: start the job on the command line "
        f"with --set {names[0]}=env:VARIABLE or --set {names[0]}=@FILE, and it can be started "
        "from here afterwards"
    )


def start_command(job: JobHome, run: RunRecord | None, *, snapshot: str | None = None) -> str:
    """The command that starts a job as its run was first started; secrets are left out."""
    file = run.code.get("file") if run else None
    own = str(job.run(run.run).graph().get("job", job.name)) if run else job.name
    words = ["headgate", "run", f"{file}:{own}" if file else "APP", "--home"]
    words.append(redact(job.home.url))
    if own != job.name:
        words += ["--name", job.name]
    if snapshot is not None:
        words += ["--from", snapshot]
    for name, value in written(run_params(job.run(run.run)) if run else {}).items():
        words += ["--set", f"{name}={value}"]
    # what is hidden is for the reader to fill in, so it is not quoted as if it were the value
    return " ".join(shlex.quote(word) if HIDDEN not in word else word for word in words)
