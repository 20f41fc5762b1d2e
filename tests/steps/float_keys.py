"""A job whose keys are floating numbers, alone and in structs and arrays, and its truth."""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from pyspark.sql import Row
from pyspark.sql import functions as F

import headgate as hg

ROW = "id BIGINT, k DOUBLE, flip BOOLEAN, n BIGINT, at TIMESTAMP"
SIZE = "k DOUBLE, name STRING"
BOX = "k DOUBLE, flip BOOLEAN, n BIGINT, name STRING"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEYS = [0.0, -0.0, math.nan, 1.5, None]
SINKS = ("named", "unnamed", "boxed", "unboxed", "tens", "visits", "threes", "counted")


@dataclass
class Seen:
    id: int
    seen: int


class CountRows(hg.Process):
    """Numbers the rows of each key."""

    seen = hg.value_state(int)

    def on_rows(self, row: Row, ctx: hg.Context) -> hg.Out[Seen]:
        now = (self.seen.get() or 0) + 1
        self.seen.set(now)
        yield Seen(row.id, now)


@hg.job("float_keys")
def float_keys(job: hg.Job) -> None:
    """Every kind of step with a key; a NaN that is flipped has other bits."""
    sizes = job.table("sizes", hg.topic("log:sizes", schema=SIZE), key="k")
    boxes = job.table(
        "boxes",
        hg.topic("log:boxes", schema=BOX),
        key="named_struct('w', IF(flip, -k, k), 'n', n)",
    )
    rows = job.source(
        "rows",
        hg.topic("log:rows", schema=ROW),
        event_time=hg.event_time("at", out_of_orderness="2 hours"),
    ).select("id", "n", "at", F.expr("IF(flip, -k, k)").alias("k"))
    named = rows.lookup("by_size", sizes, on="k", take=["name"], missing="side")
    named.sink("named", hg.topic("log:named"))
    named.missing.sink("unnamed", hg.topic("log:unnamed"))
    boxed = rows.lookup(
        "by_box", boxes, on="named_struct('w', k, 'n', n)", take=["name"], missing=hg.Wait("1 day")
    )
    boxed.sink("boxed", hg.topic("log:boxed"))
    boxed.missing.sink("unboxed", hg.topic("log:unboxed"))
    results = (F.count("*").alias("rows"), F.collect_set("id").alias("ids"))
    rows.key_by("k").window("per_size", hg.tumbling("10 minutes"), *results).sink(
        "tens", hg.topic("log:tens")
    )
    box = F.expr("named_struct('w', k, 'n', n)").alias("box")
    rows.key_by(box).window("per_box", hg.session("5 minutes"), *results).sink(
        "visits", hg.topic("log:visits")
    )
    pair = F.expr("array(CAST(k AS FLOAT), CAST(1.5 AS FLOAT))").alias("pair")
    rows.key_by(pair).window("per_pair", hg.count_window(3), *results).sink(
        "threes", hg.topic("log:threes")
    )
    job.process("count_rows", CountRows(), rows=rows.key_by(F.expr("array(k)").alias("one"))).sink(
        "counted", hg.topic("log:counted")
    )


def text(value: Any) -> str:
    """A value as it is compared: -0.0 is another text than 0.0, every NaN the same."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(text(v) for v in value.values()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(text, value)) + "]"
    return repr(value)


def one(k: float | None) -> str:
    """The text of a number as a key: there is one zero."""
    return text(k + 0.0 if k is not None else None)


def row(id: int, k: float | None, minute: float = 0, *, flip: bool = False, n: int = 1) -> Any:
    """A record of the stream."""
    at = (NOON + timedelta(minutes=minute)).isoformat()
    return {"id": id, "k": k, "flip": flip, "n": n, "at": at}


def random_row(rng: random.Random, id: int) -> Any:
    """A record with any of the keys."""
    k = rng.choice(KEYS)
    flip = k is not None and rng.random() < 0.5
    return row(id, k, rng.randrange(60), flip=flip, n=rng.randrange(2))


def flipped(record: Mapping[str, Any]) -> float | None:
    """The number that the job makes of a record."""
    return -record["k"] if record["flip"] and record["k"] is not None else record["k"]


@dataclass
class Truth:
    """What the job's sinks must hold, computed row by row."""

    sizes: dict[str, str] = field(default_factory=dict)
    boxes: dict[tuple[str, int], str] = field(default_factory=dict)
    waiting: list[Any] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)
    sinks: dict[str, list[Any]] = field(default_factory=lambda: {s: [] for s in SINKS})
    seen: dict[str, int] = field(default_factory=lambda: defaultdict(int))

    def batch(self, sizes: Iterable[Any], boxes: Iterable[Any], rows: Iterable[Any]) -> None:
        """All rows of tables, then those of the stream."""
        for size in sizes:
            if size["k"] is not None:  # a null key never matches
                self.sizes[one(size["k"])] = size["name"]
        for box in boxes:
            self.boxes[one(flipped(box)), box["n"]] = box["name"]
        still = []
        for r in [*self.waiting, *rows]:
            name = self.boxes.get((one(flipped(r)), r["n"]))
            if name is None:
                still.append(r)
            else:
                self.sinks["boxed"].append((r["id"], text(flipped(r)), name))
        self.waiting = still
        for r in rows:
            key, asis = one(flipped(r)), text(flipped(r))
            if key in self.sizes and key != "None":
                self.sinks["named"].append((r["id"], asis, self.sizes[key]))
            else:
                self.sinks["unnamed"].append((r["id"], asis))
            self.seen[key] += 1
            self.sinks["counted"].append((r["id"], self.seen[key]))
            self.rows.append(r)

    def drain(self) -> None:
        """Close all windows."""
        tens: dict[Any, list[Any]] = defaultdict(list)
        boxes: dict[Any, list[Any]] = defaultdict(list)
        pairs: dict[Any, list[Any]] = defaultdict(list)
        for r in self.rows:
            at = (datetime.fromisoformat(r["at"]) - NOON) // timedelta(minutes=1)
            key = one(flipped(r))
            tens[key, at // 10 * 10].append(r["id"])
            boxes[f"{{{key}, {r['n']}}}"].append((at, r["id"]))
            pairs[f"[{key}, 1.5]"].append(r["id"])
        self.sinks["tens"] = [(k, start, *_result(ids)) for (k, start), ids in tens.items()]
        for key, found in boxes.items():
            session: list[Any] = []
            for at, id in sorted(found):
                if session and at - session[-1][0] > 5:
                    self._visit(key, session)
                    session = []
                session.append((at, id))
            self._visit(key, session)
        for key, ids in pairs.items():
            parts = [ids[at : at + 3] for at in range(0, len(ids), 3)]
            self.sinks["threes"] += [(key, None, *_result(part)) for part in parts]

    def _visit(self, key: str, session: list[Any]) -> None:
        self.sinks["visits"].append((key, session[0][0], *_result([id for _, id in session])))


def _result(ids: list[int]) -> tuple[int, tuple[int, ...]]:
    return len(ids), tuple(sorted(ids))


def shown(sink: str, rows: Iterable[Mapping[str, Any]]) -> list[Any]:
    """The rows of a sink as the truth has them."""
    return [_shown(sink, r) for r in rows]


def _shown(sink: str, r: Mapping[str, Any]) -> Any:
    if sink in ("named", "boxed"):
        return r["id"], text(r["k"]), r["name"]
    if sink in ("unnamed", "unboxed"):
        return r["id"], text(r["k"])
    if sink == "counted":
        return r["id"], r["seen"]
    name = {"tens": "k", "visits": "box", "threes": "pair"}[sink]
    start = (r["window_start"] - NOON) // timedelta(minutes=1) if sink != "threes" else None
    return text(r[name]), start, r["rows"], tuple(sorted(r["ids"]))


OLD_SIZES = [{"k": 0.0, "name": "zero"}, {"k": -0.0, "name": "minus"}, {"k": 1.5, "name": "more"}]
OLD_BOXES = [
    {"k": 0.0, "flip": False, "n": 1, "name": "plus"},
    {"k": 1.5, "flip": False, "n": 1, "name": "more"},
]
OLD_ROWS = [
    row(1, 0.0, 1),
    row(2, -0.0, 2),
    row(3, math.nan, 3),
    row(4, math.nan, 4, flip=True),
    row(5, 1.5, 5),
]
"""What the home in fixtures/float_keys.tar.gz has read, in which 0.0 and -0.0 are two keys.

It was written by Headgate before keys were normalised: topics `sizes`, `boxes` and `rows` filled
with these in the working directory, and one bounded run with `home="home"`, `parallelism=1`.
"""
