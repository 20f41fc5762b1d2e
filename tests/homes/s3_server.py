"""moto's S3 server with writes one at a time; a process of its own, with moto's options.

moto checks If-Match and If-None-Match first and writes later: of two writes at the same moment both
can pass. In S3 the check and the write are one step, and leases and commits rely on that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any

from moto import server
from werkzeug.serving import run_simple

_WRITES = {"PUT", "POST", "DELETE"}
Application = Callable[[dict[str, Any], Any], Iterable[bytes]]


def one_write_at_a_time(application: Application) -> Application:
    """The same application, in which a write waits for the one before."""
    lock = threading.Lock()

    def serve(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        if environ["REQUEST_METHOD"] not in _WRITES:
            return application(environ, start_response)
        with lock:
            return application(environ, start_response)

    return serve


if __name__ == "__main__":

    def run(host: str, port: int, application: Application, **options: Any) -> None:
        run_simple(host, port, one_write_at_a_time(application), **options)

    server.run_simple = run
    server.main()
