"""Whether the sinks of a run are where its home says: a home may be older than its sinks.

A home that was restored from a backup would give its next batches numbers that sinks know already,
and their rows would count as out. So a start compares the sinks' markers with the home's batches.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headgate.base.errors import RefusedError
from headgate.home.layout import RunHome
from headgate.snapshots.snapshot import Snapshot
from headgate.snapshots.spark_log import (
    OffsetEntry,
    latest_committed,
    planned_batches,
    read_entry,
)


@dataclass(frozen=True)
class Marker:
    """A batch that a sink has."""

    batch: int
    fingerprint: str = ""
    """Of the batch's offsets; empty in markers of versions that wrote none, and of Pulsar's."""
    position: OffsetEntry | None = None
    """How far the sources were after the batch, if the marker says so."""

    @staticmethod
    def from_json(data: Mapping[str, Any]) -> Marker:
        """From what the kernel found."""
        position = None
        if "offsets" in data:
            times = {"batchTimestampMs": data["time"], "batchWatermarkMs": data["watermark"]}
            position = OffsetEntry(times, tuple(data["offsets"]))
        return Marker(int(data["batch"]), str(data.get("fingerprint", "")), position)


def sinks_with(markers: Mapping[str, Sequence[Marker]], batch: int) -> list[str]:
    """The sinks that have a batch or a later one."""
    return sorted(sink for sink, of in markers.items() if any(m.batch >= batch for m in of))


@dataclass(frozen=True)
class Ahead:
    """What sinks have that the home does not know of."""

    batch: int
    sinks: tuple[str, ...]
    """Those that have a batch which the home does not know."""
    position: OffsetEntry | None
    """How far the sources were after the newest such batch."""
    known: bool
    """Whether the home has a batch of that number, with other offsets."""

    def refusal(self, run: RunHome) -> RefusedError:
        """Why nothing is started, and what the user can do."""
        latest = latest_committed(run)
        at = "no checkpoint" if latest is None else f"ck:{latest}"
        has = f"{', '.join(self.sinks)} {'has' if len(self.sinks) == 1 else 'have'}"
        what = (
            f"{has} a batch {self.batch} of run {run.id} whose input differs from that of this "
            "home's batch"
            if self.known
            else f"{has} batch {self.batch} of run {run.id}"
        )
        usual = (
            "resume --from a snapshot of that batch or a later one, start from nothing with --fresh"
        )
        accept = (
            ", or go on behind what the sinks have with --accept-sink-position"
            if self.position is not None and latest is not None
            else " (both may write rows again)"
        )
        return RefusedError(
            f"{what}, but the home is at {at}: it is older than its sinks, as after a restore from "
            "a backup, and the rows of its next batches would count as written",
            remedy=usual + accept,
        )

    def plan_first(self, run: RunHome, snapshot: Snapshot, graph: Mapping[str, Any]) -> None:
        """Plan the first batch of a new run: all input that the sinks have, and nothing more."""
        assert self.position is not None
        first = read_entry(run, snapshot.batch)
        assert first is not None, "a restored run has its snapshot's offsets"
        old = [str(name) for name in snapshot.graph["sources"]]
        moved = self.position.reordered(old, [str(name) for name in graph["sources"]])
        metadata = {**first.metadata, **self.position.metadata}
        text = replace(moved, metadata=metadata).to_text()
        run.files.write_text(f"{run.spark_path}/offsets/{snapshot.batch + 1}", text)

    def skipped(self, snapshot: Snapshot) -> str:
        """What is not written again, in words."""
        assert self.position is not None
        sources = [str(name) for name in snapshot.graph["sources"]]
        begin = snapshot.closure().offsets.by_name(sources)
        end = self.position.by_name(sources)
        ranges = [
            f"{name} {_shown(begin[name], end[name])}"
            for name in dict.fromkeys(sources)
            if begin[name] != end[name] and not name.startswith("__")
        ]
        first = snapshot.batch + 1
        batches = f"batch {first}" if first >= self.batch else f"batches {first} to {self.batch}"
        return (
            f"{batches} of run {snapshot.run.run} count as out in all sinks "
            f"({', '.join(self.sinks)} say so): what the job makes of this input is not written "
            f"again: {'; '.join(ranges) or 'none'}"
        )


def find_ahead(run: RunHome, markers: Mapping[str, Sequence[Marker]]) -> Ahead | None:
    """Compare the sinks' markers with the batches that the home has planned."""
    newest = max(planned_batches(run), default=-1)
    unknown = {
        sink: [m for m in of if m.batch > newest or _is_other(run, m)]
        for sink, of in markers.items()
    }
    found = [marker for of in unknown.values() for marker in of]
    if not found:
        return None
    last = max(marker.batch for marker in found)
    return Ahead(
        batch=last,
        sinks=tuple(sorted(sink for sink, of in unknown.items() if of)),
        position=next((m.position for m in found if m.batch == last and m.position), None),
        known=last <= newest,
    )


def _is_other(run: RunHome, marker: Marker) -> bool:
    """Whether the home has the marker's batch with other offsets; old batches are not kept."""
    if not marker.fingerprint:
        return False
    entry = read_entry(run, marker.batch)
    return entry is not None and entry.fingerprint != marker.fingerprint


def _shown(begin: str, end: str) -> str:
    """From where to where a source is passed over.

    >>> _shown('{"0":20}', '{"0":40}'), _shown('-', '{"t":{"1":7}}')
    ('0: 20 to 40', 't 1: start to 7')
    """
    starts, ends = dict(_flat(begin)), dict(_flat(end))
    moved = [
        f"{place}: {starts.get(place, 'start')} to {to}"
        for place, to in ends.items()
        if starts.get(place) != to
    ]
    return ", ".join(moved) or "unchanged"


def _flat(line: str) -> Iterable[tuple[str, str]]:
    try:
        value = json.loads(line)
    except ValueError:
        return
    yield from _pairs(value, "")


def _pairs(value: Any, place: str) -> Iterable[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _pairs(inner, f"{place} {name}".strip())
    else:
        yield place, str(value)
