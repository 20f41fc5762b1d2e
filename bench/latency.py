"""Owns `make bench-latency`: from produce to visible, in Headgate and in Java Flink.

python -m bench.latency --intervals 50,200 --rates 1000 --warm-up 30 --seconds 30

Each run has a broker, a feeder and a reader of its own, with the same orders. Time is from the
producer's call to the moment a read_committed reader has the row. A run in which an order is lost
or doubled is void. docs/benchmarks.md says how to read the figures.
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Iterator
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.batch_profile import Profile, profile
from bench.latency_engine import ENGINES
from bench.latency_orders import JOBS, Stretch
from bench.latency_run import Outcome, Setting, run
from bench.latency_tables import latencies, where_time_goes
from bench.rounds import write_report

_START_SECONDS = 25
"""What a broker and an engine take until the first order."""
_HERE = Path(__file__).resolve().parent


def main() -> int:
    """Run all settings in turn, print the tables, keep the results."""
    options = _options()
    # a plain end would leave broker and engine behind
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    stretches = [Stretch(warm_up, options.seconds) for warm_up in sorted(options.warm_up)]
    settings = list(_settings(options))
    _say(f"{len(settings)} runs, about {_minutes(options, stretches, settings):.0f} minutes")
    outcomes: list[Outcome] = []
    profiles: list[tuple[Setting, Profile]] = []
    for setting in settings:
        outcome = run(setting, stretches, options.profile)
        outcomes.append(outcome)
        _say("\n".join(latencies([outcome])))
        found = profile(outcome.events)
        if found is not None:
            profiles.append((setting, found))
            _say("\n".join(where_time_goes(found)))
        # after each run, so that one that fails leaves those before it
        write_report(options.results, "latency.json", _report(outcomes, profiles))
    _say("")
    _say("\n".join(latencies(outcomes)))
    _say(f"kept in {options.results / 'latency.json'}")
    return 1 if any(outcome.verdict.void for outcome in outcomes) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="bench.latency",
        description="Latency from produce to read_committed. A run takes about 25 s to start, then "
        "the longest warm-up, the measured seconds and, in Headgate, those of the profile: the "
        "defaults make 16 runs in about 25 minutes.",
    )
    add = parser.add_argument
    add("--engines", type=_names(ENGINES), default=list(ENGINES), help="headgate,flink")
    add("--jobs", type=_names(JOBS), default=["store"], help=f"some of {','.join(JOBS)}")
    add("--intervals", type=_numbers, default=[50, 100, 200, 1000], help="between checkpoints, ms")
    add("--rates", type=_numbers, default=[1000, 10_000], help="orders a second")
    add("--warm-up", type=_numbers, default=[30],
        help="seconds before measuring; with 30,300 one run is measured twice")  # fmt: skip
    add("--seconds", type=int, default=30, help="how long each stretch is measured")
    add("--profile", type=int, default=10,
        help="seconds behind the last stretch with Spark's event log on; 0 for none")  # fmt: skip
    add("--rounds", type=int, default=1)
    add("--results", type=Path, default=_HERE / "results", help="where the results go")
    options = parser.parse_args()
    ends = sorted(options.warm_up)
    if any(after < before + options.seconds for before, after in pairwise(ends)):
        parser.error(f"stretches of {options.seconds} s overlap with --warm-up {ends}")
    return options


def _settings(options: argparse.Namespace) -> Iterator[Setting]:
    """Engines stand next to each other, so that both see the same machine."""
    for number in range(options.rounds):
        engines = options.engines if number % 2 == 0 else list(reversed(options.engines))
        for job in options.jobs:
            for rate in options.rates:
                for every_ms in options.intervals:
                    for engine in engines:
                        yield Setting(engine, job, every_ms, rate)


def _minutes(
    options: argparse.Namespace, stretches: list[Stretch], settings: list[Setting]
) -> float:
    fed = stretches[-1].warm_up + stretches[-1].seconds + _START_SECONDS
    profiled: int = sum(options.profile for setting in settings if setting.engine == "headgate")
    return (fed * len(settings) + profiled) / 60


def _report(outcomes: list[Outcome], profiles: list[tuple[Setting, Profile]]) -> dict[str, Any]:
    runs = []
    for outcome in outcomes:
        plain = asdict(outcome)
        del plain["events"]
        runs.append({**plain, "void": outcome.verdict.reason()})
    found = [{"setting": asdict(setting), **asdict(profile)} for setting, profile in profiles]
    return {"runs": runs, "batches": found}


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _names(known: tuple[str, ...]) -> Any:
    def parse(text: str) -> list[str]:
        names = text.split(",")
        for name in names:
            if name not in known:
                raise argparse.ArgumentTypeError(f"must be some of {','.join(known)}, got {name!r}")
        return names

    return parse


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
