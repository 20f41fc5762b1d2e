"""Reading state needs Spark: a process of its own does it, so that the server stays quick.

The process starts with the first query, answers one at a time, and ends after some idle minutes or
with the server.
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from typing import IO, Any

from headgate.base.errors import HeadgateError, NotFoundError, RefusedError, UsageError

CONF = "HEADGATE_UI_SPARK_CONF"
"""Tells the process Spark's settings, as JSON."""
SECONDS = 300.0
"""How long a query may take, with the start of Spark."""
_MOST_WAITING = 4
_MOST_BYTES = 32 * 1024 * 1024
_ERRORS: dict[str, type[HeadgateError]] = {
    **{error.code: error for error in (NotFoundError, UsageError, RefusedError)},
    "DAMAGED": RefusedError,
}


class SparkProcess:
    """Sends queries to the process; calls wait for one another, and too many are refused."""

    def __init__(self, home: str, conf: Mapping[str, str] | None = None) -> None:
        self._home, self._conf = home, dict(conf or {})
        self._lock = threading.Lock()
        self._waiting = 0
        self._counter = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def query(self, query: Mapping[str, Any]) -> dict[str, Any]:
        """The result of a query; raises the HeadgateError that the process sends."""
        with self._counter:
            if self._waiting >= _MOST_WAITING:
                raise RefusedError(
                    f"{_MOST_WAITING} queries of state are already waiting",
                    remedy="try again in a moment",
                )
            self._waiting += 1
        try:
            with self._lock:
                return self._send(query)
        finally:
            with self._counter:
                self._waiting -= 1

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    pipe.close()

    def _send(self, query: Mapping[str, Any]) -> dict[str, Any]:
        line = json.dumps(dict(query)).encode() + b"\n"
        for fresh in (False, True):
            process = self._started(fresh=fresh)
            assert process.stdin is not None and process.stdout is not None
            try:
                process.stdin.write(line)
                process.stdin.flush()
            except OSError:
                continue  # it had ended after its idle time
            answer = _read_line(process.stdout, SECONDS)
            if answer is not None:
                return _value(answer)
            if process.poll() is None or fresh:
                self.close()
                raise HeadgateError(
                    f"Spark did not answer within {SECONDS:.0f} s, or has died",
                    code="DRIVER_GONE",
                    remedy="see what headgate state says on the command line",
                )
        raise HeadgateError(
            "Spark could not be started", code="DRIVER_GONE", remedy="see headgate doctor"
        )

    def _started(self, *, fresh: bool) -> subprocess.Popen[bytes]:
        if self._process is not None and (fresh or self._process.poll() is not None):
            self.close()
        if self._process is None:
            loud = bool(os.environ.get("HEADGATE_SPARK_LOG"))
            self._process = subprocess.Popen(
                [sys.executable, "-m", "headgate.ui.spark_worker"],
                # not among the words, which others can read: a setting may be a password
                env={**os.environ, "HEADGATE_HOME": self._home, CONF: json.dumps(self._conf)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if loud else subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C is for the server, which then closes it
            )
        return self._process


def _read_line(pipe: IO[bytes], seconds: float) -> bytes | None:
    """A line of the pipe, or nothing if it ends or the time is up before."""
    ends, found = time.monotonic() + seconds, bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (left := ends - time.monotonic()) > 0 and len(found) < _MOST_BYTES:
            if not selector.select(left):
                return None
            part = os.read(pipe.fileno(), 65536)
            if not part:
                return None
            found += part
            if found.endswith(b"\n"):
                return bytes(found)
    return None


def _value(answer: bytes) -> dict[str, Any]:
    data = json.loads(answer)
    if "error" not in data:
        value: dict[str, Any] = data["value"]
        return value
    error = data["error"]
    kind = _ERRORS.get(error["code"], HeadgateError)
    raise kind(
        error["message"],
        code=error["code"],
        expected=error.get("expected"),
        got=error.get("got"),
        remedy=error.get("remedy"),
    )
