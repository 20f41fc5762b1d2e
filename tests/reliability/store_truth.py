"""What the store job must have written, computed without Spark from its topics and offsets.

The records of the checkpoints say which records each batch took. The rest follows from the
semantics alone: a batch applies its table rows in source order, then looks up its orders.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headgate.connectors.log.files import LogRecord
from headgate.connectors.pulsar.ids import to_number
from headgate.home.layout import Home, RunHome
from headgate.home.offsets import Offset
from tests.reliability.topics import OUTPUTS, Topics, topics_of

_ORDER = (
    "invoiceId", "lineItemId", "userId", "itemId", "itemName", "itemCategory", "price",
    "createdAt", "paidAt",
)  # fmt: skip
_KEPT = ("invoiceId", "lineItemId", "createdAt", "paidAt")


@dataclass
class Truth:
    """The rows of every output, and the tables at the end."""

    rows: dict[str, Counter[str]] = field(default_factory=lambda: {o: Counter() for o in OUTPUTS})
    tables: dict[str, dict[int, Any]] = field(default_factory=lambda: {"users": {}, "items": {}})
    batches: int = 0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """What every step must have counted, by step and metric."""


def expected(home: Path | str, data: Path | Topics) -> Truth:
    """Replay every checkpoint of every run in plain Python."""
    job = Home(str(home)).job("store")
    topics = {name: _records(topics_of(data), name) for name in ("orders", "users", "items")}
    truth = Truth()
    for run in job.runs():
        order = _lookup_order(run)
        for record in run.checkpoints():
            if record.type == "forked":
                continue
            truth.batches += 1
            taken = {}
            for name, offsets in record.sources.items():
                taken[name] = [
                    record_
                    for p in sorted(offsets.end, key=int)
                    for record_ in _between(
                        topics[name].get(int(p), []), offsets.start.get(p), offsets.end[p]
                    )
                ]
            for name in ("users", "items"):
                for record_ in taken.get(name, []):
                    _apply(truth.tables[name], record_)
                    truth.counts[name, "records_out"] += 1
                    truth.counts[f"{name}_lookup", "records_in"] += 1
            for record_ in taken.get("orders", []):
                _order(truth, record_, order)
    for output, rows in truth.rows.items():
        truth.counts[output, "records_in"] = truth.counts[output, "records_out"] = rows.total()
    return truth


def written(data: Path | Topics) -> dict[str, Counter[str]]:
    """What is in the output topics."""
    return {
        name: Counter(
            _canonical(json.loads(r.value or "null"), name) for r in topics_of(data).read(name)
        )
        for name in OUTPUTS
    }


def _records(topics: Topics, name: str) -> dict[int, list[LogRecord]]:
    found: dict[int, list[LogRecord]] = {}
    for record in topics.read(name):
        found.setdefault(record.partition, []).append(record)
    return found


def _between(records: list[LogRecord], start: Offset | None, end: Offset) -> Sequence[LogRecord]:
    """The records of a partition that a batch took."""
    if isinstance(end, int):
        assert start is None or isinstance(start, int)
        return records[start or 0 : end]
    # ids of messages, the last that was read before and the last that was read now
    numbers = [record.offset for record in records]
    first = 0 if start is None else bisect_right(numbers, _number(str(start)))
    return records[first : bisect_right(numbers, _number(end))]


def _number(id: str) -> int:
    return to_number(*(int(part) for part in id.split(":")))


def _lookup_order(run: RunHome) -> tuple[str, str]:
    steps = {s["id"]: s for s in run.graph()["steps"]}
    users_first = steps["users_lookup"]["inputs"][0]["step"] == "orders"
    return ("users", "items") if users_first else ("items", "users")


def _apply(table: dict[int, Any], record: Any) -> None:
    if not record.value:
        table.pop(int(record.key), None)
    else:
        row = json.loads(record.value)
        table[row["id"]] = _present(row)


def _order(truth: Truth, record: Any, order: tuple[str, str]) -> None:
    try:
        row = json.loads(record.value)
    except ValueError:
        bad = {"partition": record.partition, "offset": record.offset, "value": record.value}
        truth.rows["malformed"][_canonical(bad, "malformed")] += 1
        truth.counts["orders", "records_out_malformed"] += 1
        return
    truth.counts["orders", "records_out"] += 1
    line = _present({name: row.get(name) for name in _ORDER})
    found: dict[str, Any] = {}
    for table in order:
        key, into = ("userId", "user") if table == "users" else ("itemId", "item")
        hit = truth.tables[table].get(row.get(key))
        truth.counts[f"{table}_lookup", "records_in"] += 1
        if hit is None:
            truth.counts[f"{table}_lookup", "records_out_missing"] += 1
            truth.rows[f"missing_{table}"][_canonical({**line, **found}, f"missing_{table}")] += 1
            return
        found[into] = hit
        truth.counts[f"{table}_lookup", "records_out"] += 1
    out = {name: line[name] for name in _KEPT if name in line} | found
    truth.rows["enriched"][_canonical(out, "enriched")] += 1


def _present(row: dict[str, Any]) -> dict[str, Any]:
    return {k: v for k, v in row.items() if v is not None}


def _canonical(row: dict[str, Any], output: str) -> str:
    if output == "malformed":
        row = {name: row[name] for name in ("partition", "offset", "value")}
    return json.dumps(row, sort_keys=True)
