"""Where homes can be: a disk, and real servers of S3 and HDFS on loopback."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from tests.homes.hdfs import HdfsServer
from tests.homes.s3 import KEYS, S3Server


class Place(Protocol):
    """A kind of store in which a test can make homes."""

    name: str
    waits_for_sections: bool
    """Whether who takes a job over waits for a commit of the old driver, frozen or not."""

    def home(self, name: str) -> str:
        """The address of a home that is not there yet."""


class Disk:
    """Folders."""

    name = "disk"
    waits_for_sections = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def home(self, name: str) -> str:
        return str(self._folder / name)


class S3:
    """A bucket of moto's server."""

    name = "s3"
    waits_for_sections = False

    def __init__(self, server: S3Server) -> None:
        self.server = server
        self._bucket = server.bucket("headgate-homes")

    def home(self, name: str) -> str:
        return self.server.url(self._bucket, f"some/{name}")


class Hdfs:
    """Folders of Hadoop's mini cluster."""

    name = "hdfs"
    waits_for_sections = False

    def __init__(self, server: HdfsServer) -> None:
        self._server = server

    def home(self, name: str) -> str:
        return f"{self._server.url}/some/{name}"


@contextlib.contextmanager
def open_place(kind: str, folder: Path) -> Iterator[Place]:
    """A place of a kind, with its server if it has one; S3's keys are in the environment."""
    if kind == "disk":
        yield Disk(folder)
        return
    server = HdfsServer(folder) if kind == "hdfs" else S3Server(folder)
    try:
        yield Hdfs(server) if isinstance(server, HdfsServer) else S3(server)
    finally:
        server.stop()


ENVIRONMENT = KEYS
