"""``headgate run --detach`` and ``headgate logs``: a job in the background, and what it prints."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from headgate.base.errors import NotFoundError
from headgate.base.handover import hand_over
from headgate.base.secrets import redact
from headgate.cli.common import Ui, command
from headgate.cli.control import JobArgument
from headgate.home.layout import JobHome
from headgate.home.log_lines import tail
from headgate.home.run_logs import logs
from headgate.runtime.detached import start_detached
from headgate.runtime.lease import is_live

_POLL_SECONDS = 0.2
_OURS = ("--detach", "--json")


def register(app: typer.Typer) -> None:
    """Add the verb."""
    command(app, "logs")(show_logs)


def run_detached(ui: Ui, job: JobHome, arguments: Sequence[str], params: Mapping[str, str]) -> None:
    """Start the same command in the background, and say how to follow and to stop the job."""
    handed, environment = hand_over(params)
    words = words_of(arguments)
    split = words.index("--") if "--" in words else len(words)
    ui.say(f"starting {job.name} in the background")
    found = start_detached(job, [*words[:split], *handed, *words[split:]], environment)
    home = "" if "HEADGATE_HOME" in os.environ else f" --home {redact(ui.home_setting.value)}"
    more = home if ui.home_setting.origin != "default" else ""
    if found.ended:
        ui.say(f"{job.name} has ended already; see headgate logs {job.name}{more}")
    else:
        ui.say(f"{job.name} runs as process {found.pid}, run {found.run}; its log is {found.log}")
        ui.say(f"follow it with: headgate logs {job.name} -f{more}")
        ui.say(f"stop it with:   headgate stop {job.name}{more}")
    ui.data(
        {"job": job.name, "run": found.run, "pid": found.pid, "log": str(found.log),
         "ended": found.ended},
        lambda: str(found.log),
    )  # fmt: skip


def words_of(arguments: Sequence[str]) -> list[str]:
    """The words of a command without --detach, --json and its params, which go another way.

    >>> words_of(["run", "a.py", "--set", "a=1", "-qd", "--set=b=2", "--", "--master", "-d"])
    ['run', 'a.py', '-q', '--', '--master', '-d']
    """
    kept: list[str] = []
    words = deque(arguments)
    while words:
        word = words.popleft()
        if word[:1] == "-" and word[1:].isalpha():
            word = word.replace("d", "")  # short flags may stand together
            if word == "-":
                continue
        if word == "--":
            return [*kept, word, *words]
        if word == "--set":
            words.popleft()
        elif word not in _OURS and not word.startswith("--set="):
            kept.append(word)
    return kept


def show_logs(
    ui: Ui,
    job: JobArgument,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Keep printing new lines until the job has finished."),
    ] = False,
    lines: Annotated[
        int, typer.Option("--lines", "-n", metavar="N", min=0, help="Number of lines from the end.")
    ] = 100,
) -> None:
    """Print the log of a job that was started in the background."""
    home = _find(ui, job)
    files = logs(home)
    if not files:
        raise NotFoundError(
            f"job '{home.name}' has no log: what it prints goes to the terminal that started it",
            remedy="start it with headgate run APP --detach",
        )
    last, end = tail(files[-1], lines)
    if ui.json:
        ui.data({"job": home.name, "log": str(files[-1]), "lines": last.splitlines()}, lambda: "")
        return
    print(redact(last), end="", flush=True)
    if follow:
        for part in _news(home, files[-1], end):
            print(redact(part), end="", flush=True)


def _find(ui: Ui, job: str) -> JobHome:
    """The job; one whose first start has failed has a log and nothing else."""
    try:
        return ui.home.find(job)
    except NotFoundError:
        home = ui.home.job(job)
        if logs(home):
            return home
        raise


def _news(job: JobHome, file: Path, at: int) -> Iterator[str]:
    """What is written from now on, in a later start's file too, until the job has ended."""
    over = False
    while True:
        newest = logs(job)[-1]
        if newest != file:
            file, at = newest, 0
        with file.open("rb") as stream:
            stream.seek(at)
            data = stream.read()
        at += len(data)
        if data:
            yield data.decode(errors="replace")
        elif over:
            return
        over = not is_live(job.read().lease)
        time.sleep(_POLL_SECONDS)
