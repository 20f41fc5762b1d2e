"""The kinds of faults: what each needs, how its figures are drawn, and how it is done.

A fault is drawn from the seed before the round begins, and done at its time. It gives back what
was seen; what is wrong in spite of it is for the checker to find at the end of the round.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from headgate.base.settings import Checkpoints
from tests.nemesis.proxy import API_NAMES, Do, Rule
from tests.nemesis.world import World, send

Figures = Mapping[str, Any]
_BROKERS = frozenset({"kafka", "pulsar"})
_ANY = frozenset({"log", "kafka", "pulsar"})
_TRANSACTION_APIS = (0, 22, 24, 25, 26, 28)
_REQUEST_APIS = (*_TRANSACTION_APIS, 1, 2, 3, 9, 10)
REFUSED = 5
POWER_CUT = "tests.nemesis.power_cut"


@dataclass(frozen=True)
class Kind:
    """A kind of fault.

    `draw` gives its figures; `do` does it, and gives what was seen of it at once.
    """

    name: str
    do: Callable[[World, Figures], str]
    draw: Callable[[random.Random], Figures] = lambda pick: {}
    systems: frozenset[str] = _ANY
    jobs: frozenset[str] = frozenset({"lookup", "process", "window", "cluster"})
    weight: float = 1.0
    able: Callable[[], bool] = lambda: True
    """Whether this machine, and this version of Headgate, can do it."""
    own_disk: bool = False
    """Whether the home must be on a file system of its own."""


@dataclass(frozen=True)
class Fault:
    """One fault of a schedule."""

    kind: Kind
    figures: Figures
    wait: float
    """Seconds from the fault before."""
    settle: bool
    """Whether the job may recover from the fault before, first."""

    def __str__(self) -> str:
        shown = ", ".join(f"{k} {_shown(v)}" for k, v in self.figures.items())
        return self.kind.name + (f" ({shown})" if shown else "")


def schedule(pick: random.Random, kinds: list[Kind], count: int, pause: float = 4.0) -> list[Fault]:
    """Faults by their weights; three of ten come while the job still recovers."""
    weights = [kind.weight for kind in kinds]
    chosen = pick.choices(kinds, weights, k=count)
    return [
        Fault(kind, kind.draw(pick), pick.uniform(0.2, pause), pick.random() < 0.7)
        for kind in chosen
    ]


def _shown(value: Any) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


# Processes


def _kill(what: str) -> Callable[[World, Figures], str]:
    def kill(world: World, figures: Figures) -> str:
        pids = world.pids(what)
        if not pids:
            return "there is none at this moment"
        send(pids[figures["which"] % len(pids)], signal.SIGKILL)
        return "killed"

    return kill


def _stop(what: str) -> Callable[[World, Figures], str]:
    def stop(world: World, figures: Figures) -> str:
        pids = world.pids(what)
        stopped = [pid for pid in pids if send(pid, signal.SIGSTOP)]
        time.sleep(figures["seconds"])
        for pid in stopped:
            send(pid, signal.SIGCONT)
        return "went on" if stopped else "there is none at this moment"

    return stop


def _terminate(world: World, figures: Figures) -> str:
    """Ask it to end in order; it is started again."""
    for pid in world.pids("driver"):
        send(pid, signal.SIGTERM)
    return "asked to stop"


def _kill_broker(world: World, figures: Figures) -> str:
    with world.feeding:
        broker = world.system.broker
        assert broker is not None
        send(world.broker_pid(), signal.SIGKILL)
        record = broker.status().record
        while record is not None and record.alive:
            time.sleep(0.05)
        time.sleep(figures["seconds"])
        broker.start(quiet=True)
    return "started again"


def _stop_broker(world: World, figures: Figures) -> str:
    with world.feeding:
        pid = world.broker_pid()
        send(pid, signal.SIGSTOP)
        time.sleep(figures["seconds"])
        send(pid, signal.SIGCONT)
    return "went on"


# The network


def _reset(world: World, figures: Figures) -> str:
    broken = 0
    for _ in range(figures["times"]):
        broken += sum(proxy.reset() for proxy in world.system.proxies)
        time.sleep(0.3)
    return f"{broken} connections broken"


def _refuse(world: World, figures: Figures) -> str:
    for proxy in world.system.proxies:
        proxy.refuse()
        proxy.reset()
    return _heal_after(world, figures["seconds"])


def _blackout(world: World, figures: Figures) -> str:
    for proxy in world.system.proxies:
        proxy.shut("up", "down")
    return _heal_after(world, figures["seconds"])


def _half_open(world: World, figures: Figures) -> str:
    """One way is dead; the bytes of that time are lost, so the connections never heal."""
    for proxy in world.system.proxies:
        proxy.shut(figures["way"])
    time.sleep(figures["seconds"])
    for proxy in world.system.proxies:
        proxy.reset()
    return _heal_after(world, 0)


def _slow(world: World, figures: Figures) -> str:
    for proxy in world.system.proxies:
        proxy.delay(figures["up"], figures["down"])
    return _heal_after(world, figures["seconds"])


def _narrow(world: World, figures: Figures) -> str:
    for proxy in world.system.proxies:
        proxy.limit(figures["bytes"])
    return _heal_after(world, figures["seconds"])


def _heal_after(world: World, seconds: float) -> str:
    time.sleep(seconds)
    for proxy in world.system.proxies:
        proxy.heal()
    return "healed"


def _single(do: Do) -> Callable[[World, Figures], str]:
    def single(world: World, figures: Figures) -> str:
        api = next(api for api, name in API_NAMES.items() if name == figures["of"])
        rule = Rule(api, do, times=figures["times"], seconds=figures.get("by", 0.0))
        proxy = world.system.proxies[0]
        proxy.add(rule)
        until = time.monotonic() + 8
        while rule.met < rule.times and time.monotonic() < until:
            time.sleep(0.05)
        proxy.heal()
        return f"{rule.met} met" if rule.met else "there was none in 8 s"

    return single


def _hold(world: World, figures: Figures) -> str:
    """A request that its client has given up arrives when the next ones are under way."""
    api = next(api for api, name in API_NAMES.items() if name == figures["of"])
    proxy = world.system.proxies[0]
    proxy.held.clear()
    proxy.add(Rule(api, Do.HOLD_REQUEST))
    until = time.monotonic() + 8
    while not proxy.held and time.monotonic() < until:
        time.sleep(0.02)
    proxy.heal()
    if not proxy.held:
        return "there was none in 8 s"
    time.sleep(figures["seconds"])
    try:
        proxy.deliver(proxy.held[0])
    except OSError as error:
        return f"held, and not delivered ({error})"
    return "held, and delivered late"


# The home


def _clock(world: World, figures: Figures) -> str:
    """The next driver's clock is another one."""
    with world.down():
        world.conf["spark.headgate.clock.offset.ms"] = str(int(figures["by"] * 1000))
        world.begin()
    return "started with another clock"


def _lose_file(world: World, figures: Figures) -> str:
    """A state file that the newest checkpoint needs is gone: the start must refuse."""
    with world.down():
        files = _needed_state_files(world.home)
        if not files:
            return "there is no state yet"
        lost = files[figures["which"] % len(files)]
        aside = world.home.parent / "lost"
        shutil.move(lost, aside)
        try:
            code, said = _tried(world)
        finally:
            if not lost.exists():
                shutil.move(aside, lost)
                _sync(world.home)
        if code is None or code < 0:
            return f"WRONG: not refused without {lost.name}, {'works' if code is None else 'hangs'}"
        named = "ck:" in said or "sp:" in said or "--fresh" in said
        return f"refused with exit {code}" + ("" if named else "; WRONG: without a remedy")


def _needed_state_files(home: Path) -> list[Path]:
    """The changes of the newest committed batch, where no whole copy of the state has them too."""
    newest = _newest_batch(home, "commits")
    if newest < 0:
        return []
    run = _spark_folders(home)[-1]
    committed = (run / "commits" / str(newest)).read_text()
    found: dict[Path, list[Path]] = {}
    for path in run.glob("state/**/*"):
        version, _, attempt = path.name.split(".")[0].partition("_")
        # an attempt before a power cut has left files that no commit names
        if version == str(newest + 1) and attempt and attempt in committed:
            found.setdefault(path.parent, []).append(path)
    needed = [files for files in found.values() if not any(f.suffix == ".zip" for f in files)]
    return sorted(f for files in needed for f in files if f.suffix == ".changelog")


def _spark_folders(home: Path) -> list[Path]:
    return sorted(home.glob("jobs/*/runs/r*/spark"), key=lambda p: int(p.parent.name[1:]))


def _newest_batch(home: Path, log: str) -> int:
    """Of the newest run, in Spark's log of offsets or of commits; -1 if there is none."""
    entries = [p.name for run in _spark_folders(home)[-1:] for p in (run / log).glob("*")]
    return max((int(name) for name in entries if name.isdigit()), default=-1)


def _tried(world: World, seconds: float = 60) -> tuple[int | None, str]:
    """Start the job; gives its exit code, or None if it began to work, and what it said."""
    before = world.checkpoints()
    driver = world.begin()
    skip = len(driver.text())
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        code = driver.process.poll()
        if code is not None:
            return code, driver.text()[skip:]
        if world.checkpoints() > before:
            return None, driver.text()[skip:]
        time.sleep(0.1)
    world.kill_all()
    return -1, driver.text()[skip:]


def _restore_home(world: World, figures: Figures) -> str:
    """A copy of the home from before is put in its place: the start must refuse."""
    copy = world.home.parent / "copy"
    with world.down():
        if not world.home.exists():
            return "there is no home yet"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(world.home, copy)
        # a batch that is under way in both is the same in both, and may be finished in either
        pending = _newest_batch(copy, "offsets") > _newest_batch(copy, "commits")
        world.begin()
    if not world.works(60, more=figures["batches"] + pending):
        return "the job did not go on; not tried"
    with world.down():
        real = world.home.parent / "real"
        shutil.rmtree(real, ignore_errors=True)
        shutil.move(world.home, real)
        shutil.move(copy, world.home)
        code, _ = _tried(world)
        world.kill_all()
        shutil.move(world.home, copy)
        shutil.move(real, world.home)
        _sync(world.home)
    return "refused with exit 5" if code == REFUSED else f"WRONG: not refused (exit {code})"


def _sync(home: Path) -> None:
    """Keep what a fault has put back from being lost by the next power cut: no job syncs it."""
    subprocess.run(["sync", "--file-system", str(home)], check=True)


def _fill(world: World, figures: Figures) -> str:
    """No room is left where the home is."""
    filler = world.home.parent / "filler"
    try:
        with open(filler, "wb", buffering=0) as file:
            while file.write(b"\0" * 65536) == 65536:
                pass
    except OSError:
        pass
    time.sleep(figures["seconds"])
    filler.unlink(missing_ok=True)
    return "there is room again"


def _read_only(world: World, figures: Figures) -> str:
    place, until = str(world.home.parent), time.monotonic() + 10
    # of the mount only: a plain remount is not done while the job has a file open for writing.
    # Even so it is refused for the moment in which one is being written.
    while (tried := _remounted(place, "ro")).returncode and time.monotonic() < until:
        time.sleep(0.01)
    if tried.returncode:
        return f"not tried: {tried.stderr.strip().splitlines()[0]}"
    time.sleep(figures["seconds"])
    tried = _remounted(place, "rw")
    assert tried.returncode == 0, tried.stderr
    return "writable again"


def _remounted(place: str, how: str) -> subprocess.CompletedProcess[str]:
    command = ["mount", "-o", f"remount,bind,{how}", place]
    return subprocess.run(command, capture_output=True, text=True)


def _cut_power(world: World, figures: Figures) -> str:
    """The disk of the home loses what it was not asked to sync, and the job dies with it."""
    with world.keeping:
        if world.driver is None or world.disk is None:
            return "there is none at this moment"
        world.disk.cut([world.driver.process.pid, *world.pids("executor")])
        world.kill_all()
    return "cut"


@cache
def is_root() -> bool:
    return os.geteuid() == 0 and shutil.which("mount") is not None


@cache
def knows_restored_homes() -> bool:
    """Whether this version refuses a home that is older than its sinks."""
    from headgate.cli import options, run

    texts = [Path(module.__file__ or "").read_text() for module in (options, run)]
    return any("accept-sink-position" in text for text in texts)


@cache
def has_power_cut() -> bool:
    """Whether there can be such a disk, and this version syncs what it relies on."""
    if importlib.util.find_spec(POWER_CUT) is None:
        return False
    able: bool = importlib.import_module(POWER_CUT).why_not() is None
    return able and "durability" in inspect.signature(Checkpoints).parameters


def _which(pick: random.Random) -> Figures:
    return {"which": pick.randrange(100)}


def _seconds(least: float, most: float) -> Callable[[random.Random], Figures]:
    return lambda pick: {"seconds": pick.uniform(least, most)}


def _of(*apis: int, by: float = 0.0) -> Callable[[random.Random], Figures]:
    def draw(pick: random.Random) -> Figures:
        drawn: dict[str, Any] = {"of": API_NAMES[pick.choice(apis)], "times": pick.randint(1, 3)}
        return {**drawn, "by": pick.uniform(0.2, by)} if by else drawn

    return draw


_KAFKA = frozenset({"kafka"})
KINDS = [
    Kind("kill driver", _kill("driver"), _which),
    Kind("kill JVM", _kill("jvm"), _which),
    Kind("kill Python worker", _kill("worker"), _which, jobs=frozenset({"process"}), weight=2),
    Kind("kill executor", _kill("executor"), _which, jobs=frozenset({"cluster"}), weight=4),
    Kind("stop executor", _stop("executor"), _seconds(1, 8), jobs=frozenset({"cluster"}), weight=2),
    Kind("stop driver", _stop("driver"), _seconds(1, 8)),
    Kind("stop driver past its lease", _stop("driver"), _seconds(32, 34), weight=0.1),
    Kind("stop JVM", _stop("jvm"), _seconds(1, 10)),
    Kind("stop Python worker", _stop("worker"), _seconds(1, 6), jobs=frozenset({"process"})),
    Kind("ask to stop", _terminate, weight=0.5),
    Kind("kill broker", _kill_broker, _seconds(0, 5), systems=_BROKERS),
    Kind("stop broker", _stop_broker, _seconds(1, 12), systems=_BROKERS),
    Kind("resets", _reset, lambda pick: {"times": pick.randint(1, 12)}, systems=_BROKERS),
    Kind("refused connections", _refuse, _seconds(1, 8), systems=_BROKERS),
    Kind("blackout", _blackout, _seconds(1, 15), systems=_BROKERS),
    Kind("half open", _half_open, lambda pick: {
        "way": pick.choice(["up", "down"]), "seconds": pick.uniform(1, 12)}, systems=_BROKERS),
    Kind("delay", _slow, lambda pick: {
        "up": pick.uniform(0, 0.6), "down": pick.uniform(0, 0.6), "seconds": pick.uniform(2, 6)},
        systems=_BROKERS),
    Kind("little bandwidth", _narrow, lambda pick: {
        "bytes": pick.choice([2_000, 8_000, 30_000]), "seconds": pick.uniform(2, 8)},
        systems=_BROKERS),
    Kind("answer lost", _single(Do.LOSE_ANSWER), _of(*_TRANSACTION_APIS), _KAFKA, weight=4),
    Kind("answer late", _single(Do.DELAY_ANSWER), _of(*_REQUEST_APIS, by=4), _KAFKA, weight=2),
    Kind("answer twice", _single(Do.REPEAT_ANSWER), _of(*_TRANSACTION_APIS), _KAFKA),
    Kind("request lost", _single(Do.LOSE_REQUEST), _of(*_TRANSACTION_APIS), _KAFKA, weight=2),
    Kind("request late", _single(Do.DELAY_REQUEST), _of(*_TRANSACTION_APIS, by=4), _KAFKA),
    Kind("request held back", _hold, lambda pick: {
        "of": API_NAMES[pick.choice(_TRANSACTION_APIS)], "seconds": pick.uniform(0, 4)},
        _KAFKA, weight=3),
    Kind("clock step", _clock, lambda pick: {"by": pick.uniform(-7200, 7200)}, weight=0.5),
    Kind("state file lost", _lose_file, _which, weight=0.5),
    Kind("home restored from a copy", _restore_home, lambda pick: {"batches": pick.randint(1, 3)},
         weight=0.5, able=knows_restored_homes),
    Kind("disk full", _fill, _seconds(1, 6), able=is_root, own_disk=True, weight=0.7),
    Kind("disk read-only", _read_only, _seconds(1, 6), able=is_root, own_disk=True, weight=0.7),
    Kind("power cut", _cut_power, able=has_power_cut, own_disk=True, weight=0.5),
]  # fmt: skip
