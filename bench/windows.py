"""Owns `make bench-windows`: the same counts per key and window in every engine, compared.

python -m bench.windows                                 # 4,000,000 events, 100,000 keys
python -m bench.windows --events 400000 --keys 10000    # a quick look
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.compare import Digest
from bench.contest import Contest, Ran
from bench.data import generate
from bench.flink import flink_name, run_job
from bench.options import add_engines_and_folders
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

    def run(engine: str, data: Path, out: Path, truth: Digest) -> Ran:
        if engine in ("headgate", "spark"):
            return run_spark_job(engine, data, out, options.batch)
        own = {"rows": str(truth.count), "window-ms": str(WINDOW_MS), "disorder-ms": str(BOUND_MS)}
        return run_job("WindowJob", data, out, engine == "flink-reuse", own, lambda line: None)

    contest = Contest("windows", ENGINES, "events", options.events, OUTPUT, run)
    contest.chosen(options.engines)
    events = Events(options.events, options.keys)
    print(f"{events.events:,} events, {events.keys:,} keys, windows of 5 minutes", flush=True)
    data = generate(events, root=options.data).resolve()
    return contest.held(data, expected(data), options, {"events": asdict(events)})


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


if __name__ == "__main__":
    sys.exit(main())
