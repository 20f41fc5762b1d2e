"""Owns a benchmark of several engines that must give the same rows: rounds, table, report."""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.compare import Digest, digest_folder
from bench.process import Finished
from bench.rounds import Round, aligned, best, finished_round, not_quiet, write_report

Ran = tuple[Finished, dict[str, float]]


@dataclass(frozen=True)
class Contest:
    """Engines, by their names for people, and how one of them is run.

    `run` gets an engine, the data, where it writes, and the right rows.
    """

    name: str
    engines: Mapping[str, str]
    unit: str
    """What is counted a second."""
    count: int
    output: str
    """The folder in which an engine's rows are."""
    run: Callable[[str, Path, Path, Digest], Ran]
    digest: Callable[[Path], Digest] = digest_folder
    """Reads the rows of that folder."""

    def chosen(self, names: str) -> list[str]:
        """The engines that were asked for; the process ends if one is not known."""
        found = names.split(",")
        unknown = sorted(set(found) - set(self.engines))
        if unknown:
            known = ", ".join(self.engines)
            print(f"unknown engine {unknown[0]!r}: choose from {known}", file=sys.stderr)
            raise SystemExit(2)
        return [engine for engine in self.engines if engine in found]

    def held(
        self, data: Path, truth: Digest, options: argparse.Namespace, about: Mapping[str, Any]
    ) -> int:
        """Run all rounds, print the table and write the report; 0 if all rows were right."""
        rounds: list[Round] = []
        for number in range(options.rounds):
            for engine in self.chosen(options.engines):
                print(f"round {number + 1}: running {engine}", file=sys.stderr, flush=True)
                rounds.append(self._round(engine, data, truth, options))
                print(f"  {rounds[-1].events_per_second:,.0f} {self.unit}/s", flush=True)
        print("\n" + "\n".join(self.table(rounds)))
        report = {
            **about,
            "rows": {"count": truth.count, "hash": f"{truth.hash:016x}"},
            "rounds": [asdict(r) for r in rounds],
        }
        file = f"{self.name}.json"
        write_report(options.results, file, report)
        print(f"\nresults: {options.results / file}")
        return 0 if all(r.same_rows for r in rounds) else 1

    def _round(self, engine: str, data: Path, truth: Digest, options: argparse.Namespace) -> Round:
        out = (options.work / f"{self.name}-{engine}").resolve()
        ran, phases = self.run(engine, data, out, truth)
        found = self.digest(out / self.output)
        if found != truth:
            print(f"  {engine} differs: {found}, expected {truth}", flush=True)
        elif not options.keep:
            shutil.rmtree(out)
        return finished_round(engine, self.count, ran, phases, same_rows=found == truth)

    def table(self, rounds: Sequence[Round]) -> list[str]:
        """The lines of the results' table: the best round of each engine."""
        ours = best(rounds, "headgate")
        least = _least_cpu(rounds, "headgate")
        times = "Headgate ×"
        head = ("engine", f"{self.unit}/s", times, "rounds", "CPU s", times, "peak MB", "rows")
        lines: list[tuple[str, ...]] = [head]
        notes = []
        for engine, name in self.engines.items():
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
