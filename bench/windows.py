"""Owns `make bench-windows`: the same counts per key and window in every engine, compared.

python -m bench.windows                                 # 4,000,000 events, 100,000 keys
python -m bench.windows --events 400000 --keys 10000    # a quick look
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
from bench.flink import flink_name, run_job
from bench.options import add_engines_and_folders
from bench.process import Finished
from bench.rounds import Round, aligned, best, finished_round, not_quiet, write_report
from bench.window_data import BOUND_MS, WINDOW_MS, Events, expected
from bench.window_jobs import OUTPUT, run_spark_job

ENGINES = {
    "headgate": "Headgate",
    "spark": "Spark's window aggregation",
    "flink-reuse": flink_name(True),
    "flink": flink_name(False),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; 0 if every engine gave the right rows."""
    options = _parser().parse_args(arguments)
    chosen = options.engines.split(",")
    unknown = sorted(set(chosen) - set(ENGINES))
    if unknown:
        print(f"unknown engine {unknown[0]!r}: choose from {', '.join(ENGINES)}", file=sys.stderr)
        return 2
    events = Events(options.events, options.keys)
    print(f"{events.events:,} events, {events.keys:,} keys, windows of 5 minutes", flush=True)
    data = generate(events, root=options.data).resolve()
    truth = expected(data)
    rounds: list[Round] = []
    for number in range(options.rounds):
        for engine in ENGINES:
            if engine in chosen:
                print(f"round {number + 1}: running {engine}", file=sys.stderr, flush=True)
                rounds.append(_run(engine, data, truth, options))
                print(f"  {rounds[-1].events_per_second:,.0f} events/s", flush=True)
    print("\n" + "\n".join(table(rounds)))
    _write(options.results, events, truth, rounds)
    print(f"\nresults: {options.results / 'windows.json'}")
    return 0 if all(r.same_rows for r in rounds) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench.windows", description=(__doc__ or "").split("\n")[0]
    )
    add = parser.add_argument
    add("--events", type=int, default=4_000_000, help="how many events; they are a ms apart")
    add("--keys", type=int, default=100_000, help="how many different keys")
    add("--batch", type=int, default=1_000_000, help="events a batch, for Headgate and Spark")
    add("--rounds", type=int, default=2, help="runs of each engine, in turn; the best one counts")
    add_engines_and_folders(parser, ENGINES)
    return parser


def _run(engine: str, data: Path, truth: Digest, options: argparse.Namespace) -> Round:
    out = (options.work / f"windows-{engine}").resolve()
    ran, phases = _engine(engine, data, out, truth, options.batch)
    found = digest_folder(out / OUTPUT)
    if found != truth:
        print(f"  {engine} differs: {found}, expected {truth}", flush=True)
    elif not options.keep:
        shutil.rmtree(out)
    return finished_round(engine, options.events, ran, phases, same_rows=found == truth)


def _engine(
    engine: str, data: Path, out: Path, truth: Digest, batch: int
) -> tuple[Finished, dict[str, float]]:
    if engine in ("headgate", "spark"):
        return run_spark_job(engine, data, out, batch)
    own = {"rows": str(truth.count), "window-ms": str(WINDOW_MS), "disorder-ms": str(BOUND_MS)}
    return run_job("WindowJob", data, out, engine == "flink-reuse", own, lambda line: None)


def table(rounds: Sequence[Round]) -> list[str]:
    """The lines of the results' table: the best round of each engine."""
    ours = best(rounds, "headgate")
    head = ("engine", "events/s", "Headgate ×", "rounds", "CPU s", "Headgate ×", "peak MB", "rows")
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


def _write(folder: Path, events: Events, truth: Digest, rounds: Sequence[Round]) -> None:
    report = {
        "events": asdict(events),
        "rows": {"count": truth.count, "hash": f"{truth.hash:016x}"},
        "rounds": [asdict(r) for r in rounds],
    }
    write_report(folder, "windows.json", report)


if __name__ == "__main__":
    sys.exit(main())
