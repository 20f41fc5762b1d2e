"""Owns `make bench-join`: the same pairs of two streams in every engine, compared.

python -m bench.join                              # 2,000,000 + 2,000,000 rows, 100,000 keys
python -m bench.join --rows 200000 --keys 10000   # a quick look
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
from bench.join_data import BOUND_MS, LOWER_MS, UPPER_MS, Sides, expected
from bench.join_jobs import OUTPUT, run_spark_job
from bench.options import add_engines_and_folders

ENGINES = {
    "headgate": "Headgate",
    "spark": "Spark's stream-stream join",
    "flink-reuse": flink_name(True),
    "flink": flink_name(False),
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; 0 if every engine gave the right rows."""
    options = _parser().parse_args(arguments)

    def run(engine: str, data: Path, out: Path, truth: Digest) -> Ran:
        if engine in ("headgate", "spark"):
            return run_spark_job(engine, data, out, options.batch)
        own = {
            "rows": str(truth.count),
            "lower-ms": str(LOWER_MS),
            "upper-ms": str(UPPER_MS),
            "disorder-ms": str(BOUND_MS),
        }
        return run_job("JoinJob", data, out, engine == "flink-reuse", own, lambda line: None)

    contest = Contest("join", ENGINES, "rows", 2 * options.rows, OUTPUT, run)
    contest.chosen(options.engines)
    sides = Sides(options.rows, options.keys)
    print(
        f"{sides.rows:,} + {sides.rows:,} rows, {sides.keys:,} keys, the right row"
        f" {LOWER_MS // 1000} to {UPPER_MS // 1000} seconds after the left",
        flush=True,
    )
    data = generate(sides, root=options.data).resolve()
    return contest.held(data, expected(data), options, {"sides": asdict(sides)})


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="bench.join", description=(__doc__ or "").split("\n")[0])
    add = parser.add_argument
    add("--rows", type=int, default=2_000_000, help="how many rows a side; they are a ms apart")
    add("--keys", type=int, default=100_000, help="how many different keys")
    add("--batch", type=int, default=500_000, help="rows of both sides a batch")
    add("--rounds", type=int, default=2, help="runs of each engine, in turn; the best one counts")
    add_engines_and_folders(parser, ENGINES)
    return parser


if __name__ == "__main__":
    sys.exit(main())
