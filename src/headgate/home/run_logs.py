"""The log files of jobs that run in the background: one a start, the newest ten are kept."""

from __future__ import annotations

import os
import re
import zlib
from contextlib import suppress
from datetime import UTC
from pathlib import Path

from headgate.home.layout import JobHome
from headgate.home.modes import OWN, home_modes, make_folder
from headgate.home.times import now

KEEP = 10
_NAME = re.compile(r"\d{8}T\d{6}\.\d{6}Z\.log")


def log_folder(job: JobHome) -> Path:
    """Where the logs of a job are: in a home on this machine's disk, else in the user's folder.

    A log is appended to, which object stores cannot do.
    """
    local = job.files.local(f"{job.path}/logs")
    if local is not None:
        return local
    state = os.environ.get("XDG_STATE_HOME") or Path("~/.local/state").expanduser()
    return Path(state) / "headgate" / "logs" / f"{zlib.crc32(job.home.url.encode()):08x}" / job.name


def new_log(job: JobHome) -> Path:
    """An empty log file for a start that begins now; the oldest ones make way."""
    folder = log_folder(job)
    root = job.files.local()
    if root is not None:
        modes = home_modes(root)
        make_folder(folder, root, modes)
    else:
        modes = OWN
        folder.mkdir(parents=True, exist_ok=True, mode=modes.folder)
    file = folder / f"{now().astimezone(UTC):%Y%m%dT%H%M%S.%fZ}.log"
    os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, modes.file))
    for old in logs(job)[:-KEEP]:
        with suppress(FileNotFoundError):  # another start was quicker
            old.unlink()
    return file


def logs(job: JobHome) -> list[Path]:
    """The job's log files, the newest last."""
    folder = log_folder(job)
    if not folder.is_dir():
        return []
    return sorted(file for file in folder.iterdir() if _NAME.fullmatch(file.name))
