"""The latency of each sink: how long the records took whose rows it may have."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headgate.home.latency import quantile
from headgate.home.model import CheckpointRecord


@dataclass(frozen=True)
class SinkLatency:
    """From the timestamps of a sink's records to the commit of its rows, in milliseconds.

    Of all records that the streams before the sink have read, also of those that a filter has left
    out; a bucket of the histogram counts with its longest age.
    """

    sink: str
    p50_ms: int
    p99_ms: int
    records: int


def sink_latencies(
    steps: Sequence[Mapping[str, Any]], records: Iterable[CheckpointRecord]
) -> list[SinkLatency]:
    """Of the sinks of a graph, over some checkpoints; those that nothing came to are left out."""
    of_source: dict[str, list[tuple[int, int]]] = {}
    for record in records:
        if record.latency is not None:
            for source in record.latency.ages:
                of_source.setdefault(source, []).extend(record.latency.of(source))
    found = []
    for sink, streams in streams_of_sinks(steps).items():
        pairs = [p for name in streams for p in of_source.get(name, ())]
        p50, p99 = quantile(pairs, 0.5), quantile(pairs, 0.99)
        if p50 is not None and p99 is not None:
            found.append(SinkLatency(sink, p50, p99, sum(count for _, count in pairs)))
    return found


def streams_of_sinks(steps: Sequence[Mapping[str, Any]]) -> dict[str, list[str]]:
    """By sink of a graph, the sources whose rows may come to it."""
    by_id = {str(step["id"]): step for step in steps}
    return {
        str(step["id"]): _streams(str(step["id"]), by_id)
        for step in steps
        if step["role"] == "sink"
    }


def _streams(sink: str, steps: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """The sources whose rows may come to a sink; tables are looked up, and do not come."""
    seen, todo, sources = {sink}, [sink], []
    while todo:
        step = steps[todo.pop()]
        if step["role"] == "source":
            sources.append(str(step["id"]))
        for edge in step["inputs"]:
            before = str(edge["step"])
            if before not in seen and steps[before]["role"] != "table":
                seen.add(before)
                todo.append(before)
    return sources
