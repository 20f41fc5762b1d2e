"""Which run a start continues: the current one, a new one from a snapshot, or one from nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from headgate.base.errors import RefusedError
from headgate.base.topic_ids import TopicIds
from headgate.home.layout import JobHome, RunHome
from headgate.home.model import CheckpointRecord, Parent
from headgate.runtime.records import Recorder, forked_record
from headgate.runtime.sink_position import Ahead, Marker, find_ahead, sinks_with
from headgate.snapshots.closure import DamagedError
from headgate.snapshots.restore import Rewrite, restore
from headgate.snapshots.snapshot import (
    Snapshot,
    find_snapshot,
    is_newest,
    snapshot_of,
    usable_snapshots,
)
from headgate.snapshots.spark_log import latest_committed, pending_batch
from headgate.snapshots.topics import (
    NoTopics,
    TopicsNow,
    read_topics,
    refuse_replaced,
    replaced_text,
    replaced_topics,
    topics_of,
    write_topics,
)
from headgate.snapshots.upgrade import Earliest, UpgradePlan, plan_upgrade


class GraphLike(Protocol):
    """The part of a graph that a start needs."""

    @property
    def sources(self) -> Sequence[str]:
        """Names in the order of the query's offset log."""

    def to_json(self) -> dict[str, Any]:
        """The graph as it is stored in graph.json."""

    def fingerprint(self) -> str:
        """The same for two graphs that do the same."""


@dataclass(frozen=True)
class Reset:
    """A source that goes on elsewhere than where it was, because records are gone."""

    source: str
    topics: Sequence[str]
    """Those that were deleted and made again; the source reads them from their beginning."""
    text: str


@dataclass(frozen=True)
class Chosen:
    """The run to drive, and a text about it for people."""

    run: RunHome
    how: str
    """new, resumed, forked (the graph or the parallelism has changed) or restored."""
    text: str
    plan: UpgradePlan | None = None
    resets: Sequence[Reset] = ()


@dataclass(frozen=True)
class Start:
    """What a start brings with it, for the record of a new run."""

    graph: GraphLike
    parallelism: int
    params: Mapping[str, str]
    versions: Mapping[str, str]
    code: Mapping[str, str]


@dataclass(frozen=True)
class StartRequest:
    """Where a start is to begin, and what it may risk for that."""

    fresh: bool = False
    restore: str | None = None
    """latest, ck:17, r1/ck:17, sp:label, JOB@..., or a path or URL of a savepoint."""
    allow_dropped_state: bool = False
    allow_duplicates: bool = False
    accept_sink_position: bool = False
    """Go on behind what sinks have that the home does not know of."""
    own_job: str | None = None
    """The job's own name, if it runs under another: snapshots are looked for there, too."""


NO_TOPICS = NoTopics()


@dataclass(frozen=True)
class RestoreServices:
    """What a restore needs of Spark, the sinks and the sources."""

    markers: Callable[[RunHome], Mapping[str, Sequence[Marker]]]
    """By sink, the newest batches of a run that it has."""
    rewrite: Rewrite
    changes: Callable[[RunHome], Sequence[str]] = lambda run: ()
    """What is set otherwise in sinks than when the run was started last."""
    same_graph: Callable[[RunHome], bool] = lambda run: False
    """Whether a graph with another fingerprint is the run's after all."""
    known_as: Callable[[RunHome, Mapping[str, Any]], Mapping[str, Any]] = lambda run, graph: graph
    """A graph of a run with its addresses as the new graph has them."""
    verify: Callable[[Snapshot], DamagedError | None] = lambda snapshot: None
    """Reads every file of a snapshot that has no manifest."""
    earliest: Earliest = lambda source, newest: None
    topics: TopicsNow = NO_TOPICS


def choose_parallelism(
    job: JobHome, requested: int | None, request: StartRequest, *, default: Callable[[], int]
) -> int:
    """The number of state partitions: the requested one, else that of the run or snapshot."""
    if requested is not None:
        return requested
    if request.restore is not None:
        return _requested_snapshot(job, request).run.parallelism
    current = None if request.fresh else job.current()
    return current.read().parallelism if current is not None else default()


def choose_run(
    job: JobHome, start: Start, request: StartRequest, services: RestoreServices
) -> Chosen:
    """Continue the current run, start a new one from a snapshot, or make one from nothing."""
    current = job.current()
    if request.restore is not None:
        snapshot = _requested_snapshot(job, request)
        return _from(job, current, snapshot, start, request, services, how="restored")
    if current is None or request.fresh:
        run = _make(job, start, parent=None)
        job.set_current(run.id)
        return Chosen(run, "new", f"run {run.id} starts from nothing")
    record = current.read()
    same = record.graph_fingerprint == start.graph.fingerprint() or services.same_graph(current)
    batch = latest_committed(current)
    as_it_was = same and record.parallelism == start.parallelism
    known = read_topics(current) if as_it_was else {}
    replaced = replaced_topics(known, start.graph.sources, services.topics)
    if replaced:
        refuse_replaced(replaced, services.topics)
    elif as_it_was:
        if batch is not None:
            _check(job, snapshot_of(current, batch), services.verify)
        markers = services.markers(current)
        ahead = find_ahead(current, markers)
        if ahead is None:
            if not request.allow_duplicates:
                _refuse_changed_sinks(current, markers, services)
            return Chosen(current, "resumed", _resumed(current))
        if not request.accept_sink_position or batch is None or ahead.position is None:
            raise ahead.refusal(current)
        snapshot = snapshot_of(current, batch)
        return _from(
            job, current, snapshot, start, request, services, how="restored", accepted=ahead
        )
    if batch is None:
        if not request.allow_duplicates:
            _refuse_pending(current, services)
        run = _make(job, start, parent=None)
        job.set_current(run.id)
        resets = [Reset(name, t, replaced_text(name, t)) for name, t in replaced.items()]
        text = f"run {run.id} starts from nothing ({current.id} has no state)"
        return Chosen(run, "forked", text, resets=resets)
    snapshot = snapshot_of(current, batch)
    why = "a topic was recreated: " if as_it_was else "the graph has changed: "
    return _from(job, current, snapshot, start, request, services, how="forked", why=why)


def _requested_snapshot(job: JobHome, request: StartRequest) -> Snapshot:
    assert request.restore is not None
    try:
        return find_snapshot(job.home, request.restore, job.name, request.own_job or job.name)
    except DamagedError as problem:
        raise _unusable(job, request.restore, problem) from problem


def _from(
    job: JobHome,
    current: RunHome | None,
    snapshot: Snapshot,
    start: Start,
    request: StartRequest,
    services: RestoreServices,
    *,
    how: str,
    why: str = "",
    accepted: Ahead | None = None,
) -> Chosen:
    """Make a run that goes on from a snapshot, or refuse with the plan."""
    if current is not None and snapshot.job == job.name and snapshot.run.run == current.id:
        recorder = Recorder(current, [str(name) for name in snapshot.graph["sources"]])
        recorder.recover()  # the counts of a killed driver go along
        if snapshot.manifest is None:
            snapshot = snapshot_of(current, snapshot.batch)
        newest = snapshot.batch == latest_committed(current)
        if newest and accepted is None and not request.allow_duplicates:
            _refuse_pending(current, services)
    _check(job, snapshot, services.verify)
    if current is not None:
        snapshot = replace(snapshot, graph=services.known_as(current, snapshot.graph))
    graph = start.graph.to_json()
    plan = plan_upgrade(
        snapshot,
        graph,
        parallelism=start.parallelism,
        earliest=services.earliest,
        newest=is_newest(job, snapshot),
        topics=services.topics,
    )
    if refusal := plan.refusal(allow_dropped_state=request.allow_dropped_state):
        raise refusal
    steps = [str(step["id"]) for step in graph["steps"]]

    lines = _begun(snapshot, plan, services.topics)
    ids = _ids(snapshot, start.graph.sources, services.topics)

    def fill(run: RunHome) -> None:
        fewer = restore(
            snapshot, run, graph, plan, parallelism=start.parallelism, rewrite=services.rewrite,
            lines=lines, drops=request.allow_dropped_state,
        )  # fmt: skip
        write_topics(run, ids)
        if snapshot.record is not None:
            record = forked_record(
                snapshot.record, run=run.id, steps=steps, lines=lines, ids=ids, fewer=fewer
            )
            run.write_checkpoint(record)
        if accepted is not None:
            accepted.plan_first(run, snapshot, graph)

    run = _make(
        job,
        start,
        parent=snapshot.parent,
        fill=fill,
        out_until=None if accepted is None else snapshot.batch + 1,
    )
    job.set_current(run.id)
    where = snapshot.name if snapshot.job == job.name else f"{snapshot.name} of {snapshot.job}"
    ended = _ended(snapshot.record)
    resets = [Reset(name, plan.begins[name], text) for name, text in plan.lost.items()]
    skipped = "" if accepted is None else f"; {accepted.skipped(snapshot)}"
    text = f"{why}run {run.id} goes on from {where}{ended}{skipped}"
    return Chosen(run, how, text, plan, resets)


def _begun(snapshot: Snapshot, plan: UpgradePlan, topics: TopicsNow) -> dict[str, str]:
    """The lines of Spark's offset log for sources that go on elsewhere."""
    entry = snapshot.closure().offsets
    lines = entry.by_name([str(name) for name in snapshot.graph["sources"]])
    return {
        name: topics.begin(name, lines[name], made_again)
        for name, made_again in plan.begins.items()
        if lines.get(name, "-") != "-"
    }


def _ids(snapshot: Snapshot, sources: Sequence[str], topics: TopicsNow) -> dict[str, TopicIds]:
    """The ids of the topics that a run reads which goes on from a snapshot."""
    known, found = topics_of(snapshot), {}
    for name in dict.fromkeys(sources):
        ids = topics.ids(name) or known.get(name)  # where nobody answers, those of before
        if ids is not None:
            found[name] = ids
    return found


def _check(
    job: JobHome, snapshot: Snapshot, verify: Callable[[Snapshot], DamagedError | None]
) -> None:
    """Refuse a snapshot with a damaged file, and name one that is not."""
    problem = next(snapshot.problems(), None)
    if problem is None and snapshot.manifest is None:
        problem = verify(snapshot)
    if problem is not None:
        raise _unusable(job, snapshot.name, problem)


def _unusable(job: JobHome, name: str, problem: DamagedError) -> RefusedError:
    usable = next((s for s in usable_snapshots(job) if s.name != name), None)
    return RefusedError(
        f"{name} cannot be used: {problem.file} {problem.why}",
        remedy=f"the newest usable snapshot is {usable.name}: start with --from {usable.name}"
        if usable
        else "no other snapshot is usable; restore the file from a backup, or start from nothing "
        "with --fresh",
    )


def _refuse_pending(current: RunHome, services: RestoreServices) -> None:
    """Refuse to write again what sinks have beyond the newest checkpoint."""
    markers = services.markers(current)
    ahead = find_ahead(current, markers)
    if ahead is not None:
        raise ahead.refusal(current)
    pending = pending_batch(current)
    if out := [] if pending is None else sinks_with(markers, pending):
        raise RefusedError(
            f"batch {pending} of run {current.id} is out ({', '.join(out)}) but not committed, and "
            "a run that starts before it would write it again",
            remedy="start the old version once with --bounded to finish the batch, or pass "
            "--allow-duplicates",
        )


def _refuse_changed_sinks(
    current: RunHome, markers: Mapping[str, Sequence[Marker]], services: RestoreServices
) -> None:
    """Refuse a setting by which a sink would not find that a batch is out."""
    pending = pending_batch(current)
    out = [] if pending is None else sinks_with(markers, pending)
    if out and (changes := services.changes(current)):
        raise RefusedError(
            f"batch {pending} of run {current.id} is out ({', '.join(out)}) but not committed, and "
            f"{changes[0]}: it would be written again",
            remedy="start once with the old setting and --bounded to finish the batch, or pass "
            "--allow-duplicates",
        )


def _make(
    job: JobHome,
    start: Start,
    *,
    parent: Parent | None,
    fill: Callable[[RunHome], object] | None = None,
    out_until: int | None = None,
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
        out_until=out_until,
    )


def _resumed(run: RunHome) -> str:
    batch = latest_committed(run)
    pending = pending_batch(run)
    text = f"run {run.id} resumes after ck:{batch}" if batch is not None else f"run {run.id} starts"
    text += f", first batch {pending} again" if pending is not None else ""
    return text + _ended(run.latest_checkpoint())


def _ended(record: CheckpointRecord | None) -> str:
    """What to know of a job whose event time a drain has ended."""
    if record is None or record.event_time is None or not record.event_time.ended:
        return ""
    return (
        "; a drain has ended its event time, so every row comes too late for its windows: "
        "start it with --fresh, or --from a snapshot before the drain"
    )
