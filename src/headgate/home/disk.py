"""What must survive a power cut: files and folders of this machine, brought to its disk."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_THREADS = 8  # the disk serves several with one flush
_NO_FOLDERS = (errno.EINVAL, errno.ENOTSUP)  # of file systems that sync no folders


def make_folder(path: Path) -> None:
    """Make a folder with those above it; each new one is known on the disk to the one above."""
    if path.is_dir():
        return
    if path.parent != path:
        make_folder(path.parent)
    path.mkdir(exist_ok=True)  # another process may have been first
    sync_folder(path.parent)


def sync_file(path: Path) -> None:
    """Bring a file's bytes to the disk; not an error if it is gone."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(folder: Path) -> None:
    """Bring a folder's names to the disk: without it a rename may be lost with the power."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except (PermissionError, FileNotFoundError):
        return  # somebody else's folder, which is not ours to sync, or one that is gone
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDERS:
            raise
    finally:
        os.close(handle)


def sync_tree(root: Path) -> None:
    """Bring all that is in a folder to the disk: files first, then the names of folders."""
    files: list[Path] = []
    folders: list[Path] = []
    for folder, _, names in os.walk(root):
        folders.append(Path(folder))
        files += (Path(folder) / name for name in names)
    if folders:
        _all(sync_file, files)
        _all(sync_folder, [*folders, *_above(root)])


def _above(folder: Path) -> Iterator[Path]:
    """The folders above one, on its own file system: whoever made them may not have synced them."""
    device = folder.stat().st_dev
    for parent in folder.parents:
        if parent.stat().st_dev != device:
            return
        yield parent


def _all(sync: Callable[[Path], None], paths: Iterable[Path]) -> None:
    with ThreadPoolExecutor(_THREADS) as pool:
        for _ in pool.map(sync, paths):
            pass
