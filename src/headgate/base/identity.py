"""Which process is which: a pid alone may belong to a later process, or another machine."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path


def process_started(pid: int) -> str | None:
    """When a process started, in its system's own words; nothing if there is no such process."""
    if Path("/proc/self/stat").exists():
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return None
        fields = text.rpartition(")")[2].split()  # the name before it may hold spaces
        return None if fields[0] in ("Z", "X") else fields[19]
    shown = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return shown.stdout.strip() or None


def pid_space() -> str:
    """Where a pid has meaning: this boot of this machine, and this process namespace."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    try:
        return f"{boot.read_text().strip()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()
