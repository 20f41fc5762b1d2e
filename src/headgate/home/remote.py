"""Small files under an fsspec URL: file systems that neither obstore nor WebHDFS reaches."""

from __future__ import annotations

import builtins
import contextlib
import shutil
import uuid
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from headgate.base.errors import HeadgateError, StorageError, UsageError

if TYPE_CHECKING:
    from headgate.home.files import Files

# In these a written object appears whole or not at all, so a write aside would only cost a copy.
_WHOLE_WRITES = {"memory", "oss", "adl"}


class RemoteFiles:
    """An fsspec URL such as ``oss://bucket/headgate``."""

    conditional = False

    def __init__(self, url: str) -> None:
        import fsspec.core  # only homes that are not local pay for it

        self.url = url.rstrip("/")
        try:
            self._fs, self._root = fsspec.core.url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise UsageError(
                f"the home {url} cannot be opened ({error})",
                remedy="install the fsspec package for this kind of URL, or use a folder",
            ) from error
        self._whole = url.partition(":")[0] in _WHOLE_WRITES

    def location(self, path: str = "") -> str:
        """The path as Spark takes it."""
        return f"{self.url}/{path}" if path else self.url

    def address(self, path: str = "") -> str:
        """The path as ``open_files`` takes it."""
        return self.location(path)

    def local(self, path: str = "") -> Path | None:
        """Nothing: the store is elsewhere."""
        return None

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        with self._clear("read", path):
            return bool(self._fs.exists(self._at(path)))

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted."""
        return sorted(name for name in self.names(path) if not name.startswith("."))

    def names(self, path: str) -> builtins.list[str]:
        """All names in a folder."""
        with self._clear("list", path):
            self._fs.invalidate_cache()
            try:
                entries = self._fs.ls(self._at(path), detail=False)
            except FileNotFoundError:
                return []
        names = {str(entry).rstrip("/").rpartition("/")[2] for entry in entries}
        return [name for name in names if name]

    def read_text(self, path: str) -> str | None:
        """A file's text, or nothing."""
        with self._clear("read", path):
            try:
                data: bytes = self._fs.cat_file(self._at(path))
            except (FileNotFoundError, IsADirectoryError):
                return None
        return data.decode("utf-8")

    def open(self, path: str) -> BinaryIO:
        """A file's bytes."""
        with self._clear("read", path):
            file: BinaryIO = self._fs.open(self._at(path), "rb")
            return file

    def size(self, path: str) -> int | None:
        """A file's size, or nothing."""
        with self._clear("read", path):
            try:
                return int(self._fs.size(self._at(path)))
            except FileNotFoundError:
                return None

    def write_text(self, path: str, text: str) -> None:
        """Write a whole object, aside first where a reader could see a part."""
        target = self._at(path)
        folder, _, name = target.rpartition("/")
        with self._clear("write", path):
            self._fs.makedirs(folder, exist_ok=True)
            if self._whole:
                self._fs.pipe_file(target, text.encode("utf-8"))
            else:
                aside = f"{folder}/.{name}.{uuid.uuid4().hex}"
                self._fs.pipe_file(aside, text.encode("utf-8"))
                self._fs.mv(aside, target)

    def read_versioned(self, path: str) -> tuple[str, Any] | None:
        """A file's text; its version is the text itself."""
        text = self.read_text(path)
        return None if text is None else (text, text)

    def write_if(self, path: str, text: str, version: Any) -> bool:
        """Look, then write: nothing keeps others out between the two."""
        if self.read_text(path) != version:
            return False
        self.write_text(path, text)
        return True

    def sync(self, path: str) -> None:
        """Nothing to do: an object that is written is there."""

    def withdraw(self, path: str) -> None:
        """Delete an object."""
        self.delete(path)

    def delete(self, path: str) -> None:
        """Delete a file if it is there."""
        with self._clear("delete", path), contextlib.suppress(FileNotFoundError):
            self._fs.rm_file(self._at(path))

    def delete_tree(self, path: str) -> None:
        """Delete a folder if it is there."""
        with self._clear("delete", path), contextlib.suppress(FileNotFoundError):
            self._fs.rm(self._at(path), recursive=True)

    def modified(self, path: str) -> float | None:
        """When a file was last written, if the store knows."""
        try:
            when: Any = self._fs.modified(self._at(path))
        except (FileNotFoundError, NotImplementedError):
            return None
        return when.timestamp() if isinstance(when, datetime) else None

    def walk(self, path: str) -> Iterator[str]:
        """Every file under a folder."""
        root = self._at(path)
        with self._clear("list", path):
            self._fs.invalidate_cache()
            found = sorted(self._fs.find(root))
        for name in found:
            yield str(name)[len(root) :].lstrip("/")

    def link(self, source: str, target: str) -> None:
        """A copy within the store."""
        with self._clear("write", target):
            self._fs.makedirs(self._at(target).rpartition("/")[0], exist_ok=True)
            self._fs.cp_file(self._at(source), self._at(target))

    def receive(self, source: Files, path: str, target: str, *, link: bool = True) -> None:
        """A copy through this process."""
        with self._clear("write", target), source.open(path) as data:
            self._fs.makedirs(self._at(target).rpartition("/")[0], exist_ok=True)
            with self._fs.open(self._at(target), "wb") as file:
                shutil.copyfileobj(data, file, 1 << 20)

    @contextlib.contextmanager
    def locked(self, path: str, *, timeout: float = 10.0) -> Iterator[bool]:
        """No lock: gives False."""
        yield False  # object stores have no locks: callers write, wait and read back

    def _at(self, path: str) -> str:
        return f"{self._root.rstrip('/')}/{path}" if path else self._root

    @contextlib.contextmanager
    def _clear(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except (HeadgateError, FileNotFoundError, IsADirectoryError):
            raise
        except Exception as error:  # every store has errors of its own
            raise StorageError(
                f"cannot {verb} {self.location(path)}: {str(error) or type(error).__name__}",
                remedy="check the address, the credentials and the rights of this user",
            ) from error
