"""A job in a process of its own: started, watched until it runs, then left to itself."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from headgate.base.errors import ExitCode, HeadgateError
from headgate.home.layout import JobHome
from headgate.home.run_logs import new_log
from headgate.runtime.lease import is_live
from headgate.runtime.status import job_status

MARK = "HEADGATE_DETACHED"
"""The variable of a process that was started in the background: it does not start another."""
_SECONDS = 300.0
_POLL_SECONDS = 0.2
_LAST_LINES = 5


@dataclass(frozen=True)
class Detached:
    """A job that runs, or has ended in order, in a process of its own."""

    run: str
    pid: int
    log: Path
    ended: bool
    """Whether its process has already ended; with code 0."""


def start_detached(
    job: JobHome, words: Sequence[str], environment: Mapping[str, str] | None = None
) -> Detached:
    """Run `headgate` with these words in the background, and wait until the job runs.

    It outlives this process. All that it prints is in a log file of the job. If it ends before it
    runs, its last words are the error.
    """
    log = new_log(job)
    with log.open("ab") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "headgate", *words],
            env={**os.environ, **(environment or {}), MARK: "1"},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    # without a wait, a process that ended would stay a zombie and look alive
    threading.Thread(target=process.wait, name=f"wait-{process.pid}", daemon=True).start()
    try:
        return _running(job, process, log)
    except KeyboardInterrupt:
        process.terminate()
        raise


def _running(job: JobHome, process: subprocess.Popen[bytes], log: Path) -> Detached:
    """Wait until the job runs."""
    ends = time.monotonic() + _SECONDS
    while time.monotonic() < ends:
        code = process.poll()
        lease = job.read().lease
        mine = lease is not None and is_live(lease) and lease.owner.pid == process.pid
        status = job_status(job)
        if (mine and status.state == "RUNNING") or (code == 0 and status.run is not None):
            assert status.run is not None
            return Detached(status.run.run, process.pid, log, code == 0)
        if code is not None:
            raise _failed(log, code)
        time.sleep(_POLL_SECONDS)
    raise HeadgateError(
        f"process {process.pid} is there, but after {_SECONDS:.0f} s its job does not run",
        code="START_FAILED",
        remedy=f"see {log}, and wait for the process or end it: kill {process.pid}",
    )


def _failed(log: Path, code: int) -> HeadgateError:
    last = log.read_text(errors="replace").strip().splitlines()[-_LAST_LINES:]
    error = HeadgateError(
        f"the start failed: {' / '.join(last)}", code="START_FAILED", remedy=f"see {log}"
    )
    if code in set(ExitCode):
        error.exit_code = ExitCode(code) if code else ExitCode.FAILED
    return error
