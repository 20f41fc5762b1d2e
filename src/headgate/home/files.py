"""Small files in a folder or under a URL: whole-file writes, listings, links and locks."""

from __future__ import annotations

import builtins
import contextlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, Protocol
from urllib.parse import unquote, urlparse

from headgate.base.errors import HeadgateError, StorageError, UsageError
from headgate.base.locks import file_lock
from headgate.base.store_url import StoreUrl
from headgate.home.disk import sync_folder, sync_tree
from headgate.home.modes import OPEN, Modes, home_modes, make_folder

HADOOP = ("hdfs", "viewfs", "ofs")
"""What Spark's own jars reach, and Python through them."""
_REMOTE = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+:")


class Files(Protocol):
    """What the home needs of a store; a path is relative to the store's root, with slashes."""

    url: str
    conditional: bool
    """Whether the store itself decides between two that write one file (``write_if``)."""

    def location(self, path: str = "") -> str:
        """The path as Spark takes it: absolute on a local disk, else a URL."""

    def address(self, path: str = "") -> str:
        """The path as ``open_files`` takes it."""

    def local(self, path: str = "") -> Path | None:
        """The path on this machine's disk, or nothing when the store is elsewhere."""

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted, without unfinished writes; empty if there is none."""

    def names(self, path: str) -> builtins.list[str]:
        """All names in a folder, hidden ones too; empty if there is none."""

    def read_text(self, path: str) -> str | None:
        """A file's text, or nothing if there is no such file."""

    def open(self, path: str) -> BinaryIO:
        """A file's bytes, to be closed by the caller; FileNotFoundError if there is none."""

    def size(self, path: str) -> int | None:
        """A file's size in bytes, or nothing if there is no such file."""

    def write_text(self, path: str, text: str) -> None:
        """Write a whole file so that a reader sees the old one or the new one, never a part."""

    def read_versioned(self, path: str) -> tuple[str, Any] | None:
        """A file's text, and what ``write_if`` takes to replace no other; or nothing."""

    def write_if(self, path: str, text: str, version: Any) -> bool:
        """Write a file if it is still that version (None: not there); whether it was written.

        Where the store is not ``conditional``, the caller holds a lock or can do without.
        """

    def sync(self, path: str) -> None:
        """Return when a folder, with all that is in it, would survive a power cut."""

    def delete(self, path: str) -> None:
        """Delete a file; not an error if it is gone."""

    def withdraw(self, path: str) -> None:
        """Delete a file that vouches for others, before they go: it does not come back."""

    def delete_tree(self, path: str) -> None:
        """Delete a folder with all that is in it; not an error if it is gone."""

    def modified(self, path: str) -> float | None:
        """When a file was last written, in seconds since 1970, if the store knows."""

    def walk(self, path: str) -> Iterator[str]:
        """Every file under a folder, as paths relative to that folder."""

    def link(self, source: str, target: str) -> None:
        """Make target the same file as source: a hard link where there is one, else a copy.

        It survives a power cut only after ``sync``, as does what was received.
        """

    def receive(self, source: Files, path: str, target: str, *, link: bool = True) -> None:
        """Copy a file of another store to this one; may be a link if both are on one disk."""

    def locked(self, path: str, *, timeout: float = 10.0) -> AbstractContextManager[bool]:
        """Hold a lock between processes; gives False where the store has no locks."""


def open_files(url: str | os.PathLike[str], *, home: bool = False) -> Files:
    """Open a folder or a URL; `home` if jobs are to be kept in it.

    >>> open_files("/data/home").location("jobs")
    '/data/home/jobs'
    """
    text = os.fspath(url)
    if not text:
        raise UsageError(
            "the home must be a folder or a URL",
            got="empty text",
            remedy="name one with --home or HEADGATE_HOME",
        )
    if text.startswith("file:"):
        return LocalFiles(Path(unquote(urlparse(text).path)), home=home)
    if (store := StoreUrl.parse(text)) is not None:
        from headgate.home.objects import ObjectFiles

        return ObjectFiles(store)
    if text.partition("://")[0] in HADOOP:
        from headgate.home.hadoop_files import HadoopFiles

        return HadoopFiles(text)
    if _REMOTE.match(text):
        from headgate.home.remote import RemoteFiles

        return RemoteFiles(text)
    return LocalFiles(Path(text), home=home)


def read_json(files: Files, path: str) -> dict[str, Any] | None:
    """Read a JSON object, or nothing if there is no such file."""
    try:
        text = files.read_text(path)
    except UnicodeDecodeError as error:
        raise _not_json(files.location(path), error) from error
    return None if text is None else parse_json(text, files.location(path))


def _not_json(where: str, error: ValueError) -> HeadgateError:
    return HeadgateError(
        f"{where} is not valid JSON ({error})",
        code="DAMAGED",
        remedy="it was damaged outside Headgate; restore it from a backup or delete it",
    )


def parse_json(text: str, where: str) -> dict[str, Any]:
    """The JSON object that a file holds."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise _not_json(where, error) from error
    if not isinstance(data, dict):
        raise HeadgateError(
            f"{where} does not hold a JSON object",
            code="DAMAGED",
            remedy="it was changed outside Headgate; restore it from a backup or delete it",
        )
    return data


def write_json(files: Files, path: str, data: Mapping[str, Any]) -> None:
    """Write a JSON object as a whole file."""
    files.write_text(path, json_text(data))


def json_text(data: Mapping[str, Any]) -> str:
    """A JSON object as the home's files have it."""
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


class LocalFiles:
    """A folder on a local or mounted disk; that of a home is its owner's alone."""

    conditional = False

    def __init__(self, root: Path, *, home: bool = False) -> None:
        self._home = home
        self.root = root.expanduser().absolute()
        self.url = str(self.root)

    def location(self, path: str = "") -> str:
        """The path as Spark takes it."""
        return str(self.root / path) if path else str(self.root)

    def address(self, path: str = "") -> str:
        """The path as ``open_files`` takes it."""
        return self.location(path)

    def local(self, path: str = "") -> Path | None:
        """The path on this machine's disk."""
        return self.root / path if path else self.root

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        with self._clear("read", path):
            return self._at(path).exists()

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted; hidden ones are unfinished writes."""
        return sorted(name for name in self.names(path) if not name.startswith("."))

    def names(self, path: str) -> builtins.list[str]:
        """All names in a folder."""
        with self._clear("list", path):
            try:
                return os.listdir(self._at(path))
            except (FileNotFoundError, NotADirectoryError):
                return []

    def read_text(self, path: str) -> str | None:
        """A file's text, or nothing."""
        with self._clear("read", path):
            try:
                return self._at(path).read_text(encoding="utf-8")
            except (FileNotFoundError, NotADirectoryError):
                return None

    def open(self, path: str) -> BinaryIO:
        """A file's bytes."""
        with self._clear("read", path):
            return self._at(path).open("rb")

    def size(self, path: str) -> int | None:
        """A file's size, or nothing."""
        with self._clear("read", path):
            try:
                return self._at(path).stat().st_size
            except (FileNotFoundError, NotADirectoryError):
                return None

    def write_text(self, path: str, text: str) -> None:
        """Write aside, sync, rename."""
        target = self._at(path)
        aside = target.with_name(f".{target.name}.{uuid.uuid4().hex}")
        with self._clear("write", path):
            modes = self._make_folder(target.parent)
            try:
                with open(aside, "w", encoding="utf-8", opener=_with(modes.file)) as file:
                    file.write(text)
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(aside, target)
            except BaseException:
                aside.unlink(missing_ok=True)
                raise
            sync_folder(target.parent)

    def read_versioned(self, path: str) -> tuple[str, Any] | None:
        """A file's text; its version is the text itself."""
        text = self.read_text(path)
        return None if text is None else (text, text)

    def write_if(self, path: str, text: str, version: Any) -> bool:
        """Look, then write: the caller holds a lock."""
        if self.read_text(path) != version:
            return False
        self.write_text(path, text)
        return True

    def sync(self, path: str) -> None:
        """Sync files, then folders."""
        with self._clear("write", path):
            sync_tree(self._at(path))

    def delete(self, path: str) -> None:
        """Delete a file if it is there."""
        with self._clear("delete", path):
            self._at(path).unlink(missing_ok=True)

    def withdraw(self, path: str) -> None:
        """Delete a file and sync its folder."""
        self.delete(path)
        sync_folder(self._at(path).parent)

    def delete_tree(self, path: str) -> None:
        """Delete a folder if it is there."""
        with self._clear("delete", path), contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self._at(path))

    def modified(self, path: str) -> float | None:
        """When a file was last written."""
        with self._clear("read", path):
            try:
                return self._at(path).stat().st_mtime
            except FileNotFoundError:
                return None

    def walk(self, path: str) -> Iterator[str]:
        """Every file under a folder."""
        root = self._at(path)
        for folder, folders, names in os.walk(root):
            folders.sort()
            for name in sorted(names):
                yield (Path(folder) / name).relative_to(root).as_posix()

    def link(self, source: str, target: str) -> None:
        """A hard link, or a copy where there are none."""
        self._link(self._at(source), target)

    def receive(self, source: Files, path: str, target: str, *, link: bool = True) -> None:
        """A hard link from a folder on the same disk, else a copy."""
        local = source.local(path)
        if local is not None and link:
            self._link(local, target)
            return
        new = self._at(target)
        with self._clear("write", target), source.open(path) as data:
            modes = self._make_folder(new.parent)
            with open(new, "wb", opener=_with(modes.file)) as file:
                shutil.copyfileobj(data, file, 1 << 20)

    def _link(self, old: Path, target: str) -> None:
        new = self._at(target)
        with self._clear("write", target):
            self._make_folder(new.parent)
            try:
                os.link(old, new)
            except (FileNotFoundError, FileExistsError):
                raise
            except OSError:  # another disk, or a file system without hard links
                shutil.copy2(old, new)

    @contextlib.contextmanager
    def locked(self, path: str, *, timeout: float = 10.0) -> Iterator[bool]:
        """Hold an advisory lock on a file."""
        target = self._at(path)
        with contextlib.ExitStack() as held:
            with self._clear("lock", path):
                modes = self._make_folder(target.parent)
                held.enter_context(file_lock(target, timeout=timeout, mode=modes.lock))
            yield True

    def _make_folder(self, folder: Path) -> Modes:
        """Make a folder if it is missing; gives the modes of what is written in it."""
        modes = home_modes(self.root) if self._home else OPEN
        make_folder(folder, self.root, modes)
        return modes

    def _at(self, path: str) -> Path:
        return self.root / path

    @contextlib.contextmanager
    def _clear(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except PermissionError as error:
            raise StorageError(
                f"cannot {verb} {self._at(path)}: permission denied",
                remedy="make the home readable and writable for this user, or choose another "
                "with --home or HEADGATE_HOME",
            ) from error
        except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
            raise StorageError(
                f"cannot {verb} {self._at(path)}: a file is where a folder should be, or the "
                "other way round",
                remedy="choose another home with --home or HEADGATE_HOME",
            ) from error
        except FileNotFoundError:
            raise
        except OSError as error:
            raise StorageError(
                f"cannot {verb} {self._at(path)}: {error.strerror or error}",
                remedy="check that the disk is mounted, writable and not full",
            ) from error


def _with(mode: int) -> Callable[[str, int], int]:
    return lambda path, flags: os.open(path, flags, mode)
