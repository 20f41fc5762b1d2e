"""Starting a job in a process of its own, where its file is at hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headgate.base.handover import hand_over
from headgate.base.params import written
from headgate.home.layout import JobHome
from headgate.home.resume_hint import run_params, unknown_secret
from headgate.runtime.detached import start_detached


def can_start(job: JobHome) -> str | None:
    """Why this server cannot start the job; None if it can."""
    current = job.current()
    if current is None:
        return f"job '{job.name}' has no run, so its file and parameters are unknown"
    file = current.read().code.get("file")
    if not file:
        return f"the home has no file for job '{job.name}'"
    if not Path(file).is_file():
        return f"the job's file {file} is not on the machine of this server"
    return unknown_secret(current)


def start_job(job: JobHome, snapshot: str | None) -> Mapping[str, Any]:
    """Start it as its run was first started, and wait until it runs.

    Without a snapshot it resumes as `headgate run` does. `--from latest` is not the same: it makes
    a new run, which is refused while a batch of the old one is in the sinks and not committed.
    """
    current = job.current()
    assert current is not None
    run, graph = current.read(), current.graph()
    params, environment = hand_over(written(run_params(current)))
    words = ["run", f"{run.code['file']}:{graph.get('job', job.name)}", "--name", job.name,
             *params]  # fmt: skip
    if snapshot is not None:
        words += ["--from", snapshot]
    environment["HEADGATE_HOME"] = job.home.url  # it may have a password, as an address can
    started = start_detached(job, words, environment)
    return {"run": started.run, "pid": started.pid, "log": str(started.log)}
