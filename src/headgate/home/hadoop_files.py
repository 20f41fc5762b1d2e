"""Small files in a file system that Hadoop reaches (``hdfs://``), through a JVM without Spark.

Python has no client for HDFS that needs nothing else: libhdfs is native code that must match the
cluster's, and WebHDFS is another door to it, often closed. Spark's jars hold the client that Spark
itself uses, with the cluster's own settings and Kerberos tickets. So one Java process a cluster is
started, asked over pipes (``FileServer.scala``), and ends with this one.
"""

from __future__ import annotations

import atexit
import base64
import builtins
import contextlib
import io
import json
import os
import subprocess
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from headgate.base.errors import StorageError

if TYPE_CHECKING:
    from headgate.home.files import Files

_SERVER = "org.apache.spark.sql.headgate.api.FileServer"
_CHUNK = 4 << 20
_servers: dict[str, _Server] = {}
_guard = threading.Lock()


class HadoopFiles:
    """A folder of a Hadoop file system, such as ``hdfs://namenode:8020/headgate``."""

    conditional = True

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        scheme, _, rest = self.url.partition("://")
        host, _, self._folder = rest.partition("/")
        self._system = f"{scheme}://{host}/"

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
        return bool(self._ask("read", "exists", path)["value"])

    def list(self, path: str) -> list[str]:
        """Names in a folder, sorted."""
        return sorted(name for name in self.names(path) if not name.startswith("."))

    def names(self, path: str) -> builtins.list[str]:
        """All names in a folder."""
        try:
            return [str(name) for name in self._ask("list", "names", path)["value"]]
        except FileNotFoundError:
            return []

    def read_text(self, path: str) -> str | None:
        """A file's text, or nothing."""
        try:
            data = self._ask("read", "read", path)["data"]
        except FileNotFoundError:
            return None
        return base64.b64decode(data).decode("utf-8")

    def read_versioned(self, path: str) -> tuple[str, Any] | None:
        """A file's text; its version is the text itself."""
        text = self.read_text(path)
        return None if text is None else (text, text)

    def open(self, path: str) -> BinaryIO:
        """A file's bytes, a part at a time."""
        found = self._ask("read", "status", path)
        return cast(BinaryIO, io.BufferedReader(_Parts(self, path, int(found["size"])), _CHUNK))

    def size(self, path: str) -> int | None:
        """A file's size, or nothing."""
        try:
            return int(self._ask("read", "status", path)["size"])
        except FileNotFoundError:
            return None

    def write_text(self, path: str, text: str) -> None:
        """Write aside, then rename."""
        self._ask("write", "write", path, data=_encoded(text.encode("utf-8")))

    def write_if(self, path: str, text: str, version: Any) -> bool:
        """Write a file if it is still that version (None: not there); whether it was written."""
        data = _encoded(text.encode("utf-8"))
        written = self._ask("write", "write_if", path, data=data, version=version)["value"]
        return bool(written)

    def sync(self, path: str) -> None:
        """Nothing to do: what is written is on the disks of data nodes."""

    def withdraw(self, path: str) -> None:
        """Delete a file."""
        self.delete(path)

    def delete(self, path: str) -> None:
        """Delete a file if it is there."""
        self._ask("delete", "delete", path)

    def delete_tree(self, path: str) -> None:
        """Delete a folder if it is there."""
        self._ask("delete", "delete_tree", path)

    def modified(self, path: str) -> float | None:
        """When a file was last written."""
        try:
            return float(self._ask("read", "status", path)["modified"]) / 1000
        except FileNotFoundError:
            return None

    def walk(self, path: str) -> Iterator[str]:
        """Every file under a folder."""
        with contextlib.suppress(FileNotFoundError):
            yield from sorted(str(name) for name in self._ask("list", "walk", path)["value"])

    def link(self, source: str, target: str) -> None:
        """A copy, by the Java process."""
        self._ask("write", "copy", target, source=self._key(source))

    def receive(self, source: Files, path: str, target: str, *, link: bool = True) -> None:
        """A copy through this process."""
        id = uuid.uuid4().hex
        with source.open(path) as data:
            more = True
            while more:
                chunk = data.read(_CHUNK)
                more = bool(chunk)
                self._ask("write", "upload", target, id=id, data=_encoded(chunk), last=not more)

    @contextlib.contextmanager
    def locked(self, path: str, *, timeout: float = 10.0) -> Iterator[bool]:
        """No lock: gives False."""
        yield False  # see ``write_if``

    def part(self, path: str, offset: int, length: int) -> bytes:
        """Some bytes of a file."""
        return base64.b64decode(
            self._ask("read", "read", path, offset=offset, length=length)["data"]
        )

    def _key(self, path: str) -> str:
        return "/".join(part for part in (self._folder, path) if part)

    def _ask(self, verb: str, op: str, path: str, **more: Any) -> dict[str, Any]:
        try:
            reply = _server(self._system).ask({"op": op, "path": self._key(path), **more})
        except OSError as error:
            reply = {"error": f"the Java process that reaches it has ended ({error})"}
        if "missing" in reply:
            raise FileNotFoundError(self.location(path))
        if "error" in reply:
            raise StorageError(
                f"cannot {verb} {self.location(path)}: {reply['error']}",
                remedy="check the address, HADOOP_CONF_DIR and the rights of this user",
            )
        return reply


class _Parts(io.RawIOBase):
    def __init__(self, files: HadoopFiles, path: str, size: int) -> None:
        self._files, self._path, self._size, self._at = files, path, size, 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if self._at >= self._size:
            return 0
        data = self._files.part(self._path, self._at, min(len(buffer), _CHUNK))
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)


class _Server:
    """The Java process of one cluster: a request at a time."""

    def __init__(self, system: str) -> None:
        from headgate.jvm.java import find_java
        from headgate.jvm.spark_jars import KERNEL_JAR, find_spark_jars

        settings = [os.environ[v] for v in ("HADOOP_CONF_DIR",) if os.environ.get(v)]
        quiet = Path(__file__).parent.parent / "resources" / "log4j2.properties"
        path = [*settings, str(KERNEL_JAR), f"{find_spark_jars().folder}/*"]
        self._process = subprocess.Popen(
            [str(find_java().executable), "-Xmx512m", "-XX:TieredStopAtLevel=1",
             f"-Dlog4j2.configurationFile={quiet.as_uri()}",
             "-cp", os.pathsep.join(path), _SERVER, system],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the command: it still has to write
        )  # fmt: skip
        self._lock = threading.Lock()

    @property
    def lives(self) -> bool:
        return self._process.poll() is None

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps(request).encode("utf-8") + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        if not line:
            raise OSError("no answer")
        reply: dict[str, Any] = json.loads(line)
        return reply

    def end(self) -> None:
        if self.lives:
            self._process.kill()
        self._process.wait()


def _server(system: str) -> _Server:
    with _guard:
        found = _servers.get(system)
        if found is None or not found.lives:
            found = _servers[system] = _Server(system)
            atexit.register(found.end)
        return found


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
