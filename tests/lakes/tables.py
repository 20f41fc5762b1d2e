"""What the tables of lake_job must hold, out of plain Python, and reading them with delta-rs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable

Rows = list[dict[str, Any]]
TABLES = ("all", "days", "paid")


def read(path: Path | str, options: dict[str, str] | None = None) -> Rows:
    """All rows of a table, as another implementation sees them; none if there is no table."""
    if not DeltaTable.is_deltatable(str(path), storage_options=options):
        return []
    table = DeltaTable(str(path), storage_options=options)
    found: Rows = pa.table(table.to_pyarrow_table()).to_pylist()
    return found


def order(n: int) -> dict[str, Any]:
    """One of the orders, with users far apart, some of them null."""
    user = f"u{n * 7919 % 13}" if n % 17 else None
    return {"user": user, "price": n % 50, "day": f"2026-03-{1 + n % 3:02d}"}


def check_tables(folder: Path, times: Counter[int]) -> None:
    """Compare all three tables; `times` says how often each order is to have been appended."""
    appended = [{**order(n), "day": date(2026, 3, 1 + n % 3)} for n in times.elements()]
    for name in ("all", "days"):
        assert _counted(read(folder / name)) == _counted(appended), name
    sums: dict[str | None, list[int]] = {}
    for made in map(order, times):
        paid = sums.setdefault(made["user"], [0, 0])
        paid[0], paid[1] = paid[0] + made["price"], paid[1] + 1
    totals = [{"user": u, "total": t, "n": c} for u, (t, c) in sums.items() if 50 <= t <= 300]
    assert _counted(read(folder / "paid")) == _counted(totals)


def _counted(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(str(sorted(row.items())) for row in rows)
