"""Owns `make bench-lookup`: the same orders through every engine, compared and drawn.

python -m bench.lookup                                   # both data sets, full size
python -m bench.lookup --data-set small --orders 100000  # a quick look
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.compare import Digest, digest_folder
from bench.data import Sizes, generate
from bench.flink import run_flink
from bench.options import add_engines_and_folders
from bench.picture import Group, draw
from bench.result import OUTPUTS, Result
from bench.truth import expected
from bench.tws import run_tws

OURS = "Headgate"
ENGINES = ("headgate", "flink-reuse", "flink", "tws")


@dataclass(frozen=True)
class DataSet:
    """One data set and how much of it the Python engine gets."""

    name: str
    title: str
    sizes: Sizes
    tws_orders: int
    tws_all_users: bool


@dataclass(frozen=True)
class Row:
    """A result, and whether its rows are the right ones."""

    result: Result
    digests: Mapping[str, Digest]
    differs: Sequence[str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; 0 if every engine gave the right rows."""
    options = _parser().parse_args(arguments)
    chosen = options.engines.split(",")
    unknown = sorted(set(chosen) - set(ENGINES))
    if unknown:
        print(f"unknown engine {unknown[0]!r}: choose from {', '.join(ENGINES)}", file=sys.stderr)
        return 2
    tables: list[tuple[DataSet, list[Row]]] = []
    for data_set in _data_sets(options):
        print(f"\n{data_set.title}", flush=True)
        data = generate(data_set.sizes, root=options.data)
        rows = []
        for engine in ENGINES:
            if engine in chosen and not (engine == "tws" and data_set.tws_orders == 0):
                rows.append(_run(engine, data_set, data, options))
        tables.append((data_set, rows))
        print("\n" + "\n".join(table(rows)), flush=True)
        # Written after each data set, so that a long run that is cut short leaves what it has.
        _write(options.results, tables)
    print(f"\nresults: {options.results / 'lookup.json'}, {options.results / 'lookup.svg'}")
    return 1 if any(row.differs for _, rows in tables for row in rows) else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench.lookup", description=(__doc__ or "").split("\n")[0]
    )
    add = parser.add_argument
    add("--data-set", choices=("small", "large", "both"), default="both")
    add("--orders", type=int, default=4_000_000, help="orders of the small set")
    add("--users", type=int, default=200_000, help="users of the small set")
    add("--items", type=int, default=4_000, help="items of both sets")
    add("--large-orders", type=int, default=2_000_000, help="orders of the large set")
    add("--large-users", type=int, default=5_000_000, help="users of the large set")
    add("--tws-orders", type=int, default=100_000, help="orders for Python's transformWithState")
    add("--rounds", type=int, default=1, help="runs of each engine; the best one counts")
    add_engines_and_folders(parser, ENGINES)
    return parser


def _data_sets(options: argparse.Namespace) -> list[DataSet]:
    def data_set(name: str, orders: int, users: int) -> DataSet:
        sizes = Sizes(orders=orders, users=users, items=options.items)
        title = f"{name}: {orders:,} orders, {users:,} users, {options.items:,} items"
        tws_orders = min(orders, options.tws_orders)
        return DataSet(name, title, sizes, tws_orders, tws_all_users=name == "small")

    sets = []
    if options.data_set in ("small", "both"):
        sets.append(data_set("small", options.orders, options.users))
    if options.data_set in ("large", "both"):
        sets.append(data_set("large", options.large_orders, options.large_users))
    return sets


def _run(engine: str, data_set: DataSet, data: Path, options: argparse.Namespace) -> Row:
    """The best of an engine's rounds; rows that differ in any round count as different."""
    out = (options.work / f"{data_set.name}-{engine}").resolve()
    run = _runner(engine, data_set, data.resolve(), out)
    best: Row | None = None
    wrong: list[str] = []
    for _ in range(options.rounds):
        print(f"running {engine}", file=sys.stderr, flush=True)
        result = run()
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        print(f"{result.name}: {result.orders_per_second:,.0f} orders/s; checking", flush=True)
        truth = expected(data, result.orders)
        digests = {name: digest_folder(out / name) for name in OUTPUTS}
        differs = [name for name in OUTPUTS if digests[name] != truth[name]]
        for name in differs:
            print(f"  {name} differs: {digests[name]}, expected {truth[name]}", flush=True)
        wrong += differs
        if best is None or result.orders_per_second > best.result.orders_per_second:
            best = Row(result, digests, differs)
        if not options.keep and not wrong:
            shutil.rmtree(out)
    assert best is not None
    return Row(best.result, best.digests, wrong)


def _runner(engine: str, data_set: DataSet, data: Path, out: Path) -> Callable[[], Result]:
    if engine == "headgate":
        # Only here: the other engines can be measured without Headgate installed.
        from bench.headgate_run import run_headgate

        return lambda: run_headgate(data, out)
    if engine == "tws":
        orders, all_users = data_set.tws_orders, data_set.tws_all_users
        return lambda: run_tws(data, out, orders, all_users=all_users)
    return lambda: run_flink(data, out, engine == "flink-reuse")


def table(rows: Sequence[Row]) -> list[str]:
    """The lines of the results' table."""
    ours = next((row.result for row in rows if row.result.name == OURS), None)
    head = ("engine", "orders", "orders/s", f"{OURS} ×", "with tables/s", f"{OURS} ×")
    lines: list[tuple[str, ...]] = [
        (*head, "start s", "tables s", "orders s", "CPU s", "peak RSS MB", "rows")
    ]
    for row in rows:
        r = row.result
        lines.append(
            (
                r.name,
                f"{r.orders:,}",
                f"{r.orders_per_second:,.0f}",
                f"{ours.orders_per_second / r.orders_per_second:.2f}" if ours else "-",
                f"{r.total_per_second:,.0f}",
                f"{ours.total_per_second / r.total_per_second:.2f}" if ours else "-",
                *(f"{r.phases.get(phase, 0.0):.1f}" for phase in ("start", "tables", "orders")),
                f"{r.cpu_seconds:.0f}",
                f"{r.peak_rss_mb:,.0f}",
                "differ" if row.differs else "same",
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = []
    for name, *cells in lines:
        padded = [f"{cell:>{w}}" for cell, w in zip(cells, widths[1:], strict=True)]
        text.append("  ".join([f"{name:<{widths[0]}}", *padded]))
    text.insert(1, "-" * len(text[0]))
    return text + _notes(rows)


def _notes(rows: Sequence[Row]) -> list[str]:
    """What a reader should know about these figures."""
    notes = []
    for row in rows:
        r = row.result
        share = r.others_cpu_seconds / max(1e-9, r.cpu_seconds + r.others_cpu_seconds)
        if share > 0.1:
            notes.append(
                f"note: the machine was not quiet during {r.name}: other processes took "
                f"{r.others_cpu_seconds:.0f} CPU seconds ({share:.0%}); run it again"
            )
    return notes


def _write(folder: Path, tables: Sequence[tuple[DataSet, Sequence[Row]]]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    report = {
        "machine": {
            "cpus": os.cpu_count(),
            "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
            "system": platform.system(),
            "python": platform.python_version(),
        },
        "data_sets": [_as_json(data_set, rows) for data_set, rows in tables],
    }
    aside = folder / "lookup.json.aside"
    aside.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    aside.rename(folder / "lookup.json")
    groups = [Group(data_set.title, [row.result for row in rows]) for data_set, rows in tables]
    draw(groups, folder / "lookup.svg", ours=OURS)


def _as_json(data_set: DataSet, rows: Sequence[Row]) -> dict[str, object]:
    ours = next((row.result for row in rows if row.result.name == OURS), None)
    return {
        "name": data_set.name,
        "title": data_set.title,
        "results": [
            {
                **row.result.as_json(),
                "headgate_ratio": ours.orders_per_second / row.result.orders_per_second
                if ours
                else None,
                "headgate_ratio_with_tables": ours.total_per_second / row.result.total_per_second
                if ours
                else None,
                "rows": {
                    name: {"count": digest.count, "hash": f"{digest.hash:016x}"}
                    for name, digest in row.digests.items()
                },
                "same_rows": not row.differs,
            }
            for row in rows
        ],
    }


if __name__ == "__main__":
    sys.exit(main())
