"""Owns `make bench-delta`: the same rows into a Delta table by Headgate and by Spark alone.

python -m bench.delta                       # 1,000,000 events
python -m bench.delta --events 100000       # a quick look
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from deltalake import DeltaTable

from bench.compare import Digest, digest_folder, digest_rows
from bench.contest import Contest, Ran
from bench.data import generate
from bench.delta_jobs import OUTPUT, run_delta_job
from bench.options import add_engines_and_folders
from bench.window_data import TOPIC, Events

ENGINES = {"headgate": "Headgate", "spark": "Spark's Delta sink"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; 0 if both gave the right rows."""
    options = _parser().parse_args(arguments)

    def run(engine: str, data: Path, out: Path, truth: Digest) -> Ran:
        return run_delta_job(engine, data, out, options.batch)

    contest = Contest("delta", ENGINES, "rows", options.events, OUTPUT, run, table_digest)
    contest.chosen(options.engines)
    events = Events(options.events, options.keys)
    print(f"{events.events:,} events in batches of {options.batch:,}", flush=True)
    data = generate(events, root=options.data).resolve()
    return contest.held(data, digest_folder(data / TOPIC), options, {"events": asdict(events)})


def table_digest(table: Path) -> Digest:
    """The rows of a Delta table, as delta-rs reads them."""
    batches = DeltaTable(table).to_pyarrow_dataset().to_batches()
    return sum((digest_rows(batch.to_pylist()) for batch in batches), Digest())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.delta", description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--events", type=int, default=1_000_000, help="how many events")
    add("--keys", type=int, default=100_000, help="how many different users they are of")
    add("--batch", type=int, default=250_000, help="events a batch")
    add("--rounds", type=int, default=2, help="runs of each engine, in turn; the best one counts")
    add_engines_and_folders(parser, ENGINES)
    return parser


if __name__ == "__main__":
    sys.exit(main())
