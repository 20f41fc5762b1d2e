"""A job compiled into one query, and that query's start."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from headgate import jvm
from headgate.base.errors import GraphError
from headgate.compile.fanout import Outlets, fan_out, key_names
from headgate.compile.holds import holding_steps
from headgate.compile.paths import Arrival, Needs, arrivals, carried_columns, union_of
from headgate.compile.processes import has_timers, process_frame, process_outputs
from headgate.compile.sinks import Sinks, Writer
from headgate.compile.sources import BAD, event_times, source_frame, table_frame, table_rows, ticks
from headgate.compile.windows import window_frame, window_outputs
from headgate.connectors.base import Source
from headgate.graph import Graph
from headgate.graph.plan import (
    CARRIED,
    EVENT_TIME,
    BuiltJob,
    LookupOp,
    Node,
    ProcessOp,
    RawSource,
    SourceOp,
    TableOp,
    WindowOp,
)


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
    ) -> StreamingQuery:  # fmt: skip
        """Start the query for a run; a bounded one ends when it has read what is there.

        With `drain` event time ends then: every window is closed. `event_time` is how far the
        sources were when the run was left.
        """
        return jvm.start(
            self.frame,
            name=writer.job,
            checkpoint=checkpoint,
            spec=json.dumps(self.spec(writer)),
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

        Kafka ends a transaction in its partitions a moment after it has told the producer.
        """
        return jvm.await_readable(self.frame.sparkSession, json.dumps(self.spec(writer)))

    def spec(self, writer: Writer) -> dict[str, Any]:
        """What the sinks are told, once the session has the jars that their writers need."""
        if "kafka" in self.sinks.kinds:
            jvm.need_kafka(self.frame.sparkSession)
        if "pulsar" in self.sinks.kinds:
            jvm.need_pulsar(self.frame.sparkSession)
        return self.sinks.spec(writer)


def compile_job(built: BuiltJob, spark: SparkSession, *, parallelism: int) -> CompiledJob:
    """Make one query of the job's steps."""
    sinks = Sinks.of(built)
    outlets = Outlets()
    tables = _Tables(built, spark, parallelism)
    needs = carried_columns(built)
    for node in built.nodes:
        if isinstance(node.operation, SourceOp):
            base = source_frame(spark, node)
        elif isinstance(node.operation, LookupOp) and node.step.id in outlets.inputs:
            base = _lookup(built, node, outlets.inputs[node.step.id], tables)
        elif isinstance(node.operation, WindowOp) and node.step.id in outlets.inputs:
            base = window_frame(built, node, outlets.inputs[node.step.id])
        elif isinstance(node.operation, ProcessOp) and node.step.id in outlets.inputs:
            base = process_frame(node, outlets.inputs[node.step.id])
        else:
            continue

        def ways(shared: DataFrame, node: Node = node) -> list[Arrival]:
            return list(arrivals(built, node, _outputs(built, node, shared, needs)))

        if users := ways(base):
            placed = not isinstance(node.operation, SourceOp)
            fan_out(base, users, ways, sinks, outlets, parallelism, placed=placed)
    windows = any(
        isinstance(node.operation, WindowOp) or has_timers(node, "event") for node in built.nodes
    )
    if windows or any(_waits(n) or has_timers(n, "processing") for n in built.nodes):
        outlets.leaves.append(sinks.nothing(ticks(spark)))
    frame = union_of(outlets.leaves)
    _refuse_nondeterministic(frame, sinks)
    layouts = jvm.state_layout(frame)
    steps = tuple(
        dataclasses.replace(step, stores=tuple(layouts.get(step.id, ())))
        for step in built.graph.steps
    )
    order = tuple(jvm.source_order(frame))
    graph = dataclasses.replace(built.graph, sources=order, steps=steps)
    sources = {
        node.step.id: node.operation.source
        for node in built.nodes
        if isinstance(node.operation, SourceOp | TableOp)
    }
    times = {name: time for name, time in event_times(built.nodes).items() if name in order}
    holding = frozenset(holding_steps(built))
    return CompiledJob(graph, sinks.numbered(frame), sinks, sources, windows, times, holding)


def _waits(node: Node) -> bool:
    return isinstance(node.operation, LookupOp) and node.operation.missing.startswith("wait")


def _refuse_nondeterministic(frame: DataFrame, sinks: Sinks) -> None:
    part = jvm.nondeterministic_part(frame)
    if part is not None and sinks.exactly_once:
        raise GraphError(
            f"the expression {part} gives another value when a batch is replayed, so the job's"
            " sinks cannot be exactly once",
            remedy="derive the value from the record instead",
        )


def _outputs(built: BuiltJob, node: Node, base: DataFrame, needs: Needs) -> dict[str, DataFrame]:
    """The rows of a step's outputs, as the user knows their columns, and what they carry."""
    operation = node.operation
    names = [c for c in CARRIED if c in needs[node.step.id] and c in base.columns]
    if isinstance(operation, WindowOp):
        return window_outputs(node, base, names)
    if isinstance(operation, ProcessOp):
        return process_outputs(built, node, base, names)
    carried = [F.col(c) for c in names]
    columns = [*[F.col(f"`{c}`") for c in node.schemas["out"].names], *carried]
    if isinstance(operation, SourceOp):
        if operation.malformed == "fail":
            return {"out": base.select(*columns)}
        return {
            "out": base.where(F.col(BAD).isNull()).select(*columns),
            "malformed": base.where(F.col(BAD).isNotNull()).select(f"{BAD}.*"),
        }
    assert isinstance(operation, LookupOp)
    stream = built.node(node.step.inputs[0].step).schemas[node.step.inputs[0].output]
    before = [F.col(f"`{c}`") for c in stream.names]
    found = F.col(_FOUND)
    if operation.take is None:
        added = [found.alias(operation.into)]
    else:
        names = node.schemas["out"].names[len(stream.names) :]
        added = [found.getField(name).alias(name) for name in names]
    rows = base.select(*before, *added, *carried)
    if "missing" not in node.step.outputs:
        return {"out": rows}
    return {
        "out": base.where(found.isNotNull()).select(*before, *added, *carried),
        "missing": base.where(found.isNull()).select(*before, *carried),
    }


_FOUND = "__hg_found"


class _Tables:
    """The tables' changes; one that several lookups use is read and shuffled once."""

    def __init__(self, built: BuiltJob, spark: SparkSession, partitions: int) -> None:
        self._built = built
        self._spark = spark
        self._partitions = partitions
        self._frames: dict[str, DataFrame] = {}

    def frame(self, name: str) -> DataFrame:
        if name not in self._frames:
            node = self._built.node(name)
            df = table_frame(self._spark, node)
            users = self._built.graph.consumers(name)
            if len(users) > 1:
                assert isinstance(node.operation, TableOp)
                keys = [f"__hg_k{i}" for i in range(len(node.operation.keys))]
                df = jvm.tee(df.repartition(self._partitions, *keys))
            self._frames[name] = df
        return self._frames[name]


def _lookup(built: BuiltJob, node: Node, inputs: list[DataFrame], tables: _Tables) -> DataFrame:
    operation = node.operation
    assert isinstance(operation, LookupOp)
    table = built.node(operation.table)
    assert isinstance(table.operation, TableOp)
    stream = union_of(inputs)
    keys = key_names(Arrival(node, stream))
    rows = table_rows(
        tables.frame(operation.table),
        table.schemas["out"].names,
        len(table.operation.keys),
        operation.take,
    )
    table_keys = [f"__hg_k{i}" for i in range(len(keys))]
    # a key that widens is widened on the stream's side: the state keeps the table's type
    for name, stored in zip(keys, table_keys, strict=True):
        if stream.schema[name].dataType != rows.schema[stored].dataType:
            stream = stream.withColumn(
                f"{name}__hg_wide", F.col(name).cast(rows.schema[stored].dataType)
            )
            keys[keys.index(name)] = f"{name}__hg_wide"
    return jvm.lookup(
        stream,
        rows,
        step=node.step.id,
        stream_keys=keys,
        table_keys=table_keys,
        value="value",
        position="__hg_position",
        deleted="__hg_deleted",
        into=_FOUND,
        missing=operation.missing,
        held=EVENT_TIME if node.step.id in holding_steps(built) else None,
    )
