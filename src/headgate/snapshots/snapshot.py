"""A snapshot: a checkpoint of a run, a pinned one or a savepoint, as something to start from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headgate.base.errors import HeadgateError, NotFoundError, UsageError
from headgate.base.near import did_you_mean, or_else
from headgate.graph import formats as graph_formats
from headgate.home.files import Files, open_files, read_json
from headgate.home.layout import Home, JobHome, RunHome
from headgate.home.model import CheckpointRecord, Parent, RunRecord
from headgate.home.versions import check_version
from headgate.snapshots.closure import Closure, DamagedError, closure
from headgate.snapshots.manifest import Manifest, problems, read_manifest
from headgate.snapshots.spark_log import committed_batches, latest_committed, planned_batches

_CHECKPOINT = re.compile(r"(?:(r\d+)/)?ck:(\d+)")


@dataclass(frozen=True)
class Snapshot:
    """The state of a job at one checkpoint, wherever it lies."""

    name: str
    """As people write it: ck:17, r1/ck:17, sp:before_v2 or a path."""
    run: RunRecord
    graph: Mapping[str, Any]
    batch: int
    record: CheckpointRecord | None
    files: Files
    folder: str
    """Its Spark folder, relative to the files' root."""
    manifest: Manifest | None = None

    @property
    def job(self) -> str:
        """The job that it is of."""
        return self.run.job

    @property
    def location(self) -> str:
        """Its Spark folder as Spark takes it."""
        return self.files.location(self.folder)

    @property
    def root(self) -> str:
        """The folder that its manifest is in, above its Spark folder."""
        return self.folder.removesuffix("spark").rstrip("/")

    @property
    def parent(self) -> Parent:
        """What a run that starts from it keeps of it."""
        label = self.manifest.label if self.manifest and self.manifest.kind == "savepoint" else None
        return Parent(self.run.run, self.batch, job=self.run.job, savepoint=label)

    def closure(self) -> Closure:
        """Its files; DamagedError if one is missing."""
        return closure(self.files, self.folder, self.batch)

    def problems(self) -> Iterator[DamagedError]:
        """What is wrong with its files: by its manifest, else as far as their structure shows."""
        if self.manifest is not None:
            yield from problems(self.files, self.root, self.manifest)
            return
        try:
            self.closure()
        except DamagedError as error:
            yield error


def is_newest(job: JobHome, snapshot: Snapshot) -> bool:
    """Whether the job has committed nothing since."""
    current = job.current()
    if current is None or (snapshot.job, snapshot.run.run) != (job.name, current.id):
        return False
    return snapshot.batch == latest_committed(current)


def restorable(run: RunHome) -> list[int]:
    """The checkpoints from which a new run can start, oldest first; pinned ones too."""
    planned = set(planned_batches(run))
    kept = [
        batch
        for batch in committed_batches(run)
        if batch in planned and (batch == 0 or batch - 1 in planned)
    ]
    return sorted({*kept, *run.pinned()})


def snapshot_of(run: RunHome, batch: int) -> Snapshot:
    """A run's checkpoint, from its Spark folder or its pin."""
    name = f"{run.id}/ck:{batch}"
    kept = restorable(run)
    if batch not in kept:
        raise NotFoundError(
            f"ck:{batch} of run {run.id} of job '{run.job.name}' is not retained",
            remedy=f"the run has {spans(kept)}" if kept else "the run has no checkpoint",
        )
    if batch in run.pinned():
        return open_folder(run.files, run.pin_path(batch), name)
    return Snapshot(
        name, run.read(), run.graph(), batch, run.record_at(batch), run.files, run.spark_path
    )


def open_folder(files: Files, folder: str, name: str) -> Snapshot:
    """A savepoint or pin, from its own folder alone."""
    manifest = read_manifest(files, folder)
    if manifest is None:
        raise NotFoundError(
            f"{files.location(folder)} is not a savepoint: it has no manifest.json",
            remedy="name the folder of a savepoint (see headgate savepoint list)",
        )

    def part(file: str) -> dict[str, Any]:
        path = f"{folder}/{file}" if folder else file
        try:
            data = read_json(files, path)
        except (HeadgateError, UnicodeDecodeError) as error:
            raise DamagedError(file, f"is damaged: {error}") from None
        if data is None:
            raise DamagedError(file, "is missing")
        return data

    run = part("run.json")
    graph = part("graph.json")
    check_version(graph, "graph.json", newest=graph_formats.NEWEST)
    record = None
    if "checkpoint.json" in manifest.files:
        record = CheckpointRecord.from_json(part("checkpoint.json"))
    spark = f"{folder}/spark" if folder else "spark"
    return Snapshot(
        name,
        RunRecord.from_json(run),
        graph_formats.current(graph),
        manifest.checkpoint,
        record,
        files,
        spark,
        manifest,
    )


def find_snapshot(home: Home, text: str, *jobs: str) -> Snapshot:
    """The snapshot that a person means: latest, ck:17, r1/ck:17, sp:label, or a path or URL.

    ``JOB@`` before it names another job; else it is looked for in the given jobs, in order.
    """
    owner, at, rest = text.rpartition("@")
    if at and "/" not in owner:
        return _in_job(home.find(owner), rest)
    if not (text == "latest" or text.startswith("sp:") or _CHECKPOINT.fullmatch(text)):
        if text.startswith(("ck:", "sp")) or not ("/" in text or "\\" in text or ":" in text):
            raise UsageError(
                "a snapshot must be latest, ck:17, r1/ck:17, sp:label, or the path or URL of a "
                "savepoint",
                got=repr(text),
                remedy="see headgate checkpoint list and headgate savepoint list",
            )
        return open_folder(open_files(text), "", text)
    failure: HeadgateError | None = None
    for name in dict.fromkeys(jobs):
        job = home.job(name)
        try:
            return _in_job(job, text)
        except NotFoundError as error:
            failure = failure or error
    assert failure is not None, "at least one job is given"
    raise failure


def _in_job(job: JobHome, text: str) -> Snapshot:
    if text.startswith("sp:"):
        label = text.removeprefix("sp:")
        folder = f"{job.path}/savepoints/{label}"
        if "/" not in label and label and job.files.exists(folder):
            if read_manifest(job.files, folder) is None:
                raise DamagedError(
                    "manifest.json", f"of {text} is missing: it was deleted, or never finished"
                )
        else:
            labels = job.files.list(f"{job.path}/savepoints")
            known = ", ".join(f"sp:{name}" for name in labels) or "no savepoints"
            raise NotFoundError(
                f"job '{job.name}' has no savepoint '{label}'",
                remedy=or_else(did_you_mean(label, labels, prefix="sp:"), f"it has: {known}"),
            )
        return open_folder(job.files, folder, text)
    current = job.current()
    if current is None:
        raise NotFoundError(
            f"job '{job.name}' has no run in {job.home.url}",
            remedy="start it with headgate run, or name another --home",
        )
    if text == "latest":
        kept = restorable(current)
        if not kept:
            raise NotFoundError(
                f"run {current.id} of job '{job.name}' has no checkpoint yet",
                remedy="start it and wait for one",
            )
        return snapshot_of(current, kept[-1])
    match = _CHECKPOINT.fullmatch(text)
    if match is None:
        raise UsageError(
            "a snapshot must be latest, ck:17, r1/ck:17 or sp:label",
            got=repr(text),
            remedy="see headgate checkpoint list and headgate savepoint list",
        )
    batch = int(match[2])
    return snapshot_of(_run_of(job, current, match[1], batch), batch)


def _run_of(job: JobHome, current: RunHome, run: str | None, batch: int) -> RunHome:
    """The run that a checkpoint is of: the named one, else the current one or an ancestor."""
    if run is not None:
        found = job.run(run)
        found.read()  # says so if there is none
        return found
    at = current
    while batch not in restorable(at):
        parent = at.read().parent
        if parent is None or parent.job not in (None, job.name) or batch > parent.checkpoint:
            return current
        at = job.run(parent.run)
        if at.id not in {known.id for known in job.runs()}:
            return current
    return at


def usable_snapshots(job: JobHome) -> Iterator[Snapshot]:
    """Snapshots of a job whose files are all there, the newest first."""
    found: list[Snapshot] = []
    for run in reversed(job.runs()):
        for batch in reversed(restorable(run)):
            try:
                found.append(snapshot_of(run, batch))
            except HeadgateError:
                continue
    for label in job.files.list(f"{job.path}/savepoints"):
        try:
            found.append(open_folder(job.files, f"{job.path}/savepoints/{label}", f"sp:{label}"))
        except HeadgateError:
            continue

    def age(snapshot: Snapshot) -> tuple[float, int]:
        done = snapshot.record.completed_at if snapshot.record else None
        return (done.timestamp() if done else 0.0, snapshot.batch)

    for snapshot in sorted(found, key=age, reverse=True):
        if next(snapshot.problems(), None) is None:
            yield snapshot


def spans(numbers: list[int]) -> str:
    """Checkpoint numbers for people.

    >>> spans([3, 4, 5, 9])
    'ck:3 to ck:5, ck:9'
    """
    runs: list[list[int]] = []
    for number in numbers:
        if runs and runs[-1][-1] == number - 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(
        f"ck:{run[0]}" if len(run) == 1 else f"ck:{run[0]} to ck:{run[-1]}" for run in runs
    )
