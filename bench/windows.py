"""Owns `make bench-windows`: the same counts per key and window in every engine, compared.

python -m bench.windows                                 # 4,000,000 events, 100,000 keys
python -m bench.windows --events 400000 --keys 10000    # a quick look
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.compare import Digest, digest_folder
from bench.data import generate
from bench.flink import flink_name, run_job
from bench.options import add_engines_and_folders
from bench.process import Finished
from bench.window_data import BOUND_MS, WINDOW_MS, Events, expected
from bench.window_jobs import OUTPUT, run_spark_job

ENGINES = {
    "headgate": "Headgate",
    "spark": "Spark's window aggregation",
    "flink-reuse": flink_name(True),
    "flink": flink_name(False),
}
# Above this share of the CPU for other processes, the machine was measured and not the engine.
_QUIET = 0.1


@dataclass(frozen=True)
class Round:
    """One run of one engine: `seconds` from the start of its job to the last commit.

    The CPU time is of the same work, from the start of the job on. It is what compares engines on
    a machine that others use: they make an engine wait, but do not make it compute more.
    """

    engine: str
    seconds: float
    start_seconds: float
    events_per_second: float
    cpu_seconds: float
    others_cpu_seconds: float
    peak_rss_mb: float
    same_rows: bool

    @property
    def others_share(self) -> float:
        """How much of the CPU that was used went to other processes."""
        return self.others_cpu_seconds / max(1e-9, self.cpu_seconds + self.others_cpu_seconds)


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
    seconds = phases["events"]
    return Round(
        engine,
        seconds,
        phases["start"],
        options.events / seconds,
        ran.marked_cpu_seconds,
        ran.others_cpu_seconds,
        ran.peak_rss_mb,
        found == truth,
    )


def _engine(
    engine: str, data: Path, out: Path, truth: Digest, batch: int
) -> tuple[Finished, dict[str, float]]:
    if engine in ("headgate", "spark"):
        return run_spark_job(engine, data, out, batch)
    own = {"rows": str(truth.count), "window-ms": str(WINDOW_MS), "disorder-ms": str(BOUND_MS)}
    return run_job("WindowJob", data, out, engine == "flink-reuse", own, lambda line: None)


def table(rounds: Sequence[Round]) -> list[str]:
    """The lines of the results' table: the best round of each engine."""
    ours = _best(rounds, "headgate")
    head = ("engine", "events/s", "Headgate ×", "rounds", "CPU s", "Headgate ×", "peak MB", "rows")
    least = _least_cpu(rounds, "headgate")
    lines: list[tuple[str, ...]] = [head]
    notes = []
    for engine, name in ENGINES.items():
        best = _best(rounds, engine)
        if best is None:
            continue
        mine = [r for r in rounds if r.engine == engine]
        lines.append(
            (
                name,
                f"{best.events_per_second:,.0f}",
                f"{ours.events_per_second / best.events_per_second:.2f}" if ours else "-",
                " ".join(f"{r.events_per_second / 1000:,.0f}k" for r in mine),
                f"{_least_cpu(rounds, engine):.1f}",
                f"{_least_cpu(rounds, engine) / least:.2f}" if ours else "-",
                f"{best.peak_rss_mb:,.0f}",
                "same" if all(r.same_rows for r in mine) else "differ",
            )
        )
        if best.others_share > _QUIET:
            notes.append(
                f"note: the machine was not quiet during {name}: other processes took "
                f"{best.others_cpu_seconds:.0f} CPU seconds ({best.others_share:.0%}); run it again"
            )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    text = []
    for first, *cells in lines:
        padded = [f"{cell:>{w}}" for cell, w in zip(cells, widths[1:], strict=True)]
        text.append("  ".join([f"{first:<{widths[0]}}", *padded]))
    text.insert(1, "-" * len(text[0]))
    return text + notes


def _best(rounds: Sequence[Round], engine: str) -> Round | None:
    return min((r for r in rounds if r.engine == engine), key=lambda r: r.seconds, default=None)


def _least_cpu(rounds: Sequence[Round], engine: str) -> float:
    return min((r.cpu_seconds for r in rounds if r.engine == engine), default=0.0)


def _write(folder: Path, events: Events, truth: Digest, rounds: Sequence[Round]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    report = {
        "machine": {
            "cpus": os.cpu_count(),
            "memory_mb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20,
            "system": platform.system(),
            "python": platform.python_version(),
        },
        "events": asdict(events),
        "rows": {"count": truth.count, "hash": f"{truth.hash:016x}"},
        "rounds": [asdict(r) for r in rounds],
    }
    aside = folder / "windows.json.aside"
    aside.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    aside.rename(folder / "windows.json")


if __name__ == "__main__":
    sys.exit(main())
