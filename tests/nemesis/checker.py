"""What is wrong with the outputs of a job: lost, twice, reordered, torn, or seen and then gone."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Place = tuple[str, int, int]
"""Topic, partition and offset."""
_SHOWN = 3


@dataclass(frozen=True)
class Finding:
    """Something that an exact job never does."""

    kind: str
    where: str
    rows: int
    examples: tuple[str, ...] = ()

    def __str__(self) -> str:
        shown = "; ".join(self.examples)
        return f"{self.kind} in {self.where}: {self.rows} rows" + (f" ({shown})" if shown else "")


def compare(where: str, wanted: Counter[Any], got: Counter[Any]) -> list[Finding]:
    """Every row that is wanted is there, as often as it is wanted, and no other."""
    doubles = Counter({row: n - wanted[row] for row, n in got.items() if 0 < wanted[row] < n})
    return _some(
        ("lost", where, wanted - got),
        ("twice", where, doubles),
        ("never sent", where, Counter({row: n for row, n in got.items() if not wanted[row]})),
    )


def ordered(
    where: str, rows: Iterable[Mapping[str, Any]], key: Callable[[Any], Hashable], by: str
) -> list[Finding]:
    """The rows of a key, in the order in which a topic has them, have `by` ascending."""
    last: dict[Hashable, Any] = {}
    wrong: Counter[Any] = Counter()
    for row in rows:
        of = key(row)
        if of in last and row[by] < last[of]:
            wrong[f"{of}: {by} {row[by]} after {last[of]}"] += 1
        last[of] = row[by]
    return _some(("reordered", where, wrong))


def together(ids: Mapping[str, Counter[Any]]) -> list[Finding]:
    """What one output has of a batch, the others have."""
    everywhere: Counter[Any] = Counter()
    for found in ids.values():
        everywhere |= found
    return _some(*(("torn", where, everywhere - found) for where, found in ids.items()))


def stayed(seen: Mapping[Place, str], final: Mapping[Place, str]) -> list[Finding]:
    """What a careful reader saw while the job ran is what is there at the end."""
    gone: defaultdict[str, Counter[Any]] = defaultdict(Counter)
    for place, value in seen.items():
        if final.get(place) != value:
            gone[place[0]][f"{place[1]}:{place[2]} {value}"] += 1
    return _some(*(("aborted row seen", where, rows) for where, rows in gone.items()))


def _some(*found: tuple[str, str, Counter[Any]]) -> list[Finding]:
    return [
        Finding(kind, where, rows.total(), tuple(_text(row) for row in list(rows)[:_SHOWN]))
        for kind, where, rows in found
        if rows
    ]


def _text(row: Any) -> str:
    text = row if isinstance(row, str) else json.dumps(row, default=str)
    return text[:200]
