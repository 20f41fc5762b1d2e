"""The disk under a folder: whether it is full or read-only, said in a sentence."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DiskTrouble:
    """What is wrong with a disk."""

    full: bool
    """Else it is read-only."""
    path: str
    free: int

    def sentence(self, what: str) -> str:
        """What is wrong, with its place.

        >>> DiskTrouble(False, "/data/home", 0).sentence("the disk of the home")
        'the disk of the home is read-only (/data/home)'
        """
        if not self.full:
            return f"{what} is read-only ({self.path})"
        return f"{what} is full ({self.path} has {self.free / 1024:,.0f} KB free)"


# Less than the smallest thing that a batch writes, in blocks of an ordinary file system.
_LITTLE = 8 * 4096


def disk_trouble(path: str | os.PathLike[str]) -> DiskTrouble | None:
    """What keeps the disk under a folder from being written to, as far as it says so."""
    folder = Path(path)
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    if found.f_flag & os.ST_RDONLY:
        return DiskTrouble(False, str(folder), 0)
    blocks = found.f_bfree if os.geteuid() == 0 else found.f_bavail
    free = blocks * found.f_frsize
    files = found.f_ffree if os.geteuid() == 0 else found.f_favail
    if found.f_blocks and (free < _LITTLE or (found.f_files and files == 0)):
        return DiskTrouble(True, str(folder), free)
    return None
