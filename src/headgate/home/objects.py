"""Small files in an object store: one object a file, one request a write, conditions by the store.

A folder is what stands before the last slash of a name: none is made, none is looked for before a
write. Some writers leave empty objects whose names end with a slash, to mark a folder; those are
no files here.
"""

from __future__ import annotations

import builtins
import contextlib
import io
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from headgate.base.errors import HeadgateError, StorageError
from headgate.base.store_url import StoreUrl
from headgate.home.object_stores import open_bucket

if TYPE_CHECKING:
    from headgate.home.files import Files

_COPY_CHUNK = 8 << 20


class ObjectFiles:
    """A prefix in a bucket, such as ``s3://bucket/headgate``."""

    conditional = True

    def __init__(self, url: StoreUrl) -> None:
        self.place = url
        self.url = url.address()
        self.bucket = open_bucket(StoreUrl(url.kind, url.bucket, "", url.options))

    def location(self, path: str = "") -> str:
        """The path as Spark takes it."""
        return self.place.spark(path)

    def address(self, path: str = "") -> str:
        """The path as ``open_files`` takes it."""
        return self.place.address(path)

    def local(self, path: str = "") -> Path | None:
        """Nothing: the store is elsewhere."""
        return None

    def exists(self, path: str) -> bool:
        """Whether a file or folder is there."""
        return self.size(path) is not None or self._has_files(path)

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted."""
        return sorted(name for name in self.names(path) if not name.startswith("."))

    def names(self, path: str) -> builtins.list[str]:
        """All names in a folder."""
        import obstore

        key = self.place.key(path)
        with self._clear("list", path):
            found = obstore.list_with_delimiter(self.bucket, key or None)
        objects = [one["path"] for one in found["objects"] if one["path"] != key]
        names = {name.rpartition("/")[2] for name in [*objects, *found["common_prefixes"]]}
        return [name for name in names if name]

    def read_text(self, path: str) -> str | None:
        """A file's text, or nothing."""
        found = self.read_versioned(path)
        return None if found is None else found[0]

    def read_versioned(self, path: str) -> tuple[str, Any] | None:
        """A file's text, and what ``write_if`` takes to replace no other; or nothing."""
        import obstore

        with self._clear("read", path):
            try:
                found = obstore.get(self.bucket, self.place.key(path))
                data = bytes(found.bytes())
            except FileNotFoundError:
                return None
            return data.decode("utf-8"), _version(found.meta)

    def open(self, path: str) -> BinaryIO:
        """A file's bytes, by one request."""
        import obstore

        with self._clear("read", path):
            found = obstore.get(self.bucket, self.place.key(path))
        return cast(BinaryIO, io.BufferedReader(_Chunks(iter(found))))

    def size(self, path: str) -> int | None:
        """A file's size, or nothing."""
        found = self._head(path)
        return None if found is None else int(found["size"])

    def write_text(self, path: str, text: str) -> None:
        """Write a whole object."""
        import obstore

        with self._clear("write", path):
            obstore.put(self.bucket, self.place.key(path), text.encode("utf-8"))

    def write_if(self, path: str, text: str, version: Any) -> bool:
        """Write a file if it is still that version, or is not there if that is None.

        The store decides. A client that did not get its answer asks again and then meets its own
        object, and that counts as not written: the caller reads again and finds its change.
        """
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        mode: Any = "create" if version is None else version
        with self._clear("write", path):
            try:
                obstore.put(self.bucket, self.place.key(path), text.encode("utf-8"), mode=mode)
            except (AlreadyExistsError, PreconditionError, FileNotFoundError):
                return False
        return True

    def sync(self, path: str) -> None:
        """Nothing to do: an object that is written is there."""

    def withdraw(self, path: str) -> None:
        """Delete an object."""
        self.delete(path)

    def delete(self, path: str) -> None:
        """Delete a file if it is there."""
        import obstore

        with self._clear("delete", path), contextlib.suppress(FileNotFoundError):
            obstore.delete(self.bucket, self.place.key(path))

    def delete_tree(self, path: str) -> None:
        """Delete a folder if it is there."""
        import obstore

        with self._clear("delete", path), contextlib.suppress(FileNotFoundError):
            for found in obstore.list(self.bucket, self.place.key(path) or None):
                if found:
                    obstore.delete(self.bucket, [one["path"] for one in found])

    def modified(self, path: str) -> float | None:
        """When a file was last written."""
        found = self._head(path)
        return None if found is None else float(found["last_modified"].timestamp())

    def walk(self, path: str) -> Iterator[str]:
        """Every file under a folder."""
        import obstore

        key = self.place.key(path)
        with self._clear("list", path):
            found = [one for some in obstore.list(self.bucket, key or None) for one in some]
        # obstore leaves the slash at the end of a name out; the home has no empty files
        names = sorted(one["path"] for one in found if one["size"] > 0 and one["path"] != key)
        for name in names:
            yield name[len(key) :].lstrip("/")

    def link(self, source: str, target: str) -> None:
        """A copy within the store, by the store."""
        self._copy(self.place.key(source), target)

    def receive(self, source: Files, path: str, target: str, *, link: bool = True) -> None:
        """A copy by the store from the same bucket, else through this process."""
        import obstore

        if getattr(source, "bucket", None) is self.bucket:  # also behind files that wait
            self._copy(cast(ObjectFiles, source).place.key(path), target)
            return
        with self._clear("write", target), source.open(path) as data:
            chunks = iter(partial(data.read, _COPY_CHUNK), b"")
            obstore.put(self.bucket, self.place.key(target), chunks)

    @contextlib.contextmanager
    def locked(self, path: str, *, timeout: float = 10.0) -> Iterator[bool]:
        """No lock: gives False."""
        yield False  # see ``write_if``

    def _copy(self, key: str, target: str) -> None:
        import obstore

        with self._clear("write", target):
            obstore.copy(self.bucket, key, self.place.key(target))

    def _head(self, path: str) -> Any:
        import obstore

        with self._clear("read", path):
            try:
                return obstore.head(self.bucket, self.place.key(path))
            except FileNotFoundError:
                return None

    def _has_files(self, path: str) -> bool:
        import obstore

        with self._clear("list", path):
            pages = obstore.list(self.bucket, self.place.key(path) or None)
            return any(one["size"] > 0 for page in pages for one in page)

    @contextlib.contextmanager
    def _clear(self, verb: str, path: str) -> Iterator[None]:
        try:
            yield
        except (HeadgateError, FileNotFoundError):
            raise
        except Exception as error:  # every store has errors of its own
            said = (str(error) or type(error).__name__).partition("\n")[0]
            raise StorageError(
                f"cannot {verb} {self.location(path)}: {said}",
                remedy="check the address, the credentials and the rights of this user",
            ) from error


class _Chunks(io.RawIOBase):
    """What a request brings, as a file that is read from its beginning to its end."""

    def __init__(self, chunks: Iterator[Any]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        """Yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with what is there next."""
        while not self._rest:
            chunk = next(self._chunks, None)
            if chunk is None:
                return 0
            self._rest = memoryview(bytes(chunk))
        count = min(len(buffer), len(self._rest))
        buffer[:count] = self._rest[:count]
        self._rest = self._rest[count:]
        return count


def _version(meta: Any) -> dict[str, str]:
    """What names one version of an object: Google counts them, the others have tags."""
    names = ("e_tag", "version")
    return {name: meta[name] for name in names if meta.get(name) is not None}
