"""What all demos share: commands as a user types them, a broker for a while, waiting for a job."""

from __future__ import annotations

import atexit
import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from headgate.brokers import KafkaBroker, PulsarBroker
from headgate.connectors.topics import open_topic
from headgate.home.layout import Home

_MEGABYTES = {"kafka": 45, "pulsar": 252}


def start(*arguments: str) -> subprocess.Popen[bytes]:
    """Start a command of the command line, and show it."""
    print(f"\n$ headgate {shlex.join(arguments)}", file=sys.stderr, flush=True)
    process = subprocess.Popen([*_program(), *arguments])
    atexit.register(process.kill)  # a demo that ends early leaves no job behind
    return process


def _program() -> list[str]:
    beside = Path(sys.executable).with_name("headgate")
    return [str(beside)] if beside.exists() else [sys.executable, "-m", "headgate.cli.main"]


def typed_headgate() -> str:
    """The program as one would type it in this folder."""
    program = _program()
    return typed(Path(program[0])) if len(program) == 1 else "headgate"


def headgate(*arguments: str) -> int:
    """Run a command to its end; gives its exit code."""
    return start(*arguments).wait()


def must(*arguments: str) -> None:
    """Run a command to its end, and end the demo if it fails."""
    if code := headgate(*arguments):
        raise SystemExit(f"demo: headgate {arguments[0]} ended with exit code {code}")


def generate(address: str, program: Path, *arguments: str) -> None:
    """Send what a program prints, a line a record, to a topic."""
    shown = shlex.join([typed(program), *arguments])
    print(f"\n$ python {shown} | headgate topic produce {address}", file=sys.stderr, flush=True)
    made = subprocess.run(
        [sys.executable, str(program), *arguments], stdout=subprocess.PIPE, check=True
    )
    subprocess.run([*_program(), "topic", "produce", address], input=made.stdout, check=True)


def typed(path: Path) -> str:
    """A file's path as one would type it in this folder."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def say(text: str) -> None:
    """Tell what comes next, beside the output of commands."""
    print(f"\ndemo: {text}", file=sys.stderr, flush=True)


def refuse_if_ended(job: subprocess.Popen[bytes]) -> None:
    """End the demo if the job has ended by itself."""
    if job.poll() is not None:
        raise SystemExit(f"demo: the job ended with exit code {job.returncode}")


def wait_until(job: subprocess.Popen[bytes], done: Callable[[], bool]) -> None:
    """Wait for something that the running job does."""
    while not done():
        refuse_if_ended(job)
        time.sleep(0.3)


def totals(home: Path, job: str) -> Mapping[str, Mapping[str, int]]:
    """What the job's last checkpoint has counted, by step."""
    found = Home(str(home)).job(job)
    run = found.current() if found.exists() else None
    record = run.latest_checkpoint() if run else None
    return record.totals if record else {}


def rows(address: str) -> list[dict[str, Any]]:
    """The committed records of a topic, which are JSON."""
    found = open_topic(address).read("earliest")
    return [json.loads(record.value or "") for record in found if record is not None]


@contextmanager
def local_broker(
    kind: type[KafkaBroker] | type[PulsarBroker], folder: Path, *, running: str | None = None
) -> Iterator[str]:
    """The address of a broker in a new folder for the time of a demo, or of one that runs."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # the broker is stopped then, too
    if running is not None:
        yield running
        return
    broker = kind(folder / kind.kind)
    if folder.exists():
        say(f"clearing {folder} of the last demo")
        broker.stop()
        shutil.rmtree(folder)
    name = kind.kind.capitalize()
    megabytes = _MEGABYTES[kind.kind]
    say(f"starting a {name} broker on this machine (its jars are fetched once, {megabytes} MB)")
    broker = kind(folder / kind.kind)
    try:
        broker.start()
        yield broker.servers
    finally:
        say("stopping the broker")
        broker.stop()
