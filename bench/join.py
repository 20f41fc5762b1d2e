"""Owns `make bench-join`: the same pairs of two streams in every engine, compared.

python -m bench.join                              # 2,000,000 + 2,000,000 rows, 100,000 keys
python -m bench.join --rows 200000 --keys 10000   # a quick look
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.compare import Digest, digest_folder
from bench.data import generate
from bench.join_data import LOWER_MS, UPPER_MS, Sides, expected
from bench.join_jobs import OUTPUT, run_spark_job
from bench.options import add_engines_and_folders
from bench.rounds import Round, aligned, best, finished_round, not_quiet, write_report

ENGINES = {
    "headgate": "Headgate",
    "spark": "Spark's stream-stream join",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; 0 if every engine gave the right rows."""
    options = _parser().parse_args(arguments)
    chosen = options.engines.split(",")
    unknown = sorted(set(chosen) - set(ENGINES))
    if unknown:
        print(f"unknown engine {unknown[0]!r}: choose from {', '.join(ENGINES)}", file=sys.stderr)
        return 2
    sides = Sides(options.rows, options.keys)
    print(
        f"{sides.rows:,} + {sides.rows:,} rows, {sides.keys:,} keys, the right row"
        f" {LOWER_MS // 1000} to {UPPER_MS // 1000} seconds after the left",
        flush=True,
    )
    data = generate(sides, root=options.data).resolve()
    truth = expected(data)
    rounds: list[Round] = []
    for number in range(options.rounds):
        for engine in ENGINES:
            if engine in chosen:
                print(f"round {number + 1}: running {engine}", file=sys.stderr, flush=True)
                rounds.append(_run(engine, data, truth, options))
                print(f"  {rounds[-1].events_per_second:,.0f} rows/s", flush=True)
    print("\n" + "\n".join(table(rounds)))
    _write(options.results, sides, truth, rounds)
    print(f"\nresults: {options.results / 'join.json'}")
    return 0 if all(r.same_rows for r in rounds) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.join", description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--rows", type=int, default=2_000_000, help="how many rows a side; they are a ms apart")
    add("--keys", type=int, default=100_000, help="how many different keys")
    add("--batch", type=int, default=500_000, help="rows of both sides a batch")
    add("--rounds", type=int, default=2, help="runs of each engine, in turn; the best one counts")
    add_engines_and_folders(parser, ENGINES)
    return parser


def _run(engine: str, data: Path, truth: Digest, options: argparse.Namespace) -> Round:
    out = (options.work / f"join-{engine}").resolve()
    ran, phases = run_spark_job(engine, data, out, options.batch)
    found = digest_folder(out / OUTPUT)
    if found != truth:
        print(f"  {engine} differs: {found}, expected {truth}", flush=True)
    elif not options.keep:
        shutil.rmtree(out)
    return finished_round(engine, 2 * options.rows, ran, phases, same_rows=found == truth)


def table(rounds: Sequence[Round]) -> list[str]:
    """The lines of the results' table: the best round of each engine."""
    ours = best(rounds, "headgate")
    head = ("engine", "rows/s", "Headgate ×", "rounds", "CPU s", "Headgate ×", "peak MB", "rows")
    least = _least_cpu(rounds, "headgate")
    lines: list[tuple[str, ...]] = [head]
    notes = []
    for engine, name in ENGINES.items():
        fastest = best(rounds, engine)
        if fastest is None:
            continue
        mine = [r for r in rounds if r.engine == engine]
        lines.append(
            (
                name,
                f"{fastest.events_per_second:,.0f}",
                f"{ours.events_per_second / fastest.events_per_second:.2f}" if ours else "-",
                " ".join(f"{r.events_per_second / 1000:,.0f}k" for r in mine),
                f"{_least_cpu(rounds, engine):.1f}",
                f"{_least_cpu(rounds, engine) / least:.2f}" if ours else "-",
                f"{fastest.peak_rss_mb:,.0f}",
                "same" if all(r.same_rows for r in mine) else "differ",
            )
        )
        notes += not_quiet(name, fastest)
    return aligned(lines) + notes


def _least_cpu(rounds: Sequence[Round], engine: str) -> float:
    return min((r.cpu_seconds for r in rounds if r.engine == engine), default=0.0)


def _write(folder: Path, sides: Sides, truth: Digest, rounds: Sequence[Round]) -> None:
    report = {
        "sides": asdict(sides),
        "rows": {"count": truth.count, "hash": f"{truth.hash:016x}"},
        "rounds": [asdict(r) for r in rounds],
    }
    write_report(folder, "join.json", report)


if __name__ == "__main__":
    sys.exit(main())
