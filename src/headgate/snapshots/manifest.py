"""The manifest of a savepoint: what it is, and the size and hash of every file in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from headgate.home.files import Files, json_text, write_json
from headgate.home.times import from_iso, now, to_iso
from headgate.home.versions import VERSION, check_version
from headgate.snapshots.closure import DamagedError

MANIFEST = "manifest.json"
_CHUNK = 1 << 20
_THREADS = 4  # hashing lets go of Python's lock


@dataclass(frozen=True)
class FileEntry:
    """One file as it was when the savepoint was made."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Manifest:
    """What ``manifest.json`` says; it is written last, so a folder with one is whole."""

    kind: str
    """savepoint or pin."""
    label: str
    job: str
    run: str
    checkpoint: int
    created_at: datetime
    reason: str
    files: Mapping[str, FileEntry]

    @property
    def bytes(self) -> int:
        """The size of all files."""
        return sum(entry.size for entry in self.files.values())

    def summary(self) -> dict[str, Any]:
        """The manifest without its files."""
        return {
            "kind": self.kind,
            "label": self.label,
            "job": self.job,
            "run": self.run,
            "checkpoint": self.checkpoint,
            "created_at": to_iso(self.created_at),
            "reason": self.reason,
            "file_count": len(self.files),
            "bytes": self.bytes,
        }

    def to_json(self) -> dict[str, Any]:
        """As it stands in its file."""
        files = {
            path: {"size": entry.size, "sha256": entry.sha256} for path, entry in self.files.items()
        }
        data = {"version": VERSION, **self.summary(), "files": files}
        return {**data, "checksum": _checksum(data)}

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Manifest:
        """From what its file holds."""
        return Manifest(
            kind=str(data["kind"]),
            label=str(data["label"]),
            job=str(data["job"]),
            run=str(data["run"]),
            checkpoint=int(data["checkpoint"]),
            created_at=from_iso(data["created_at"]) or now(),
            reason=str(data.get("reason", "")),
            files={
                str(path): FileEntry(int(entry["size"]), str(entry["sha256"]))
                for path, entry in data["files"].items()
            },
        )


def read_manifest(files: Files, folder: str) -> Manifest | None:
    """The manifest of a folder, or nothing if it has none."""
    path = _join(folder, MANIFEST)
    try:
        text = files.read_text(path)
    except UnicodeDecodeError:
        raise DamagedError(MANIFEST, "is damaged: it is not text") from None
    if text is None:
        return None
    try:
        data = json.loads(text)
        check_version(data, MANIFEST)
        manifest = Manifest.from_json(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedError(MANIFEST, f"is damaged: {error!r}") from None
    # every other file is vouched for by the manifest, and it only by itself
    if json_text(manifest.to_json()) != text:
        raise DamagedError(MANIFEST, "is damaged: it is not as it was written")
    return manifest


def write_manifest(files: Files, folder: str, manifest: Manifest) -> None:
    """Write the manifest: from now on the folder counts."""
    write_json(files, _join(folder, MANIFEST), manifest.to_json())


def entries(files: Files, folder: str, paths: Sequence[str]) -> dict[str, FileEntry]:
    """Size and hash of files as they are now."""
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(lambda path: _entry(files, _join(folder, path)), paths)
        return dict(zip(paths, found, strict=True))


def problems(files: Files, folder: str, manifest: Manifest) -> Iterator[DamagedError]:
    """Each file that is missing or not what it was, in the order of the manifest."""

    def check(path: str) -> DamagedError | None:
        wanted = manifest.files[path]
        try:
            found = _entry(files, _join(folder, path))
        except FileNotFoundError:
            return DamagedError(path, "is missing")
        if found.size != wanted.size:
            return DamagedError(
                path, f"is damaged: it has {found.size:,} bytes and had {wanted.size:,}"
            )
        if found.sha256 != wanted.sha256:
            return DamagedError(path, "is damaged: its content has changed")
        return None

    with ThreadPoolExecutor(_THREADS) as pool:
        yield from filter(None, pool.map(check, manifest.files))


def _checksum(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json_text(data).encode("utf-8")).hexdigest()


def _entry(files: Files, path: str) -> FileEntry:
    digest = hashlib.sha256()
    size = 0
    with files.open(path) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return FileEntry(size, digest.hexdigest())


def _join(folder: str, path: str) -> str:
    return f"{folder}/{path}" if folder else path
