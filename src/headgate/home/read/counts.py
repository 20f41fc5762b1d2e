"""What the counters of a step mean: the one definition of in, out, late, missing and dropped.

Counters stand in a checkpoint's record by step, for the batch (`rows`) and since the start
(`totals`). Everybody who shows or sums them goes through `StepCounts`, or through the sums over
sources and sinks below:

in
    Rows that came into the step from streams. The rows of a lookup's table are `table`.
table
    Rows of tables that came into a lookup: changes of its state, which are no stream's rows.
out
    Rows that left by the main output.
unmatched
    Those of out that found no table row and left with nulls (``missing="null"``).
missing
    Rows that left by the side output `missing`, at once or after they had waited.
late
    Rows that came too late for their window, whether anything reads `.late` or not.
dropped
    Rows that the step let go because the job says so: ``missing="drop"``.
waiting
    Rows that wait in the step now.
side
    Rows that left by any other side output, by its name: `malformed`, or one of the user's.
taken
    Rows that went into windows, a function or a transform: what leaves are rows of its own.

So for a lookup and a sink: in = out + missing + late + dropped + waiting + side; and for a step
that makes rows of its own: in = late + taken. Steps without a name are not counted: what a filter
between two steps holds back is what left the one and did not come into the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headgate.base.counters import counted_by_users
from headgate.home.model import CheckpointRecord, Counts

CHANGES = "state_changes"
"""The counter of table rows that came into a lookup; the kernel counts them in records_in."""
_OUT = "records_out"
_SIDE = "records_out_"
_COLUMNS = ("missing", "late")


@dataclass(frozen=True)
class StepCounts:
    """Where the rows of a step went; nothing where it has no such rows."""

    records_in: int | None
    table: int | None
    records_out: int
    unmatched: int | None
    missing: int | None
    late: int | None
    dropped: int | None
    waiting: int | None
    taken: int | None
    side: Mapping[str, int] = field(default_factory=dict)
    """Side outputs but `missing` and `late`."""
    counted: Mapping[str, int] = field(default_factory=dict)
    """What the step's own code has counted, by name."""

    def left_by(self, output: str) -> int:
        """Rows that left by an output."""
        if output == "out":
            return self.records_out
        if output in _COLUMNS:
            return (self.missing if output == "missing" else self.late) or 0
        return self.side.get(output, 0)

    def unaccounted(self) -> int:
        """Rows that came in and are in no other number: 0, or there is a mistake somewhere."""
        if self.records_in is None:
            return 0
        known = (self.missing, self.late, self.dropped, self.waiting, *self.side.values())
        if self.taken is not None:
            return self.records_in - self.taken - (self.late or 0)
        return self.records_in - self.records_out - sum(n or 0 for n in known)


def step_counts(
    step: Mapping[str, Any],
    counts: Counts,
    *,
    tables: Sequence[str] = (),
    waiting: int | None = None,
) -> StepCounts:
    """The counts of a step of graph.json, from the totals or the rows of a record.

    `tables` are those of its inputs that are tables, `waiting` the rows that wait in it.
    """
    own = counts.get(str(step["id"]), {})
    changes = table_rows(own, tables, counts) if tables else None
    into = own.get("records_in", 0) - (changes or 0) if step["inputs"] else None
    outputs = [str(output) for output in step["outputs"] if output != "out"]
    sides = {output: own.get(f"{_SIDE}{output}", 0) for output in outputs}
    late = sides.get("late")
    makes = bool(step["outputs"]) and not tables
    return StepCounts(
        records_in=into,
        table=changes,
        records_out=own.get(_OUT, 0),
        unmatched=own.get("records_unmatched"),
        missing=sides.get("missing"),
        late=late,
        dropped=own.get("records_dropped"),
        waiting=waiting,
        taken=into - (late or 0) if makes and into is not None else None,
        side={name: n for name, n in sides.items() if name not in _COLUMNS},
        counted=counted_by_users(own),
    )


def tables_of(steps: Iterable[Mapping[str, Any]]) -> dict[str, tuple[str, ...]]:
    """By step of graph.json, the tables that come into it."""
    known = list(steps)
    roles = {str(step["id"]): str(step["role"]) for step in known}
    found = {
        str(step["id"]): tuple(
            str(edge["step"]) for edge in step["inputs"] if roles.get(edge["step"]) == "table"
        )
        for step in known
    }
    return {step: tables for step, tables in found.items() if tables}


def table_rows(own: Mapping[str, int], tables: Iterable[str], counts: Counts) -> int:
    """Table rows that came into a step; a record of an older Headgate has no counter of them."""
    if CHANGES in own or "records_in" not in own:
        return own.get(CHANGES, 0)
    return sum(counts.get(table, {}).get(_OUT, 0) for table in tables)


def left(counts: Counts, steps: Iterable[str]) -> int:
    """Rows that left steps by any output: of sources all that was read, of sinks all written."""
    return sum(
        n
        for step in steps
        for name, n in counts.get(step, {}).items()
        if name == _OUT or name.startswith(_SIDE)
    )


def source_rows(record: CheckpointRecord) -> int:
    """Records that a checkpoint took from its sources, malformed ones too."""
    return left(record.rows, record.sources)


def behind(record: CheckpointRecord) -> int:
    """Records that were there when the checkpoint was cut and are not in it."""
    return sum(offsets.behind() for offsets in record.sources.values())


def sinks_of(steps: Iterable[Mapping[str, Any]]) -> list[str]:
    """The steps of graph.json that rows leave the job by: those without an output."""
    return [str(step["id"]) for step in steps if not step["outputs"]]
