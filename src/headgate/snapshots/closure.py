"""The closure of a checkpoint: exactly the files of a Spark folder that it needs."""

from __future__ import annotations

import json
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from headgate.base.errors import RefusedError
from headgate.home.files import Files
from headgate.snapshots.changelog import read_lineage
from headgate.snapshots.spark_log import OffsetEntry, parse_entry

StateIds = Mapping[int, Sequence[Sequence[str]]]
"""The unique id of a step's state: operator, then partition, then store."""


class DamagedError(RefusedError):
    """A file of a snapshot is missing or damaged.

    >>> print(DamagedError("state/1.delta", "is missing"))
    state/1.delta is missing: restore the file from a backup, or start from another snapshot
    """

    code = "DAMAGED"

    def __init__(self, file: str, why: str) -> None:
        super().__init__(
            f"{file} {why}", remedy="restore the file from a backup, or start from another snapshot"
        )
        self.file = file
        self.why = why


@dataclass(frozen=True)
class Commit:
    """An entry of Spark's commit log."""

    head: str
    data: Mapping[str, object]

    @property
    def state_ids(self) -> StateIds:
        """Which files hold the state after the batch."""
        ids = self.data.get("stateUniqueIds") or {}
        assert isinstance(ids, Mapping)
        return {int(operator): parts for operator, parts in ids.items()}

    def with_state_ids(self, ids: StateIds) -> str:
        """The entry's text with other state."""
        data = {**self.data, "stateUniqueIds": {str(op): parts for op, parts in ids.items()}}
        return f"{self.head}\n{json.dumps(data, separators=(',', ':'))}"


@dataclass(frozen=True)
class Closure:
    """The files of one checkpoint, relative to the Spark folder, and what its logs say."""

    batch: int
    logs: tuple[str, ...]
    """metadata, offsets, commits."""
    sources: tuple[str, ...]
    state: Mapping[int, tuple[str, ...]]
    """Files by operator."""
    commit: Commit
    offsets: OffsetEntry
    before: OffsetEntry | None

    @property
    def files(self) -> list[str]:
        """Every file, once."""
        return [*self.logs, *self.sources, *(f for files in self.state.values() for f in files)]

    @property
    def version(self) -> int:
        """The state's version after the batch."""
        return self.batch + 1


def closure(files: Files, folder: str, batch: int) -> Closure:
    """Find what checkpoint ``batch`` of a Spark folder needs; DamagedError if a file is missing.

    State files are found as Spark finds them: the version's own snapshot, or the newest snapshot
    in its changelog's lineage and every changelog after it; then the SST files of the snapshot.
    """
    reader = _Reader(files, folder)
    offsets = parse_entry(reader.text(f"offsets/{batch}"), f"offsets/{batch}")
    before = None
    logs = ["metadata", f"offsets/{batch}", f"commits/{batch}"]
    if batch > 0:
        before = parse_entry(reader.text(f"offsets/{batch - 1}"), f"offsets/{batch - 1}")
        logs.append(f"offsets/{batch - 1}")
    reader.text("metadata")
    commit = parse_commit(reader.text(f"commits/{batch}"), f"commits/{batch}")
    state = {}
    for operator, partitions in commit.state_ids.items():
        found = list(reader.metadata(operator))
        for partition, ids in enumerate(partitions):
            stores = reader.stores(operator, partition, len(ids))
            for store, id in zip(stores, ids, strict=True):
                found += reader.version(f"state/{operator}/{partition}{store}", batch + 1, id)
        state[operator] = tuple(dict.fromkeys(found))
    sources = tuple(
        f"sources/{path}" for path in files.walk(f"{folder}/sources") if ".tmp" not in path
    )
    return Closure(
        batch, tuple(reader.with_checksums(logs)), sources, state, commit, offsets, before
    )


def parse_commit(text: str, where: str) -> Commit:
    """Read an entry of Spark's commit log."""
    head, _, line = text.partition("\n")
    try:
        data = json.loads(line or "{}")
    except ValueError as error:
        raise DamagedError(where, f"is not a commit of Spark ({error})") from None
    return Commit(head, data)


class _Reader:
    """Looks for files in one Spark folder; a folder is listed once."""

    def __init__(self, files: Files, folder: str) -> None:
        self._files = files
        self._folder = folder
        self._names: dict[str, set[str]] = {}

    def text(self, path: str) -> str:
        try:
            text = self._files.read_text(f"{self._folder}/{path}")
        except UnicodeDecodeError:
            raise DamagedError(path, "is damaged: it is not text") from None
        if text is None:
            raise DamagedError(path, "is missing")
        if not text.strip():
            raise DamagedError(path, "is empty")
        return text

    def has(self, path: str) -> bool:
        parent, _, name = path.rpartition("/")
        if parent not in self._names:
            self._names[parent] = set(self._files.names(f"{self._folder}/{parent}"))
        return name in self._names[parent]

    def need(self, path: str) -> str:
        if not self.has(path):
            raise DamagedError(path, "is missing")
        return path

    def checksums(self, path: str) -> Iterator[str]:
        """Hadoop's and Spark's own checksum files of a file, where there are any."""
        parent, slash, name = path.rpartition("/")
        for beside in (f".{name}.crc", f"{name}.crc", f".{name}.crc.crc"):
            if self.has(f"{parent}{slash}{beside}"):
                yield f"{parent}{slash}{beside}"

    def with_checksums(self, paths: Sequence[str]) -> Iterator[str]:
        """The files and the checksum files beside them."""
        for path in paths:
            yield path
            yield from self.checksums(path)

    def metadata(self, operator: int) -> Iterator[str]:
        """What describes an operator and its stores; Spark writes it anew if it is gone."""
        root = f"state/{operator}"
        for path in self._files.walk(f"{self._folder}/{root}"):
            if "_metadata/" in path and ".tmp" not in path:
                yield f"{root}/{path}"

    def stores(self, operator: int, partition: int, count: int) -> list[str]:
        """The folders of a partition's stores, in the order of their ids."""
        if count == 1:
            return [""]
        # the operator's own record has the order; the first one is the default store
        data = json.loads(self.text(f"state/{operator}/_metadata/metadata").split("\n", 1)[1])
        names = [str(store["storeName"]) for store in data["stateStoreInfo"]]
        if len(names) != count:
            raise DamagedError(
                f"state/{operator}/_metadata/metadata",
                f"names {len(names)} stores, the commit has {count}",
            )
        return ["" if name == "default" else f"/{name}" for name in names]

    def version(self, folder: str, version: int, id: str) -> Iterator[str]:
        """The files from which one version of a store is loaded."""
        own = f"{folder}/{version}_{id}"
        if self.has(f"{own}.zip"):
            yield from self.snapshot(f"{own}.zip")
            return
        changelog = self.need(f"{own}.changelog")
        try:
            with self._files.open(f"{self._folder}/{changelog}") as file:
                lineage = read_lineage(file)
        except ValueError as error:
            raise DamagedError(changelog, f"is damaged: {error}") from None
        chain = sorted([*lineage, (version, id)], reverse=True)
        for at, known in chain:
            if at < version and self.has(f"{folder}/{at}_{known}.zip"):
                yield from self.snapshot(f"{folder}/{at}_{known}.zip")
                return
            earlier = f"{folder}/{at}_{known}.changelog"
            if not self.has(earlier):
                raise DamagedError(earlier, f"is missing; {changelog} names it")
            yield from self.with_checksums([earlier])
        if chain[-1][0] != 1:
            raise DamagedError(
                f"{folder}/{chain[-1][0]}_{chain[-1][1]}.zip",
                "is missing: the state's changelogs need it to begin with",
            )

    def snapshot(self, path: str) -> Iterator[str]:
        """A snapshot and the table files that it names."""
        try:
            with self._files.open(f"{self._folder}/{path}") as file, zipfile.ZipFile(file) as data:
                text = data.read("metadata").decode("utf-8")
            named = json.loads(text.split("\n", 1)[1])
        except (
            zipfile.BadZipFile,
            zlib.error,
            KeyError,
            ValueError,
            IndexError,
            EOFError,
        ) as error:
            raise DamagedError(path, f"is damaged: {error}") from None
        yield from self.with_checksums([path])
        folder = path.rpartition("/")[0]
        tables = [f"{folder}/SSTs/{f['dfsSstFileName']}" for f in named.get("sstFiles") or []]
        logs = [f"{folder}/logs/{f['dfsLogFileName']}" for f in named.get("logFiles") or []]
        entries = [*(named.get("sstFiles") or []), *(named.get("logFiles") or [])]
        for file_, entry in zip([*tables, *logs], entries, strict=True):
            size = entry["sizeBytes"]
            if self._files.size(f"{self._folder}/{self.need(file_)}") != size:
                raise DamagedError(file_, f"is damaged: it should have {size:,} bytes")
            yield from self.with_checksums([file_])
