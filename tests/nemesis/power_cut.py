"""A disk whose power can be cut, and a soak of cuts under a job with windows on Kafka.

The disk is a file with ext4 in it, mounted through a loop device. A cut stops every process that
writes there, copies the file as it is, without a sync, and mounts the copy in its place. What was
only in the kernel's memory is gone, and ext4 replays its journal, as after a real cut.

python -m tests.nemesis.power_cut --cuts 20
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from headgate.home.layout import Home
from headgate.snapshots.savepoints import savepoints
from headgate.snapshots.snapshot import find_snapshot

_TOOLS = ("losetup", "mkfs.ext4", "mount", "umount")
# The kernel would commit its journal every 5 seconds by itself: here only what was synced counts,
# and the file does not change under the copy.
_MOUNT = "commit=600,noatime"
_REPORTED = re.compile(r"checkpoint ck:(?:\d+-)?(\d+) ")


def why_not() -> str | None:
    """Why this machine cannot have such a disk, or nothing if it can."""
    if os.geteuid() != 0:
        return "a loop device can be mounted by root only"
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    if not Path("/dev/loop-control").exists():
        return "there are no loop devices (/dev/loop-control)"
    tried = subprocess.run(["losetup", "--find"], capture_output=True, text=True)
    return None if tried.returncode == 0 else f"no loop device is free: {tried.stderr.strip()}"


class CutDisk:
    """An ext4 file system at ``path`` that loses its power on request."""

    def __init__(self, folder: Path, *, megabytes: int = 256) -> None:
        self.path = folder / "disk"
        self._folder, self._size, self._number = folder, megabytes << 20, 0

    def __enter__(self) -> Self:
        self.path.mkdir(parents=True)
        with self._image.open("wb") as file:
            file.truncate(self._size)
        _do("mkfs.ext4", "-q", "-F", str(self._image))
        self._mount()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._unmount()

    @property
    def _image(self) -> Path:
        return self._folder / f"disk{self._number}.img"

    def cut(self, processes: Iterable[int]) -> Path:
        """End the processes with the disk's power; gives what is mounted after it."""
        pids = [pid for root in processes for pid in family(root)]
        freeze(pids)
        old = self._image
        self._number += 1
        # not synced, and read through the page cache of the file: what the disk has by now
        _do("cp", "--sparse=always", str(old), str(self._image))
        _signal(pids, signal.SIGKILL)
        self._unmount()
        old.unlink()
        self._mount()
        return self.path

    def _mount(self) -> None:
        _do("mount", "-o", f"loop,{_MOUNT}", str(self._image), str(self.path))

    def _unmount(self) -> None:
        # lazily: a process that is dying may still have a file open there
        _do("umount", "--lazy", str(self.path))


def family(root: int) -> list[int]:
    """A process and all that it has started, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except (OSError, ValueError, IndexError):
                continue
            children.setdefault(parent, []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def freeze(pids: Iterable[int]) -> None:
    """Stop processes where they are, and wait until no thread of them is in the kernel's hands."""
    held = list(pids)
    _signal(held, signal.SIGSTOP)
    until = time.monotonic() + 10
    while any(_running(pid) for pid in held):
        assert time.monotonic() < until, "a process does not stop"
        time.sleep(0.005)


def _running(pid: int) -> bool:
    for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
        try:
            state = stat.read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            continue
        if state not in "TtZX":
            return True
    return False


def _signal(pids: Iterable[int], number: signal.Signals) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


def _do(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.strip()}"


def empty_files(folder: Path) -> list[str]:
    """Files without a byte, of Spark's logs and state: what was never synced."""
    return sorted(
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and path.stat().st_size == 0 and "spark" in path.parts
        and not path.name.endswith(".tmp") and not path.name.startswith(".")
    )  # fmt: skip


def reported(log: str) -> int:
    """The newest checkpoint that a driver has said to be there, or -1."""
    return max((int(found) for found in _REPORTED.findall(log)), default=-1)


def assert_kept(home: Path, job: str, *, log: str) -> int:
    """All that was reported before a cut is there and whole; gives the newest checkpoint."""
    kept = Home(str(home)).job(job)
    run = kept.current()
    assert run is not None, "the home has lost its run"
    newest = run.checkpoint_ids()[-1:] or [-1]
    assert newest[0] >= reported(log), f"ck:{reported(log)} was reported, ck:{newest[0]} is there"
    for name in ["latest", *(f"sp:{saved.label}" for saved in savepoints(kept))]:
        if name == "latest" and newest[0] < 0:
            continue
        problems = [str(problem) for problem in find_snapshot(kept.home, name, job).problems()]
        empty = empty_files(home)
        assert problems == [], f"{name}: {problems}; {len(empty)} files are empty: {empty[:12]}"
    return newest[0]


def main() -> int:
    """Cut the power of a running job again and again; 0 if each row is where it must be, once."""
    parser = argparse.ArgumentParser(prog="power_cut", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--cuts", type=int, default=20)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options = parser.parse_args()
    if reason := why_not():
        print(f"power_cut: {reason}", file=sys.stderr)
        return 2
    from headgate.brokers import KafkaBroker
    from headgate.runtime.session import get_session
    from tests.nemesis.cut_windows import CutWindows

    folder = Path(tempfile.mkdtemp(prefix="headgate-power-cut-"))
    with KafkaBroker(folder / "kafka") as broker:
        soak = CutWindows(folder, broker.servers, cuts=options.cuts, seed=options.seed)
        soak.run()
        spark = get_session(parallelism=2)
        soak.assert_truth(spark)
        spark.stop()
    shutil.rmtree(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
