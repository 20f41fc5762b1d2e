"""Starting a job in a process of its own, where its file is at hand."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headgate.base.errors import HeadgateError
from headgate.base.handover import hand_over
from headgate.base.params import written
from headgate.home.layout import JobHome
from headgate.home.resume_hint import run_params, unknown_secret
from headgate.runtime.lease import is_live
from headgate.runtime.status import job_status

_SECONDS = 300.0
_POLL_SECONDS = 0.5
_LAST_LINES = 5


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
    handle, log = tempfile.mkstemp(prefix=f"headgate-{job.name}-", suffix=".log")
    with os.fdopen(handle, "wb") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", *words],
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,  # it outlives the server
        )
    # without a wait, a process that ended would stay a zombie and look alive
    threading.Thread(target=process.wait, name=f"wait-{process.pid}", daemon=True).start()
    ends = time.monotonic() + _SECONDS
    while time.monotonic() < ends:
        code = process.poll()
        lease = job.read().lease
        mine = lease is not None and is_live(lease) and lease.owner.pid == process.pid
        status = job_status(job)
        if (mine and status.state == "RUNNING") or code == 0:
            assert status.run is not None
            return {"run": status.run.run, "pid": process.pid, "log": log}
        if code is not None:
            last = Path(log).read_text(errors="replace").strip().splitlines()[-_LAST_LINES:]
            raise HeadgateError(f"the start failed: {' / '.join(last)}", remedy=f"see {log}")
        time.sleep(_POLL_SECONDS)
    raise HeadgateError(
        f"the job does not run {_SECONDS:.0f} s after its start", remedy=f"see {log}"
    )
