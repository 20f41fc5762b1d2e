"""Owns `make bench-process`: the same running counts through every engine's Python, compared.

python -m bench.process_functions                                 # 50,000 and 500,000 keys
python -m bench.process_functions --events 200000 --keys 5000     # a quick look
python -m bench.process_functions --share 1                       # hours instead of minutes

transformWithState runs the function twice: as it is written for Headgate, with a call for each use
of a state, and by hand, with the state taken and given back once for all rows of a key.
Headgate and transformWithState run their job twice in one session, the second time with warm Java.
PyFlink, transformWithState as written, and by hand with many keys, get a tenth of the events, of a
tenth of the keys, in as many batches, so that a key has as many events in all and in a batch.
"""

from __future__ import annotations

import argparse
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bench.compare import digest_folder
from bench.data import generate
from bench.options import add_engines_and_folders
from bench.process import Finished
from bench.process_data import Readings, expected
from bench.process_jobs import OUTPUT, run_spark_job
from bench.process_large import large_map, pending_timers
from bench.process_pyflink import run_pyflink
from bench.rounds import Round, aligned, best, finished_round, not_quiet, write_report
from bench.spark_process import AGAIN

OURS, TWS, TWS_EACH = "headgate", "tws", "tws-each"
_MANY_KEYS = 100_000
ENGINES = {
    OURS: "Headgate",
    TWS: "transformWithState, state once a key",
    TWS_EACH: "transformWithState, state with each row",
    "pyflink-thread": "PyFlink, thread mode",
    "pyflink-process": "PyFlink, process mode",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the bench; 0 if every engine gave the right rows."""
    options = _parser().parse_args(arguments)
    chosen = [name for name in options.engines.split(",") if name]
    unknown = sorted(set(chosen) - set(ENGINES))
    if unknown:
        print(f"unknown engine {unknown[0]!r}: choose from {', '.join(ENGINES)}", file=sys.stderr)
        return 2
    rounds: list[Round] = []
    found: dict[str, object] = {}
    for keys in map(int, options.keys.split(",")):
        sizes = Readings(options.events, keys)
        title = f"{sizes.events:,} events, {sizes.keys:,} keys"
        print(f"\n{title}", flush=True)
        for number in range(options.rounds):
            for engine in ENGINES:
                if engine in chosen:
                    print(f"round {number + 1}: running {engine}", file=sys.stderr, flush=True)
                    rounds.append(_run(title, engine, sizes, options))
                    print(f"  {rounds[-1].events_per_second:,.0f} events/s", flush=True)
        print("\n" + "\n".join(table([r for r in rounds if r.data == title])), flush=True)
        # Written after each data set, so that a long run that is cut short leaves what it has.
        _write(options.results, rounds, found)
    if options.timers:
        print(f"\nbatches of 10,000 events, with 0 and with {options.timers:,} pending timers")
        found["timers"] = pending_timers(options.work.resolve(), options.timers)
        _write(options.results, rounds, found)
    if options.entries:
        print(
            f"\nbatches that touch one entry of a map, with 1 and with {options.entries:,} entries"
        )
        found["map"] = large_map(options.work.resolve(), options.entries)
        _write(options.results, rounds, found)
    print(f"\nresults: {options.results / 'process.json'}")
    return 0 if all(r.same_rows for r in rounds) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bench.process_functions", description=(__doc__ or "").split("\n")[0]
    )
    add = parser.add_argument
    add("--events", type=int, default=2_000_000, help="how many events Headgate gets")
    add("--keys", default="50000,500000", help="how many different keys, for each data set")
    add("--batches", type=int, default=10, help="in how many batches, for Headgate and Spark")
    add("--share", type=int, default=10, help="slow engines get one event and one key of so many")
    add("--rounds", type=int, default=1, help="runs of each engine, in turn; the best one counts")
    add("--timers", type=int, default=1_000_000, help="how many timers are pending; 0 for none")
    add("--entries", type=int, default=1_000_000, help="entries of the large map; 0 for none")
    add_engines_and_folders(parser, ENGINES)
    return parser


def _run(title: str, engine: str, sizes: Readings, options: argparse.Namespace) -> Round:
    if engine != OURS and (engine != TWS or sizes.keys > _MANY_KEYS):
        sizes = Readings(sizes.events // options.share, sizes.keys // options.share)
    data = generate(sizes, root=options.data).resolve()
    truth = expected(data)
    out = (options.work / f"process-{engine}").resolve()
    ran, phases = _engine(engine, data, out, sizes, options)
    digests = [digest_folder(folder / OUTPUT) for folder in (out, out / AGAIN) if folder.exists()]
    same = all(digest == truth for digest in digests)
    if not same:
        print(f"  {engine} differs: {digests}, expected {truth}", flush=True)
    elif not options.keep:
        shutil.rmtree(out)
    return finished_round(
        engine, sizes.events, ran, phases, same_rows=same, data=title, keys=sizes.keys
    )


def _engine(
    engine: str, data: Path, out: Path, sizes: Readings, options: argparse.Namespace
) -> tuple[Finished, dict[str, float]]:
    if engine in (OURS, TWS, TWS_EACH):
        return run_spark_job(engine, data, out, -(-sizes.events // options.batches))
    mode = engine.removeprefix("pyflink-")
    return run_pyflink(mode, data, out, options.work.resolve() / "pyflink-venv")


def table(rounds: Sequence[Round]) -> list[str]:
    """The lines of the results' table: the best round of each engine."""
    ours = best(rounds, OURS)
    lines: list[tuple[str, ...]] = [
        ("engine", "events", "keys", "first job", "Headgate ×", "second job", "Headgate ×",
         "rounds", "µs CPU an event", "peak MB", "rows")
    ]  # fmt: skip
    notes = []
    for engine, name in ENGINES.items():
        fastest = best(rounds, engine)
        if fastest is None:
            continue
        mine = [r for r in rounds if r.engine == engine]
        lines.append(
            (
                name,
                f"{fastest.events:,}",
                f"{fastest.keys:,}",
                f"{_first(fastest):,.0f}",
                f"{_first(ours) / _first(fastest):.1f}" if ours else "-",
                f"{_second(fastest):,.0f}" if _second(fastest) else "-",
                f"{_second(ours) / _second(fastest):.1f}" if ours and _second(fastest) else "-",
                " ".join(f"{r.events_per_second / 1000:,.1f}k" for r in mine),
                f"{fastest.cpu_seconds * 1e6 / fastest.events:.1f}",
                f"{fastest.peak_rss_mb:,.0f}",
                "same" if all(r.same_rows for r in mine) else "differ",
            )
        )
        notes += not_quiet(name, fastest)
    return aligned(lines) + notes


def _first(round: Round) -> float:
    """Events a second of the first job in a session, when Java was cold."""
    return round.events / (round.first_seconds or round.seconds)


def _second(round: Round) -> float:
    """The same of the second job; 0 where there was none."""
    return round.events_per_second if round.first_seconds else 0.0


def _write(folder: Path, rounds: Sequence[Round], found: dict[str, object]) -> None:
    write_report(folder, "process.json", {"rounds": [asdict(r) for r in rounds], **found})


if __name__ == "__main__":
    sys.exit(main())
