"""Which run a start continues: the current one, a fork of it for a changed graph, or a new one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headgate.errors import RefusedError
from headgate.runtime.records import Recorder, forked_record
from headgate.snapshots.fork import fork_latest, latest_committed, pending_batch
from headgate.snapshots.home import JobHome, RunHome
from headgate.snapshots.model import Parent


class GraphLike(Protocol):
    """The part of a graph that a start needs."""

    @property
    def sources(self) -> Sequence[str]:
        """Names in the order of the query's offset log."""

    def to_json(self) -> dict[str, Any]:
        """The graph as it stands in graph.json."""

    def fingerprint(self) -> str:
        """The same for two graphs that do the same."""


@dataclass(frozen=True)
class Chosen:
    """The run to drive, and how a person is told about it."""

    run: RunHome
    how: str
    """new, resumed or forked."""
    text: str


@dataclass(frozen=True)
class Start:
    """What a start brings with it, for the record of a new run."""

    graph: GraphLike
    parallelism: int
    params: Mapping[str, str]
    versions: Mapping[str, str]
    code: Mapping[str, str]


def choose_parallelism(
    job: JobHome, asked: int | None, *, fresh: bool, default: Callable[[], int]
) -> int:
    """The number of state partitions: fixed when a run is made, so a resumed run has its own."""
    current = None if fresh else job.current()
    if current is None:
        return asked or default()
    fixed = current.read().parallelism
    if asked is not None and asked != fixed:
        raise RefusedError(
            f"run {current.id} of job '{job.name}' has its state in {fixed} partitions, not "
            f"{asked}",
            remedy=f"leave --parallelism out (or say {fixed}), or start from nothing with --fresh",
        )
    return fixed


def choose_run(
    job: JobHome,
    start: Start,
    *,
    fresh: bool,
    batch_is_out: Callable[[RunHome, int], Sequence[str]],
    allow_duplicates: bool = False,
) -> Chosen:
    """Continue the current run, fork it if the graph has changed, or make a new one.

    ``batch_is_out`` names the sinks that have a batch of a run already.
    """
    current = job.current()
    if current is None or fresh:
        run = _make(job, start, parent=None)
        job.set_current(run.id)
        return Chosen(run, "new", f"run {run.id} starts from nothing")
    if current.read().graph_fingerprint == start.graph.fingerprint():
        return Chosen(current, "resumed", _resumed(current))

    old = current.graph()
    _refuse_changed_state(job, old, start.graph.to_json())
    _refuse_moved_sources(job, old, start.graph.to_json())
    pending = pending_batch(current)
    if pending is not None and not allow_duplicates:
        out = list(batch_is_out(current, pending))
        if out:
            raise RefusedError(
                f"the graph has changed while batch {pending} of run {current.id} is out "
                f"({', '.join(out)}) but not committed, and the new graph would write it again",
                remedy="start the old version once with --bounded to finish the batch, or say "
                "--allow-duplicates",
            )
    run = _fork(job, current, old, start)
    job.set_current(run.id)
    parent = run.read().parent
    where = f"ck:{parent.checkpoint} of run {parent.run}" if parent else f"nothing ({current.id})"
    return Chosen(run, "forked", f"the graph has changed: run {run.id} continues from {where}")


def _make(
    job: JobHome,
    start: Start,
    *,
    parent: Parent | None,
    fill: Callable[[RunHome], object] | None = None,
) -> RunHome:
    return job.new_run(
        graph=start.graph.to_json(),
        graph_fingerprint=start.graph.fingerprint(),
        parallelism=start.parallelism,
        params=start.params,
        versions=start.versions,
        code=start.code,
        parent=parent,
        fill=fill,
    )


def _fork(job: JobHome, current: RunHome, old: Mapping[str, Any], start: Start) -> RunHome:
    old_sources = [str(name) for name in old["sources"]]
    Recorder(current, old_sources).recover()  # the counts of a killed driver go along
    batch = latest_committed(current)
    if batch is None:
        return _make(job, start, parent=None)
    steps = [str(step["id"]) for step in start.graph.to_json()["steps"]]

    def fill(run: RunHome) -> None:
        fork_latest(current, run, old_sources, start.graph.sources)
        if batch in current.checkpoint_ids():
            record = forked_record(current.checkpoint(batch), run=run.id, steps=steps)
            run.write_checkpoint(record)

    return _make(job, start, parent=Parent(current.id, batch), fill=fill)


def _refuse_changed_state(job: JobHome, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    before, after = _stateful(old), _stateful(new)
    changes = []
    if gone := sorted(before.keys() - after.keys()):
        changes.append(f"{', '.join(gone)} gone")
    if added := sorted(after.keys() - before.keys()):
        changes.append(f"{', '.join(added)} new")
    kept = before.keys() & after.keys()
    if changed := sorted(name for name in kept if before[name] != after[name]):
        changes.append(f"{', '.join(changed)} with another state schema")
    if changes:
        raise RefusedError(
            f"the steps with state of job '{job.name}' have changed: {'; '.join(changes)}",
            remedy="keep the names and the tables of these steps as they were, or start from "
            "nothing with --fresh",
        )


def _stateful(graph: Mapping[str, Any]) -> dict[str, Any]:
    """Each stateful step's name and what its state looks like."""
    return {str(step["id"]): step["state_schema"] for step in graph["steps"] if step["stateful"]}


def _refuse_moved_sources(job: JobHome, old: Mapping[str, Any], new: Mapping[str, Any]) -> None:
    # Offsets are numbers: on another topic they would point at other records, without an error.
    before, after = _addresses(old), _addresses(new)
    for name in before.keys() & after.keys():
        if before[name] != after[name]:
            raise RefusedError(
                f"source '{name}' of job '{job.name}' now reads {after[name]} instead of "
                f"{before[name]}, where the run's offsets mean nothing",
                remedy="give the source another name to read it from its start, or start from "
                "nothing with --fresh",
            )


def _addresses(graph: Mapping[str, Any]) -> dict[str, str]:
    sources = set(graph["sources"])
    return {
        str(step["id"]): str(step["detail"]["address"])
        for step in graph["steps"]
        if step["id"] in sources and "address" in step["detail"]
    }


def _resumed(run: RunHome) -> str:
    batch = latest_committed(run)
    pending = pending_batch(run)
    text = f"run {run.id} resumes after ck:{batch}" if batch is not None else f"run {run.id} starts"
    return text + (f", first batch {pending} again" if pending is not None else "")
