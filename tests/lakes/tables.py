"""What the tables of lake_job must hold, out of plain Python, and reading them without Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import NoSuchTableError
from pyiceberg.table import Table

Rows = list[dict[str, Any]]
TABLES = ("all", "days", "paid")
ICEBERG = ("ice_all", "ice_paid")


def read(path: Path | str, options: dict[str, str] | None = None) -> Rows:
    """All rows of a table, as another implementation sees them; none if there is no table."""
    if not DeltaTable.is_deltatable(str(path), storage_options=options):
        return []
    table = DeltaTable(str(path), storage_options=options)
    found: Rows = pa.table(table.to_pyarrow_table()).to_pylist()
    return found


def iceberg_table(folder: Path, name: str) -> Table | None:
    """A table of the catalog that lies in the folder; None if there is none."""
    if not (folder / "catalog.db").exists():
        return None
    catalog = SqlCatalog("default", uri=f"sqlite:///{folder}/catalog.db")
    try:
        return catalog.load_table(name)
    except NoSuchTableError:
        return None
    finally:
        catalog.close()


def read_iceberg(folder: Path, name: str) -> Rows:
    """All rows of a table as Arrow reads its files, those that its last snapshot names."""
    table = iceberg_table(folder, name)
    if table is None or table.current_snapshot() is None:
        return []
    found = []
    for scan in table.scan().plan_files():
        assert not scan.delete_files
        path = scan.file.file_path.removeprefix("file://")
        rows = pq.ParquetFile(path).read().to_pylist()
        assert len(rows) == scan.file.record_count
        found += rows
    assert counted(found) == counted(table.scan().to_arrow().to_pylist())
    return found


def order(n: int) -> dict[str, Any]:
    """One of the orders, with users far apart, some of them null."""
    user = f"u{n * 7919 % 13}" if n % 17 else None
    return {"user": user, "price": n % 50, "day": f"2026-03-{1 + n % 3:02d}"}


def check_tables(folder: Path, times: Counter[int]) -> None:
    """Compare all tables; `times` says how often each order is to have been appended."""
    appended = [{**order(n), "day": date(2026, 3, 1 + n % 3)} for n in times.elements()]
    for name in ("all", "days"):
        assert counted(read(folder / name)) == counted(appended), name
    assert counted(read_iceberg(folder, "ice.all")) == counted(appended)
    sums: dict[str | None, list[int]] = {}
    for made in map(order, times):
        paid = sums.setdefault(made["user"], [0, 0])
        paid[0], paid[1] = paid[0] + made["price"], paid[1] + 1
    totals = [{"user": u, "total": t, "n": c} for u, (t, c) in sums.items() if 50 <= t <= 300]
    assert counted(read(folder / "paid")) == counted(totals)
    assert counted(read_iceberg(folder, "ice.paid")) == counted(totals)


def counted(rows: Iterable[dict[str, Any]]) -> Counter[str]:
    """Rows as often as they are there."""
    return Counter(str(sorted(row.items())) for row in rows)
