"""What the demos of the store share: its topics, and the account at the end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from headgate.home.layout import Home

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))  # for what all demos share
from demo_kit import (  # noqa: E402
    headgate,
    local_broker,
    refuse_if_ended,
    say,
    start,
    typed,
    typed_headgate,
    wait_until,
)

__all__ = [
    "INPUTS",
    "OUTPUTS",
    "account",
    "app",
    "headgate",
    "local_broker",
    "refuse_if_ended",
    "say",
    "start",
    "typed_headgate",
    "wait_for_checkpoints",
]

INPUTS = ("orders", "users", "items")
OUTPUTS = ("enriched", "missing_users", "missing_items", "malformed")


def app() -> str:
    """The store job's file as one would type it in this folder."""
    return typed(HERE / "store.py")


def wait_for_checkpoints(job: subprocess.Popen[bytes], home: Path, count: int) -> None:
    """Wait until the store job's current run has so many checkpoints."""
    found = Home(str(home)).job("store")

    def has_them() -> bool:
        run = found.current() if found.exists() else None
        return run is not None and len(run.checkpoint_ids()) >= count

    wait_until(job, has_them)


def account(orders: int, out: dict[str, int], *, when_right: str) -> int:
    """Say where the orders are. A user who was deleted before the order counts as missing."""
    total = sum(out.values())
    parts = " + ".join(f"{out[name]:,} {name.replace('_', ' ')}" for name in OUTPUTS)
    if total != orders:
        print(f"{parts} = {total:,}, but {orders:,} orders were produced", flush=True)
        return 1
    print(f"{parts} = {orders:,} orders produced: {when_right}", flush=True)
    return 0
