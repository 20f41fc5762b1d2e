"""A small disk for a home, which a test can fill up, make read-only and bring back."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

MOUNTS = sys.platform == "linux" and os.geteuid() == 0
"""Whether this process may mount file systems."""

needs_mounts = pytest.mark.skipif(
    not MOUNTS,
    reason="mounts a file system of its own, for which one must be root on Linux",
)


class SmallDisk:
    """A tmpfs that is mounted on a folder."""

    def __init__(self, folder: Path, megabytes: int) -> None:
        self.folder = folder
        self._ballast = folder / "ballast"
        folder.mkdir(parents=True)
        _run("mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(folder))

    def fill(self) -> None:
        """Leave no room, whatever is deleted meanwhile."""
        with open(self._ballast, "ab", buffering=0) as file:
            for size in (1 << 20, 4096):
                try:
                    while True:
                        file.write(bytes(size))
                except OSError:
                    pass

    def free(self) -> None:
        """Make room again."""
        self._ballast.unlink()

    def read_only(self, yes: bool) -> None:
        """Switch writing off or on for everybody."""
        # a file that is open for writing keeps a plain remount from being done
        _run("mount", "-o", f"remount,bind,{'ro' if yes else 'rw'}", str(self.folder))

    def close(self) -> None:
        """Take the disk away."""
        _run("umount", "-l", str(self.folder))


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[SmallDisk]:
    """A small disk for the time of a test."""
    disk = SmallDisk(folder, megabytes)
    try:
        yield disk
    finally:
        disk.close()


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=30)
