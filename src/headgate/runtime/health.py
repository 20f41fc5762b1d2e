"""Whether a job's driver is well, for the probes of a cluster: /healthz and /readyz."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from headgate.base.errors import HeadgateError, UsageError

DEFAULT_LIMIT_SECONDS = 300.0
HOME_SECONDS = 5.0


class HomeCheck:
    """Asks the home with a time limit; a question that hangs is not asked twice.

    >>> HomeCheck(lambda: "job.json").problem() is None
    True
    """

    def __init__(self, read: Callable[[], object], seconds: float = HOME_SECONDS) -> None:
        self._read = read
        self._seconds = seconds
        self._lock = threading.Lock()
        self._asking: threading.Thread | None = None
        self._failed: str | None = None

    def problem(self) -> str | None:
        """Why the home cannot be relied on; None if it has answered."""
        with self._lock:
            if self._asking is None:
                self._asking = threading.Thread(target=self._ask, daemon=True)
                self._asking.start()
            asking = self._asking
        asking.join(self._seconds)
        with self._lock:
            if asking.is_alive():
                return f"the home has not answered within {self._seconds:g} seconds"
            if self._asking is asking:
                self._asking = None
            return self._failed

    def _ask(self) -> None:
        try:
            self._read()
            self._failed = None
        except (HeadgateError, OSError) as error:
            self._failed = f"the home cannot be read: {error}"


class Health:
    """What the driver's loop says of itself, and how old that is."""

    def __init__(self, home: HomeCheck, *, limit: float = DEFAULT_LIMIT_SECONDS) -> None:
        self._home = home
        self._limit = limit
        self._polled = self._progress = time.monotonic()
        self._seen: object = None
        self._ready = False

    def polled(self, progress: object, *, triggered: bool) -> None:
        """The loop came round; `progress` is another value after each trigger."""
        self._polled = time.monotonic()
        self._ready = triggered
        if progress != self._seen:
            self._seen = progress
            self._progress = self._polled

    def problems(self) -> list[str]:
        """Why the driver should be replaced; nothing if it is well."""
        found = [self._home.problem()]
        if (age := time.monotonic() - self._polled) > self._limit:
            found.append(f"the driver has not looked at its query for {age:.0f} seconds")
        elif (age := time.monotonic() - self._progress) > self._limit:
            found.append(f"the query has ended no batch for {age:.0f} seconds")
        return [text for text in found if text is not None]

    def not_ready(self) -> list[str]:
        """Why the job does not work yet, or not any more."""
        return self.problems() or ([] if self._ready else ["the first batch has not ended"])


class HealthServer:
    """Answers /healthz and /readyz on a port while the block runs."""

    def __init__(self, health: Health, port: int, *, job: str, host: str = "0.0.0.0") -> None:
        self._health = health
        self._job = job
        try:
            self._server = ThreadingHTTPServer((host, port), self._handler())
        except OSError as error:
            raise UsageError(
                f"nothing can listen on port {port} ({error.strerror or error})",
                remedy="give --health-port another one",
            ) from error
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        health, job = self._health, self._job

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                paths = {"/healthz": health.problems, "/readyz": health.not_ready}
                ask = paths.get(self.path.partition("?")[0])
                if ask is None:
                    self.send_error(404)
                    return
                problems = ask()
                body = json.dumps({"job": job, "ok": not problems, "problems": problems}) + "\n"
                self.send_response(503 if problems else 200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_: Any) -> None:
                """Probes are not news."""

        return Handler
