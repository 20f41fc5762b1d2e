"""A real S3 server on loopback (moto's), as a process of its own, that counts what it is asked."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from headgate.brokers.process import free_port

_REQUEST = re.compile(r'"(?P<method>[A-Z]+) (?P<path>\S*) HTTP/1\.1" (?P<status>\d+)')
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")  # of answers other than 200
KEYS = {
    "AWS_ACCESS_KEY_ID": "test-key",
    "AWS_SECRET_ACCESS_KEY": "test-secret",
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}


class S3Server:
    """One server; buckets are made as tests need them."""

    def __init__(self, folder: Path, address: str = "127.0.0.1", **env: str) -> None:
        self.log = folder / "s3.log"
        self.endpoint = f"http://{address}:{free_port()}"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("s3_server.py")), "-H", address, "-p",
                 self.endpoint.rpartition(":")[2]],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
                env={**os.environ, **env},
            )  # fmt: skip
        until = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{self.endpoint}/moto-api/", timeout=5).read()
                return
            except (urllib.error.URLError, ConnectionError):
                assert time.monotonic() < until, self.log.read_text()[-2000:]
                time.sleep(0.1)

    def bucket(self, name: str) -> str:
        """A new bucket; the port in its name keeps servers apart in one Spark session."""
        name = f"{name}-{self.endpoint.rpartition(':')[2]}"
        request = urllib.request.Request(f"{self.endpoint}/{name}", method="PUT")
        urllib.request.urlopen(request, timeout=20).read()
        return name

    def url(self, bucket: str, prefix: str) -> str:
        """An address of a home in a bucket."""
        return f"s3://{bucket}/{prefix}?endpoint={self.endpoint}"

    def requests(self, since: int = 0) -> tuple[Counter[str], int]:
        """How many requests of each kind came since a place in the log, and the place now."""
        data = self.log.read_bytes()[since:]
        found = Counter(kind for kind, _ in self.parse(data.decode(errors="replace")))
        return found, since + len(data)

    @staticmethod
    def parse(log: str) -> Iterator[tuple[str, str]]:
        """The kind and the path of each request in a log."""
        for match in _REQUEST.finditer(_COLOURS.sub("", log)):
            method, path = match["method"], match["path"]
            if not path.startswith("/moto-api"):
                listing = method == "GET" and "list-type=2" in path
                yield "LIST" if listing else method, unquote(path)

    def stop(self) -> None:
        """End the server."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
