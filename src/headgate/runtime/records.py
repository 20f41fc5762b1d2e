"""The record of each checkpoint, from Spark's progress and the kernel's journal of counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from headgate.base.topic_ids import TopicIds
from headgate.graph.formats import current
from headgate.home.checkpoint_log import KEEP, SPAN
from headgate.home.event_time import EventTimeRecord
from headgate.home.files import read_json
from headgate.home.latency import LatencyRecord
from headgate.home.layout import RunHome
from headgate.home.model import CheckpointRecord, Counts
from headgate.home.offsets import Offset, SourceOffsets
from headgate.home.read.counts import CHANGES, table_rows, tables_of
from headgate.home.read.run import tally_of_records
from headgate.home.stages import stages_of_batch
from headgate.home.tally import Tally
from headgate.home.times import from_iso, from_ms
from headgate.snapshots.spark_log import committed_batches, read_entry
from headgate.snapshots.topics import read_topics

OPERATOR_PREFIX = "headgate:"
"""What the kernel's operators put before their step's name in Spark's progress."""

_PHASES = {
    "latestOffset": "sources",
    "getBatch": "sources",
    "queryPlanning": "planning",
    "addBatch": "execution",
    "walCommit": "commit",
    "commitOffsets": "commit",
    "commitBatch": "commit",
}


@dataclass(frozen=True)
class _Journal:
    """What the kernel says of a batch."""

    counters: Counts
    watermark: datetime | None = None
    event_time: EventTimeRecord | None = None
    latency: LatencyRecord | None = None


class Recorder:
    """Writes one record for each committed batch of a run, in order, each exactly once."""

    def __init__(
        self,
        run: RunHome,
        sources: Sequence[str],
        *,
        history: int | None = None,
        ours: Callable[[], bool] = lambda: True,
    ) -> None:
        """`history` says how many records are kept; without it none is packed or deleted.

        `ours` looks whether the run is still this driver's.
        """
        self._run = run
        self._ours = ours
        self._journal_from: int | None = None
        self._history = history
        self._unpacked = history is not None  # an older Headgate may have left many files
        self._sources = tuple(sources)
        self._unique = tuple(dict.fromkeys(sources))  # Spark's progress names a stream once
        self.last = run.latest_checkpoint()
        graph = read_json(run.files, f"{run.path}/graph.json")
        self._tables = tables_of(current(graph)["steps"]) if graph else {}

    def recover(self) -> list[CheckpointRecord]:
        """Write the records that a killed driver could not: committed batches without one.

        The kernel writes a batch's journal before Spark commits the batch, so no count is lost.
        """
        missing = self._missing()
        if missing and not self._ours():
            return []  # they are another driver's, which took the job over while we were frozen
        return [self._recovered(batch) for batch in missing]

    def observe(self, progresses: Iterable[Mapping[str, Any]]) -> list[CheckpointRecord]:
        """Write the records of batches that have ended, from their progress."""
        written = []
        for progress in sorted(progresses, key=lambda p: int(p["batchId"])):
            batch = int(progress["batchId"])
            # A trigger without a batch reports progress too, under the next batch's number.
            if "addBatch" not in progress["durationMs"] or batch <= self._newest():
                continue
            written += [self._recovered(n) for n in self._missing(before=batch)]
            written.append(self._write(self._from_progress(batch, progress)))
        return written

    def _newest(self) -> int:
        return self.last.id if self.last else -1

    def _missing(self, *, before: int | None = None) -> list[int]:
        newest = self._newest()
        if before is not None and before == newest + 1:
            return []  # the usual case costs no listing
        batches = [batch for batch in committed_batches(self._run) if batch > newest]
        return batches if before is None else [batch for batch in batches if batch < before]

    def _from_progress(self, batch: int, progress: Mapping[str, Any]) -> CheckpointRecord:
        durations = {name: int(ms) for name, ms in progress["durationMs"].items()}
        duration = durations.get("triggerExecution", int(progress.get("batchDuration") or 0))
        phases = dict.fromkeys(("sources", "planning", "execution", "commit"), 0)
        for name, ms in durations.items():
            if name in _PHASES:
                phases[_PHASES[name]] += ms
        triggered = from_iso(progress["timestamp"])
        journal = self._journal(batch)
        rows, time = self._rows(journal), self._event_time(journal)
        totals = _added(self._totals(), rows)
        offsets = zip(self._unique, progress.get("sources") or [], strict=False)
        return CheckpointRecord(
            id=batch,
            run=self._run.id,
            status="COMPLETED",
            type="periodic",
            triggered_at=triggered,
            completed_at=triggered + timedelta(milliseconds=duration) if triggered else None,
            duration_ms=duration,
            phases=phases,
            rows=rows,
            totals=totals,
            state=_state(totals, _state_bytes(progress.get("stateOperators") or [])),
            sources={name: _source(source) for name, source in offsets if _shown(name)},
            watermark=journal.watermark,
            event_time=time,
            latency=journal.latency,
            stages=stages_of_batch(progress.get("stages") or [], triggered, rows),
        )

    def _recovered(self, batch: int) -> CheckpointRecord:
        journal = self._journal(batch)
        rows, time = self._rows(journal), self._event_time(journal)
        totals = _added(self._totals(), rows)
        before, entry = read_entry(self._run, batch - 1), read_entry(self._run, batch)
        starts = before.by_name(self._sources) if before else {}
        ends = entry.by_name(self._sources) if entry else {}
        committed = self._run.files.modified(f"{self._run.spark_path}/commits/{batch}")
        old_bytes = {
            step: sizes.get("bytes", 0)
            for step, sizes in (self.last.state if self.last else {}).items()
        }
        return self._write(
            CheckpointRecord(
                id=batch,
                run=self._run.id,
                status="COMPLETED",
                type="recovered",
                triggered_at=from_ms(entry.batch_time_ms) if entry else None,
                completed_at=datetime.fromtimestamp(committed, UTC) if committed else None,
                duration_ms=None,
                rows=rows,
                totals=totals,
                state=_state(totals, old_bytes),
                sources={
                    name: SourceOffsets(_offsets(starts.get(name)), _offsets(end), {})
                    for name, end in ends.items()
                    if _shown(name)
                },
                watermark=from_ms(entry.watermark_ms) if entry else None,
                event_time=time,
                latency=journal.latency,
            )
        )

    def _write(self, record: CheckpointRecord) -> CheckpointRecord:
        ids = read_topics(self._run)
        named = {name: replace(s, ids=ids.get(name)) for name, s in record.sources.items()}
        tally = self._tally().plus(record.duration_ms, record.phases)
        record = replace(record, sources=named, tally=tally)
        self._run.write_checkpoint(record)
        self.last = record
        self._delete_journal(record)
        self._pack(record)
        return record

    def _delete_journal(self, record: CheckpointRecord) -> None:
        """Delete what is in records; a listing a batch would be one request more in a bucket."""
        folder = f"{self._run.path}/journal"
        if self._journal_from is None:
            stems = (name.removesuffix(".json") for name in self._run.files.list(folder))
            old = [int(stem) for stem in stems if stem.isdigit() and int(stem) < record.id]
        else:
            old = list(range(self._journal_from, record.id))
        for batch in old:
            self._run.files.delete(f"{folder}/{batch:010d}.json")
        self._journal_from = record.id

    def _pack(self, record: CheckpointRecord) -> None:
        """Pack old records when another range is complete, or when there was more to pack."""
        if self._history is None:
            return
        if self._unpacked or (record.id + 1 - KEEP) % SPAN == 0:
            self._unpacked = self._run.checkpoint_log.tidy(self._history)

    def _tally(self) -> Tally:
        if self.last is None:
            return Tally()
        return self.last.tally or tally_of_records(self._run)

    def _rows(self, journal: _Journal) -> Counts:
        """A batch's counts, with the table rows of lookups: all that their tables gave."""
        rows = {step: dict(metrics) for step, metrics in journal.counters.items()}
        for step, tables in self._tables.items():
            if step in rows:
                rows[step][CHANGES] = table_rows(rows[step], tables, rows)
        return rows

    def _totals(self) -> Counts:
        """The totals so far; an older Headgate did not write those of table rows."""
        if self.last is None:
            return {}
        totals = {step: dict(metrics) for step, metrics in self.last.totals.items()}
        for step, tables in self._tables.items():
            if step in totals:
                totals[step][CHANGES] = table_rows(totals[step], tables, totals)
        return totals

    def _journal(self, batch: int) -> _Journal:
        data = read_json(self._run.files, f"{self._run.path}/journal/{batch:010d}.json")
        if not data:
            return _Journal({})
        time = data.get("event_time")
        return _Journal(
            data["counters"],
            from_ms(time.get("watermark")) if time else None,
            EventTimeRecord.from_journal(time) if time else None,
            LatencyRecord.from_json(data["latency"]) if data.get("latency") else None,
        )

    def _event_time(self, journal: _Journal) -> EventTimeRecord | None:
        """Watermarks never go back, so those of a batch without an entry are those before it."""
        return journal.event_time or (self.last.event_time if self.last else None)


def forked_record(
    parent: CheckpointRecord,
    *,
    run: str,
    steps: Iterable[str],
    lines: Mapping[str, str] = MappingProxyType({}),
    ids: Mapping[str, TopicIds] = MappingProxyType({}),
    fewer: Mapping[str, int] = MappingProxyType({}),
) -> CheckpointRecord:
    """The record with which a forked run begins: where its parent was, for the steps it has.

    `lines` are those of Spark's offset log for sources that begin elsewhere; `ids` are those of
    the topics that the run reads; `fewer` says by step how many rows of state are gone, because
    their keys have become one.
    """
    kept = set(steps)
    sources = {
        **parent.sources,
        **{name: SourceOffsets(end=_offsets(line)) for name, line in lines.items()},
    }
    gone = {step: {"state_removed": rows} for step, rows in fewer.items() if rows}
    state = {step: dict(sizes) for step, sizes in parent.state.items() if step in kept}
    for step, counts in gone.items():
        state[step]["rows"] -= counts["state_removed"]
    return replace(
        parent,
        run=run,
        type="forked",
        tally=Tally(),
        latency=None,
        stages=(),
        rows={},
        totals=_added({s: m for s, m in parent.totals.items() if s in kept}, gone),
        state=state,
        sources={
            name: replace(s, ids=ids.get(name)) for name, s in sources.items() if name in kept
        },
        event_time=parent.event_time.only(kept) if parent.event_time else None,
    )


def _added(totals: Counts, rows: Counts) -> dict[str, dict[str, int]]:
    result = {step: dict(metrics) for step, metrics in totals.items()}
    for step, metrics in rows.items():
        mine = result.setdefault(step, {})
        for name, count in metrics.items():
            mine[name] = mine.get(name, 0) + count
    return result


def _state(totals: Counts, sizes: Mapping[str, int]) -> dict[str, dict[str, int]]:
    # Spark's own row count is switched off (it costs a read a put): what went in less what went
    # out is the same number, and survives restarts because it is in the totals.
    state: dict[str, dict[str, int]] = {}
    for step, metrics in totals.items():
        if "state_inserted" in metrics or "state_removed" in metrics or step in sizes:
            rows = metrics.get("state_inserted", 0) - metrics.get("state_removed", 0)
            state[step] = {"rows": rows, "bytes": sizes.get(step, 0)}
        if "waiting_added" in metrics:
            waiting = metrics["waiting_added"] - metrics.get("waiting_removed", 0)
            state.setdefault(step, {"rows": 0, "bytes": 0})["waiting"] = waiting
    for step, size in sizes.items():
        state.setdefault(step, {"rows": 0, "bytes": size})
    return state


def _state_bytes(operators: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for operator in operators:
        name = str(operator.get("operatorName", ""))
        if name.startswith(OPERATOR_PREFIX):
            metrics = operator.get("customMetrics") or {}
            on_disk = int(metrics.get("rocksdbSstFileSize", 0))
            sizes[name.removeprefix(OPERATOR_PREFIX)] = on_disk or int(
                operator.get("memoryUsedBytes", 0)
            )
    return sizes


def _shown(source: str) -> bool:
    """Whether a source is the user's: Headgate's own, such as its clock, have hidden names."""
    return not source.startswith("__")


def _source(progress: Mapping[str, Any]) -> SourceOffsets:
    return SourceOffsets(
        _offsets(progress.get("startOffset")),
        _offsets(progress.get("endOffset")),
        _offsets(progress.get("latestOffset")),
    )


def _offsets(value: Any) -> dict[str, Offset]:
    """Offsets by partition, from JSON text or what was read from it; none for "-" or null."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            return {}
    if not isinstance(value, Mapping):
        return {}
    if len(value) == 1 and isinstance(inner := next(iter(value.values())), Mapping):
        value = inner  # Kafka's offsets are by topic, and a source reads one topic
    # in the first batch of a Pulsar source there is also where it began, which is no partition
    return {str(part): n for part, n in value.items() if isinstance(n, int | str)}
