"""Owns an engine under measurement: a process of its own that runs until it is ended."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import TracebackType

from bench.flink import job_command
from bench.latency_jobs import EVENTS, READY
from bench.latency_orders import ITEMS, USERS
from bench.process import EngineFailed, end_group, why

ENGINES = ("headgate", "flink")
_START_SECONDS = 180.0


class Engine:
    """One engine with one job; it is ready inside of the `with` block and gone after it."""

    def __init__(self, engine: str, job: str, servers: str, every_ms: int, folder: Path) -> None:
        self._folder = folder
        self._log = folder / "stderr.log"
        self._command = _COMMANDS[engine](job, servers, every_ms, folder)
        self._ready: queue.Queue[bool] = queue.Queue()

    def __enter__(self) -> Engine:
        with open(self._log, "w", encoding="utf-8") as errors:
            self._process = subprocess.Popen(
                self._command, stdout=subprocess.PIPE, stderr=errors, text=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                start_new_session=True,
            )  # fmt: skip
        threading.Thread(target=self._listen, daemon=True).start()
        try:
            self._wait_until_ready()
        except BaseException:
            end_group(self._process)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # what it committed is counted already: there is nothing to end in order
        end_group(self._process)

    @property
    def pid(self) -> int:
        """Its process, the parent of all others it has."""
        return self._process.pid

    def check(self) -> None:
        """Fail if it has ended by itself."""
        if self._process.poll() is not None:
            raise EngineFailed(f"the engine ended; see {self._log}\n{why(self._log)}")

    def write_events(self) -> None:
        """Let Headgate write Spark's event log from now on."""
        os.kill(self.pid, signal.SIGUSR1)

    def events(self) -> list[str]:
        """The lines of the event log."""
        files = sorted((self._folder / EVENTS).glob("*"))
        return [line for file in files for line in file.read_text().splitlines()]

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() == READY:
                self._ready.put(True)

    def _wait_until_ready(self) -> None:
        until = time.monotonic() + _START_SECONDS
        while time.monotonic() < until:
            self.check()
            try:
                self._ready.get(timeout=0.5)
                return
            except queue.Empty:
                continue
        raise EngineFailed(f"the engine was not ready after {_START_SECONDS:.0f} s; {self._log}")


def _headgate(job: str, servers: str, every_ms: int, folder: Path) -> list[str]:
    return [sys.executable, "-m", "bench.latency_jobs", job, servers, str(every_ms), str(folder)]


def _flink(job: str, servers: str, every_ms: int, folder: Path) -> list[str]:
    own = {
        "job": job,
        "servers": servers,
        "table-rows": str(USERS + ITEMS if job == "store" else 0),
        "execution.checkpointing.interval": f"{every_ms} ms",
        "execution.checkpointing.dir": (folder / "checkpoints").resolve().as_uri(),
        # its default of 100 ms is for throughput
        "execution.buffer-timeout.interval": "5 ms",
        "pipeline.object-reuse": "true",
        "io.tmp.dirs": str(folder / "tmp"),
    }
    return job_command("LatencyJob", folder / "classes", own)


_COMMANDS = {"headgate": _headgate, "flink": _flink}
