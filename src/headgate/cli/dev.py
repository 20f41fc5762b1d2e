"""``headgate dev``: a job and the web interface together; the job starts again on every save."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from headgate.base.errors import ExitCode
from headgate.base.handover import hand_over
from headgate.base.py_files import put_on_path
from headgate.cli.app import load_app, stop_session
from headgate.cli.common import Ui, command
from headgate.cli.options import SetOption, parse_params
from headgate.cli.ui import DEFAULT_PORT, address_of, listen

_POLL_SECONDS = 0.5
_STOP_SECONDS = 60.0
_HOST = "127.0.0.1"


def register(app: typer.Typer) -> None:
    """Add the verb."""
    command(app, "dev")(dev)


def dev(
    ui: Ui,
    app: Annotated[str, typer.Argument(metavar="APP", help="path/to/file.py or file.py:job.")],
    params: SetOption = None,
    port: Annotated[
        int,
        typer.Option(
            "--ui-port",
            metavar="N",
            min=0,
            max=65535,
            help="Port to listen on; 0 picks a free one.",
        ),
    ] = DEFAULT_PORT,
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="Spark's master.")
    ] = None,
) -> None:
    """Run a job with the web interface, and restart the job when its files are saved."""
    parse_params(params)
    handed, secrets = hand_over(dict(_pair(text) for text in params or ()))
    put_on_path(ui.project.local_py_files() or ())
    loaded = load_app(app)  # what is wrong is said before anything runs
    stop_session()  # one that the import needed: the job gets its own
    home = ui.home
    listening = listen(_HOST, port)
    address = address_of(_HOST, listening)
    ui.say(f"{loaded.job.name} is shown at {address}; Ctrl-C ends both")
    ui.data(
        {"job": loaded.job.name, "home": home.url, "address": address}, lambda: ui.said(address)
    )
    server = _serve(home.url, listening, ui.project.spark_conf())
    words = ["run", app, *handed]
    if ui.quiet:
        words.append("--quiet")
    if ui.env:
        words += ["--env", ui.env]
    if master:
        words += ["--", "--master", master]
    try:
        _run_and_watch(
            ui, words, loaded.file.parent, {**os.environ, **secrets, "HEADGATE_HOME": home.url}
        )
    except KeyboardInterrupt:
        ui.say("the job has stopped")
        raise typer.Exit(ExitCode.DONE) from None
    finally:
        server()


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name.strip(), value


def _serve(home: str, listening: socket.socket, conf: Mapping[str, str]) -> Callable[[], None]:
    """The web interface in a thread; gives the way to end it."""
    import uvicorn

    from headgate.ui.app import create_app

    config = uvicorn.Config(
        create_app(home, conf=conf), log_level="warning", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    # signals are for the main thread, which waits for the job
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()

    def end() -> None:
        server.should_exit = True
        thread.join(5)

    return end


class _Job:
    """The job in a process of its own, so that each start has the code as it is then."""

    def __init__(self, words: list[str], environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "headgate.cli.main", *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C comes to us, and we stop it in order
        )

    def code(self) -> int | None:
        """Its exit code, once it has ended."""
        return self._process.poll()

    def stop(self) -> None:
        """End it after its batch; at once if that takes too long."""
        if self._process.poll() is not None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


def saved(folder: Path) -> dict[str, int]:
    """When each Python file beside the job's was last saved, those in folders too."""
    found = {}
    for at, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith((".", "__pycache__"))]
        for name in files:
            path = Path(at, name)
            if name.endswith(".py"):
                with suppress(FileNotFoundError):  # an editor writes aside and renames
                    found[str(path.relative_to(folder))] = path.stat().st_mtime_ns
    return found


def _changed(before: dict[str, int], after: dict[str, int]) -> set[str]:
    return {name for name in before.keys() | after.keys() if before.get(name) != after.get(name)}


def _run_and_watch(ui: Ui, words: list[str], folder: Path, environment: Mapping[str, str]) -> None:
    """Start the job; after a save stop it in order and start it again, with the new code."""
    while True:
        before = saved(folder)
        job = _Job(words, environment)
        try:
            while saved(folder) == before and job.code() is None:
                time.sleep(_POLL_SECONDS)
            code = job.code()
            if code is None:
                changed = ", ".join(sorted(_changed(before, saved(folder))))
                ui.say(f"{changed} was saved: the job stops after its batch and starts again")
                job.stop()
                continue
            ui.say(f"the job has ended with exit code {code}; it starts again on the next save")
            while saved(folder) == before:
                time.sleep(_POLL_SECONDS)
        finally:
            job.stop()
