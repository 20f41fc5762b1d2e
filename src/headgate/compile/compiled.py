"""A job compiled into one query, and that query's start."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from headgate import jvm
from headgate.base.errors import GraphError
from headgate.compile.fanout import Outlets, fan_out
from headgate.compile.paths import arrivals, carried_columns
from headgate.compile.rows import Arrival, union_of
from headgate.compile.sinks import Sinks, Writer
from headgate.connectors.base import Source
from headgate.graph.check import behind
from headgate.graph.compiling import Compiling
from headgate.graph.hidden import CARRIED
from headgate.graph.model import Graph
from headgate.graph.operation import RawSource, Shape
from headgate.graph.plan import BuiltJob, Node
from headgate.jvm.query import JobQuery

_TICK = "__hg_source:__tick"


@dataclass(frozen=True)
class CompiledJob:
    """One query, not yet started and of no run yet."""

    graph: Graph  # its sources in the order of the query's offset log
    frame: DataFrame
    sinks: Sinks
    sources: Mapping[str, RawSource]
    windows: bool
    """Whether it has windows or timers of event time, which a drain ends."""
    event_times: Mapping[str, Mapping[str, int | None]]
    """The sources that have event time, with their delay and idle_after in milliseconds."""
    holding: frozenset[str] = frozenset()
    """The lookups in which rows that wait hold the watermark."""

    def earliest(self, source: str, newest: bool) -> Mapping[str, int | str] | None:
        """The first offset that a source still has, by partition, if it can tell.

        Nothing for a source whose broker keeps all that the newest checkpoint has not.
        """
        found = self.sources.get(source)
        if not isinstance(found, Source) or (newest and found.keeps_unread):
            return None
        return found.earliest(self.frame.sparkSession)

    def start(
        self, *, writer: Writer, checkpoint: str, bounded: bool,
        every: timedelta, drain: bool = False, event_time: Mapping[str, Any] | None = None,
    ) -> JobQuery:  # fmt: skip
        """Start the query for a run; a bounded one ends when it has read what is there.

        With `drain` event time ends then: every window is closed. `event_time` is how far the
        sources were when the run was left.
        """
        spec = json.dumps(self.spec(writer))
        jvm.write_with(self.frame.sparkSession, spec, self.sinks.batch_writers)
        return jvm.start(
            self.frame,
            name=writer.job,
            checkpoint=checkpoint,
            spec=spec,
            every=None if bounded else every,
            drain=drain and self.windows,
            event_time=self._event_time(event_time or {}),
        )

    def _event_time(self, before: Mapping[str, Any]) -> dict[str, Any] | None:
        if not self.event_times:
            return None
        known = before.get("sources", {})
        sources = {name: {**known.get(name, {}), **t} for name, t in self.event_times.items()}
        waiting = {s: w for s, w in before.get("waiting", {}).items() if s in self.holding}
        return {"at": before.get("at"), "sources": sources, "waiting": waiting}

    def await_readable(self, writer: Writer) -> bool:
        """Wait, not for long, until readers see all that the sinks have committed.

        Kafka ends a transaction in its partitions a moment after the producer's commit.
        """
        return jvm.await_readable(self.frame.sparkSession, json.dumps(self.spec(writer)))

    def spec(self, writer: Writer) -> dict[str, Any]:
        """What the sinks get to know, once the session has the jars that their writers need."""
        self.sinks.need_clients(self.frame.sparkSession)
        return self.sinks.spec(writer)


def compile_job(built: BuiltJob, spark: SparkSession, *, parallelism: int) -> CompiledJob:
    """Make one query of the job's steps."""
    sinks, outlets = Sinks.of(built), Outlets()
    job = _Job(built, spark, parallelism, outlets)
    needs = carried_columns(built)
    for node in built.of_shape(Shape.ORIGIN, Shape.STATEFUL):
        keeps = node.operation.shape is Shape.STATEFUL
        if keeps and node.step.id not in outlets.inputs:
            continue  # nothing comes to it
        stays = not node.operation.places_rows and node.step.id in outlets.unplaced
        placed = keeps and not stays
        base = node.operation.frame(job, node, outlets.inputs.get(node.step.id, []))

        def ways(shared: DataFrame, node: Node = node) -> list[Arrival]:
            carried = [c for c in CARRIED if c in needs[node.step.id] and c in shared.columns]
            return list(arrivals(built, node, node.operation.outputs(job, node, shared, carried)))

        if users := ways(base):
            fan_out(base, users, ways, sinks, outlets, parallelism, placed=placed)
    if any(node.operation.needs_ticks for node in built.nodes):
        outlets.leaves.append(sinks.nothing(_ticks(spark)))
    frame = union_of(outlets.leaves)
    _refuse_nondeterministic(frame, sinks)
    layouts = jvm.state_layout(frame)
    steps = tuple(
        dataclasses.replace(step, stores=tuple(layouts.get(step.id, ())))
        for step in built.graph.steps
    )
    order = tuple(jvm.source_order(frame))
    return CompiledJob(
        graph=dataclasses.replace(built.graph, sources=order, steps=steps),
        frame=sinks.numbered(frame),
        sinks=sinks,
        sources={n.step.id: n.operation.source for n in built.nodes if n.operation.source},
        windows=any(node.operation.ends_with_time for node in built.nodes),
        event_times={
            node.step.id: time
            for node in built.nodes
            if (time := node.operation.event_time()) is not None and node.step.id in order
        },
        holding=frozenset(n.step.id for n in built.nodes if job.holds_watermark(n.step.id)),
    )


def _ticks(spark: SparkSession) -> DataFrame:
    """A source without rows: a restarted query looks at its timers before new input comes."""
    return spark.readStream.format(jvm.TICKS).load().alias(_TICK)


def _refuse_nondeterministic(frame: DataFrame, sinks: Sinks) -> None:
    part = jvm.nondeterministic_part(frame)
    if part is not None and sinks.exactly_once:
        raise GraphError(
            f"the expression {part} gives another value when a batch is replayed, so the job's"
            " sinks cannot be exactly once",
            remedy="derive the value from the record instead",
        )


class _Job(Compiling):
    """The job while it is compiled; a table that several steps use is read and shuffled once."""

    def __init__(
        self, built: BuiltJob, spark: SparkSession, parallelism: int, outlets: Outlets
    ) -> None:
        self._outlets = outlets
        self.built, self.spark, self.parallelism = built, spark, parallelism
        self._tables: dict[str, DataFrame] = {}

    def table(self, name: str) -> DataFrame:
        if name not in self._tables:
            node = self.built.node(name)
            changes = node.operation.frame(self, node, self._outlets.inputs.get(name, []))
            if len(self.built.graph.consumers(name)) > 1:
                keys = node.operation.keys(0)
                changes = jvm.tee(changes.repartition(self.parallelism, *keys))
            self._tables[name] = changes
        return self._tables[name]

    def holds_watermark(self, step: str) -> bool:
        """Rows that wait hold the watermark if they would else be late for what follows."""
        node = self.built.node(step)
        if not node.operation.holds_rows or not node.operation.holds_watermark:
            return False
        return any(n.operation.by_event_time for n in behind(self.built.nodes, node))
