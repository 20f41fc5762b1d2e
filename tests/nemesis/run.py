"""Owns `make nemesis`: rounds of real jobs under seeded faults, each checked row by row.

python -m tests.nemesis.run --minutes 180
python -m tests.nemesis.run --seed 17 --round 4      plays one round again
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import tests.conftest  # noqa: F401 - how the JVM starts
from tests.nemesis.checker import Finding, stayed
from tests.nemesis.faults import KINDS, POWER_CUT, Fault, Kind, has_power_cut, is_root, schedule
from tests.nemesis.jobs import EVERY_MS, JOBS, Feeder, Job
from tests.nemesis.watch import Watch, aborted, left_open
from tests.nemesis.world import Disk, Logs, ProxiedKafka, ProxiedPulsar, System, World, wait_for
from tests.reliability.processes import Cluster

SYSTEMS: dict[str, type[Logs] | type[ProxiedKafka] | type[ProxiedPulsar]] = {
    "kafka": ProxiedKafka,
    "log": Logs,
    "pulsar": ProxiedPulsar,
}
ROUNDS = [
    ("process", "kafka"), ("window", "kafka"), ("lookup", "kafka"), ("process", "log"),
    ("process", "kafka"), ("lookup", "pulsar"), ("window", "log"), ("process", "pulsar"),
    ("lookup", "log"), ("cluster", "kafka"),
]  # fmt: skip
"""What the rounds of a run are, again and again."""
_PACE = 0.6
_RECOVERS = 45.0
_IN_VAIN = ("there is no", "there was none", "not tried")
_DISK_MB = 512


@dataclass
class Tally:
    """What was seen in a run."""

    outcomes: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    findings: list[tuple[str, Finding]] = field(default_factory=list)
    rows: int = 0
    aborted: int = 0
    checkpoints: int = 0

    @property
    def faults(self) -> int:
        return sum(counts.total() for counts in self.outcomes.values())


class Round:
    """One job on one system, under some faults, from its first start to the check."""

    def __init__(
        self, number: int, seed: int, job: str, system: System, folder: Path,
        *, faults: int, kinds: list[Kind], pause: float = 4.0, every_ms: int = EVERY_MS,
    ) -> None:  # fmt: skip
        self.every_ms = every_ms
        self.number, self.seed, self.kind, self.system, self.folder = (
            number, seed, job, system, folder,
        )  # fmt: skip
        self.pick = random.Random(f"{seed}/{number}")
        able = [k for k in kinds if system.name in k.systems and job in k.jobs and k.able()]
        self.schedule = schedule(self.pick, able, faults, pause)
        self.name = f"round {number}, {job} on {system.name}"

    def run(self, tally: Tally) -> None:
        self.folder.mkdir(parents=True)
        topics, through = self.system.topics(f"n{self.number}-")
        job = JOBS[self.kind](self.folder, topics, through, self.seed + self.number, self.every_ms)
        home, disk = self.folder / "home", None
        with ExitStack() as stack:
            if any(fault.kind.own_disk for fault in self.schedule):
                disk = own_disk(stack, self.folder)
                home = self.folder / "disk" / "home"
            world = World(
                self.system, self.folder, home, job.name,
                lambda *flags, spark=(): job.driver(home, *flags, spark=spark),
            )  # fmt: skip
            world.disk = disk
            if job.executors:
                world.cluster = Cluster(self.folder, job.executors)
                stack.callback(world.cluster.stop)
            feeder = Feeder(job.chunks, world.feeding, _PACE)
            watch = Watch(topics, job.outputs)
            with world:
                for thread in (feeder, watch):  # they end with the round, even if it breaks off
                    thread.start()
                    stack.callback(thread.end)
                world.works(90)
                for fault in self.schedule:
                    self._suffer(world, fault, tally)
                feeder.end()
            found = self._finish(world, job)
            if feeder.error is not None:
                found.append(Finding("no input", self.system.name, 0, (repr(feeder.error),)))
            if not found:
                watch.end()
                found += stayed(watch.seen, job.places())
                found += left_open(topics, job.outputs)
                found += job.check(home)
            tally.checkpoints += world.checkpoints()
        tally.rows += len(job.places())
        tally.aborted += aborted(topics, job.outputs)
        self._tell(world, job, found, tally)

    def _suffer(self, world: World, fault: Fault, tally: Tally) -> None:
        time.sleep(fault.wait)
        before = len(world.exits)
        seen = fault.kind.do(world, fault.figures)
        outcome, then = self._after(world, fault)
        died = world.exits[before:]
        if died:
            outcome = "started again by hand"
            then += f", was started again (exit {', '.join(map(str, died))})"
        if seen.startswith("refused"):
            outcome = "refused, as it must be"
        if any(words in seen for words in _IN_VAIN):
            outcome = "did not meet anything"
        if "WRONG" in seen:
            tally.findings.append((self.name, Finding("not refused", fault.kind.name, 0, (seen,))))
            outcome = "WRONG"
        tally.outcomes[fault.kind.name][outcome] += 1
        print(f"{self.name}: {fault}: {seen}; {then}", flush=True)

    def _after(self, world: World, fault: Fault) -> tuple[str, str]:
        """What becomes of the job, in a word and in words."""
        if not fault.settle:
            return "not awaited", "the next one comes at once"
        began = time.monotonic()
        if world.works(_RECOVERS):
            return "by itself", f"works after {time.monotonic() - began:.0f} s"
        return "slowly", f"does not work after {_RECOVERS:.0f} s"

    def _finish(self, world: World, job: Job) -> list[Finding]:
        """Let the job end without faults, as a user would: all that is left, and its end."""
        for proxy in self.system.proxies:
            proxy.heal()
        for _ in range(3):  # the first may find the lease of one that has just been killed
            driver = job.driver(world.home, *job.last)
            code = wait_for(driver)
            if code == 0:
                return []
            time.sleep(2)
        said = driver.text().strip().splitlines()[-3:]
        return [Finding("does not finish", job.name, 0, (f"exit {code}", *said))]

    def _tell(self, world: World, job: Job, found: list[Finding], tally: Tally) -> None:
        print(
            f"{self.name}: {len(self.schedule)} faults, {len(world.exits)} ends, "
            f"{len(job.places())} rows: "
            + ("exact" if not found else "NOT EXACT"), flush=True,
        )  # fmt: skip
        for finding in found:
            tally.findings.append((self.name, finding))
            print(f"  {finding}", flush=True)


def own_disk(stack: ExitStack, folder: Path) -> Disk | None:
    """A small file system in `disk`, that can be filled; gives it if its power can be cut."""
    if has_power_cut():
        made = importlib.import_module(POWER_CUT).CutDisk(folder, megabytes=_DISK_MB)
        disk: Disk = stack.enter_context(made)
        return disk
    stack.enter_context(_in_memory(folder / "disk"))
    return None


@contextlib.contextmanager
def _in_memory(path: Path) -> Iterator[None]:
    path.mkdir(parents=True)
    subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={_DISK_MB}m", "tmpfs", str(path)], check=True
    )
    try:
        yield
    finally:
        for _ in range(20):
            if subprocess.run(["umount", str(path)], capture_output=True).returncode == 0:
                break
            time.sleep(0.5)
        else:
            subprocess.run(["umount", "-l", str(path)], check=False)


@dataclass
class Plan:
    """What to run, and for how long."""

    seed: int
    minutes: float
    faults: int = 10
    only_round: int | None = None
    rounds: list[tuple[str, str]] = field(default_factory=lambda: list(ROUNDS))
    kinds: list[Kind] = field(default_factory=lambda: list(KINDS))
    pause: float = 4.0
    every_ms: int = EVERY_MS


def play(plan: Plan, folder: Path) -> Tally:
    """Run rounds until the time is over; each round ends with its check."""
    tally = Tally()
    until = time.monotonic() + 60 * plan.minutes
    with ExitStack() as stack:
        systems: dict[str, System] = {}
        number = 0 if plan.only_round is None else plan.only_round
        while True:
            kind, name = plan.rounds[number % len(plan.rounds)]
            if name not in systems:
                system: Logs | ProxiedKafka | ProxiedPulsar = SYSTEMS[name](folder / name)
                stack.enter_context(system)
                systems[name] = system
            place = folder / f"round{number}"
            one = Round(number, plan.seed, kind, systems[name], place,
                        faults=plan.faults, kinds=plan.kinds, pause=plan.pause,
                        every_ms=plan.every_ms)  # fmt: skip
            before = len(tally.findings)
            try:
                one.run(tally)
            except Exception as error:  # the others go on: their faults were not in vain
                traceback.print_exc()
                tally.findings.append((one.name, Finding("broke off", name, 0, (repr(error),))))
            if len(tally.findings) == before:
                shutil.rmtree(place, ignore_errors=True)
            number += 1
            if time.monotonic() > until or plan.only_round is not None:
                return tally


def report(tally: Tally, plan: Plan, seconds: float) -> str:
    """Faults by kind with what became of the job, and all findings."""
    columns = (
        "by itself",
        "slowly",
        "started again by hand",
        "refused, as it must be",
        "not awaited",
        "did not meet anything",
        "WRONG",
    )
    lines = [f"{'fault':30}" + "".join(f"{c:>24}" for c in columns)]
    for kind in sorted(tally.outcomes):
        counts = tally.outcomes[kind]
        lines.append(f"{kind:30}" + "".join(f"{counts[c] or '':>24}" for c in columns))
    lines.append(
        f"{tally.faults} faults of {len(tally.outcomes)} kinds in {seconds / 60:.0f} minutes, "
        f"{tally.checkpoints} checkpoints, {tally.rows:,} rows, {tally.aborted:,} aborted ones "
        f"that nobody saw, seed {plan.seed}: {len(tally.findings)} findings"
    )
    lines += [f"{where}: {finding}" for where, finding in tally.findings]
    return "\n".join(lines)


def main() -> int:
    """Break and compare; 0 if nothing is lost, twice, reordered or torn."""
    parser = argparse.ArgumentParser(prog="nemesis", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    parser.add_argument("--round", type=int, help="one round of that seed, and no other")
    parser.add_argument("--faults", type=int, default=10, help="in each round")
    parser.add_argument("--pause", type=float, default=4.0, help="most seconds between faults")
    parser.add_argument("--every", type=int, default=EVERY_MS, help="between checkpoints, ms")
    parser.add_argument("--systems", help="of kafka, log, pulsar; with commas")
    parser.add_argument("--jobs", help="of lookup, process, window, cluster; with commas")
    parser.add_argument("--kinds", help="of faults, by parts of their names; with commas")
    parser.add_argument("--without", default="", help="kinds of faults to leave out; the same")
    options = parser.parse_args()
    plan = Plan(
        options.seed, options.minutes, options.faults, options.round,
        pause=options.pause, every_ms=options.every,
    )  # fmt: skip
    if options.systems:
        plan.rounds = [r for r in plan.rounds if r[1] in options.systems.split(",")]
    if options.jobs:
        plan.rounds = [r for r in plan.rounds if r[0] in options.jobs.split(",")]
    if options.kinds:
        parts = options.kinds.split(",")
        plan.kinds = [k for k in plan.kinds if any(part in k.name for part in parts)]
    for part in filter(None, options.without.split(",")):
        plan.kinds = [k for k in plan.kinds if part not in k.name]
    if not is_root():
        print("nemesis: without root no disk is filled, made read-only or cut off", flush=True)
    # brokers and mounts outlive a process that does not take leave
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    folder = Path(tempfile.mkdtemp(prefix="headgate-nemesis-"))
    began = time.monotonic()
    print(f"nemesis: seed {plan.seed}, {plan.minutes:g} minutes, in {folder}", flush=True)
    tally = play(plan, folder)
    print(report(tally, plan, time.monotonic() - began))
    if tally.findings:
        print(f"the folders of the rounds that were not exact are in {folder}")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
