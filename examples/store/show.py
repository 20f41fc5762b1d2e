"""What the demos share: commands run as a user would type them, and the account at the end."""

from __future__ import annotations

import shlex
import subprocess
import sys
import time
from pathlib import Path

from headgate.snapshots.home import Home

HERE = Path(__file__).resolve().parent
INPUTS = ("orders", "users", "items")
OUTPUTS = ("enriched", "missing_users", "missing_items", "malformed")


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """Start a command of the command line, and show it."""
    print(f"\n$ headgate {shlex.join(arguments)}", file=sys.stderr, flush=True)
    beside = Path(sys.executable).with_name("headgate")
    program = [str(beside)] if beside.exists() else [sys.executable, "-m", "headgate.cli.main"]
    return subprocess.Popen([*program, *arguments])


def headgate(*arguments: str) -> int:
    """Run a command to its end; gives its exit code."""
    return start(*arguments).wait()


def app() -> str:
    """The store job's file as one would type it in this folder."""
    path, here = HERE / "store.py", Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def wait_for_checkpoints(job: subprocess.Popen[bytes], home: Path, count: int) -> None:
    """Wait until the store job's current run has so many checkpoints."""
    found = Home(str(home)).job("store")
    while not (found.exists() and (run := found.current()) and len(run.checkpoint_ids()) >= count):
        refuse_if_ended(job)
        time.sleep(0.2)


def refuse_if_ended(job: subprocess.Popen[bytes]) -> None:
    """End the demo if the job has ended by itself."""
    if job.poll() is not None:
        raise SystemExit(f"demo: the job ended with exit code {job.returncode}")


def say(text: str) -> None:
    """Tell what comes next, beside the output of commands."""
    print(f"\ndemo: {text}", file=sys.stderr, flush=True)


def account(orders: int, out: dict[str, int], *, when_right: str) -> int:
    """Say where the orders are. A user who was deleted before the order counts as missing."""
    total = sum(out.values())
    parts = " + ".join(f"{out[name]:,} {name.replace('_', ' ')}" for name in OUTPUTS)
    if total != orders:
        print(f"{parts} = {total:,}, but {orders:,} orders were produced", flush=True)
        return 1
    print(f"{parts} = {orders:,} orders produced: {when_right}", flush=True)
    return 0
