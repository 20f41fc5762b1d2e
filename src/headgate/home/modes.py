"""Who may read a home on a local or mounted disk: its owner alone, unless configured otherwise.

The folder `jobs` of a home carries the decision: what is below it is as open as that folder is. So
a home that others could read before stays as it is, and `chmod` changes one.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from headgate.base.errors import UsageError
from headgate.home.disk import make_folder as make_folder_on_disk
from headgate.home.disk import sync_folder

VARIABLE = "HEADGATE_HOME_MODE"
PRIVATE, SHARED = "private", "shared"


@dataclass(frozen=True)
class Modes:
    """The modes of new files and folders, before the umask."""

    file: int = 0o666
    folder: int = 0o777
    lock: int = 0o644


OPEN = Modes()
OWN = Modes(0o600, 0o700, 0o600)


def home_modes(home: Path) -> Modes:
    """The modes of a home: those of its jobs, else those configured for a new home."""
    try:
        mode = stat.S_IMODE((home / "jobs").stat().st_mode)
    except OSError:
        return OPEN if asked_mode() == SHARED else OWN
    return OPEN if mode & 0o077 else OWN


def asked_mode() -> str:
    """What HEADGATE_HOME_MODE says of new homes."""
    value = os.environ.get(VARIABLE) or PRIVATE
    if value not in (PRIVATE, SHARED):
        raise UsageError(
            f"{VARIABLE} must be {PRIVATE} or {SHARED}",
            got=repr(value),
            remedy=f"unset it, or set {VARIABLE}={SHARED} to let the umask decide",
        )
    return value


def make_folder(folder: Path, root: Path, modes: Modes) -> None:
    """Make a folder with those above it, on the disk too; above the root modes are the umask's."""
    if folder.is_dir():
        return
    if folder == root or root not in folder.parents:
        make_folder_on_disk(folder.parent)
    else:
        make_folder(folder.parent, root, modes)
    folder.mkdir(mode=modes.folder, exist_ok=True)
    sync_folder(folder.parent)
