"""Machines of their own, as far as namespaces make them: a network address, and no disk of ours."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyspark

import headgate
from headgate.jvm.java import find_java

_ASIDE = "/mnt"  # each host has a disk of its own there


class Network:
    """A bridge that this machine and some hosts are on."""

    def __init__(self) -> None:
        self._name = f"hg{os.getpid() % 100_000}"
        # of the range for tests between machines (RFC 2544)
        self._prefix = f"198.18.{os.getpid() % 250 + 1}"
        self._spaces: list[str] = []
        self.address = f"{self._prefix}.1"
        """Where hosts find what runs here."""
        _ip("link", "add", self._name, "type", "bridge")
        _ip("address", "add", f"{self.address}/24", "dev", self._name)
        _ip("link", "set", self._name, "up")

    def host(self, keeps: Sequence[Path]) -> Host:
        """One more host, on whose disks only `keeps` of ours are there."""
        number = len(self._spaces)
        space, near, far = (f"{self._name}{kind}{number}" for kind in ("", "a", "b"))
        address = f"{self._prefix}.{number + 2}"
        _ip("netns", "add", space)
        self._spaces.append(space)
        _ip("link", "add", near, "type", "veth", "peer", "name", far, "netns", space)
        _ip("link", "set", near, "master", self._name, "up")
        for words in (
            ("address", "add", f"{address}/24", "dev", far),
            ("link", "set", far, "up"),
            ("link", "set", "lo", "up"),
        ):
            _ip("-netns", space, *words)
        return Host(space, address, keeps)

    def close(self) -> None:
        """Take all of it away."""
        for space in self._spaces:
            _ip("netns", "delete", space)
        _ip("link", "delete", self._name)


class Host:
    """A machine that has Spark, Java and Python, and nothing of this project."""

    def __init__(self, space: str, address: str, keeps: Sequence[Path]) -> None:
        self.address = address
        self._space = space
        self._keeps = [
            Path(pyspark.__file__).parent, Path(find_java().path), Path(sys.base_prefix), *keeps,
        ]  # fmt: skip

    def command(self, words: Sequence[str]) -> list[str]:
        """The words that run a command there; its process is the one that is started."""
        lines = [f"mount -t tmpfs tmpfs {_ASIDE}"]
        for number, kept in enumerate(self._keeps):
            lines += [f"mkdir {_ASIDE}/{number}", f"mount --bind {_quoted(kept)} {_ASIDE}/{number}"]
        lines += [f"mount -t tmpfs tmpfs {_quoted(folder)}" for folder in _ours()]
        for number, kept in enumerate(self._keeps):
            lines += [
                f"mkdir -p {_quoted(kept)}",
                f"mount --bind {_ASIDE}/{number} {_quoted(kept)}",
            ]
        script = " && ".join([*lines, "cd /", 'exec "$0" "$@"'])
        return ["nsenter", f"--net=/run/netns/{self._space}", "unshare", "--mount", "sh", "-c",
                script, *words]  # fmt: skip


def _ours() -> list[Path]:
    """The folders in which this project, its packages, its tests' data and its user's files are."""
    found = {
        Path(headgate.__file__).resolve().parents[2],
        Path(pyspark.__file__).resolve().parents[1],
        Path(sys.prefix).resolve(),
        Path(tempfile.gettempdir()).resolve(),
        Path.home(),
    }
    return sorted(f for f in found if not any(f != g and f.is_relative_to(g) for g in found))


def _quoted(path: Path) -> str:
    return shlex.quote(str(path))


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)
