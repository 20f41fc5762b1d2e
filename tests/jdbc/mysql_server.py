"""Real servers of MariaDB and MySQL, without Docker: the machine's, or those of a jar."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pymysql

from headgate.base.locks import file_lock
from headgate.brokers.process import free_port
from headgate.jvm.jars import fetch

_BUILT = Path(__file__).parents[2] / "build" / "tests" / "servers"
_WAIT_SECONDS = 60
_SETTINGS = (
    "--bind-address=127.0.0.1", "--skip-name-resolve", "--max-connections=60", "--skip-log-bin",
    "--innodb-use-native-aio=0", "--innodb-log-file-size=8M", "--innodb-buffer-pool-size=64M",
    # what is committed outlives kill -9, but not a loss of power
    "--innodb-flush-log-at-trx-commit=2", "--innodb-doublewrite=0", "--performance-schema=OFF",
)  # fmt: skip


@dataclass(frozen=True)
class Programs:
    """A server's program, its folder with texts of errors, and what else it needs to start."""

    server: Path
    base: Path
    settings: tuple[str, ...] = ()
    libraries: str = ""

    @property
    def env(self) -> dict[str, str]:
        return (
            {**os.environ, "LD_LIBRARY_PATH": self.libraries} if self.libraries else {**os.environ}
        )

    @property
    def command(self) -> list[str]:
        user = ("--user=root",) if os.geteuid() == 0 else ()
        return [str(self.server), "--no-defaults", f"--basedir={self.base}", *_SETTINGS,
                *self.settings, *user]  # fmt: skip


def mariadb() -> Programs:
    """The machine's MariaDB, or one for Linux."""
    path = os.environ.get("PATH", "") + os.pathsep + "/usr/sbin"
    found = shutil.which("mariadbd", path=path)
    if found and shutil.which("mariadb-install-db", path=path):
        return Programs(Path(found), Path("/usr"))
    base = _unpacked("mariadb", Path(__file__).with_name("mariadb.lock"))
    return Programs(base / "bin" / "mariadbd", base, (f"--lc-messages-dir={base / 'share'}",))


def mysql() -> Programs:
    """MySQL for Linux."""
    base = _unpacked("mysql", Path(__file__).with_name("mysql.lock"))
    settings = (f"--lc-messages-dir={base / 'share'}", "--mysqlx=OFF")
    return Programs(base / "bin" / "mysqld", base, settings, str(base / "libs"))


def _unpacked(name: str, lock: Path) -> Path:
    """The folder of a server from jars, unpacked once."""
    folder = _BUILT / name
    _BUILT.mkdir(parents=True, exist_ok=True)
    with file_lock(_BUILT / f"{name}.lock", timeout=600):
        if not folder.exists():
            aside = folder.with_suffix(".new")
            shutil.rmtree(aside, ignore_errors=True)
            for jar in fetch(lock):
                _unpack(jar, aside, libraries=name == "mysql")
            aside.rename(folder)
    return folder


def _unpack(jar: Path, folder: Path, *, libraries: bool) -> None:
    """What is in "linux/" of a jar, or in its archive for Linux."""
    with zipfile.ZipFile(jar) as files:
        for entry in files.namelist():
            if entry == "mysql-Linux-amd64.tar.gz":
                with files.open(entry) as packed, tarfile.open(fileobj=packed, mode="r|gz") as tar:
                    tar.extractall(folder, filter="tar")
            inside = entry.partition("/linux/")[2]
            wanted = (
                "libaio" in inside
                if libraries
                else inside.startswith(("bin/", "share/", "scripts/"))
            )
            if inside and wanted and not entry.endswith("/"):
                to = folder / inside
                to.parent.mkdir(parents=True, exist_ok=True)
                with files.open(entry) as packed, to.open("wb") as out:
                    shutil.copyfileobj(packed, out)
                to.chmod(0o755)


class MySqlServer:
    """A server in a folder of its own, on loopback, with an empty database, until it is closed."""

    user = "headgate"
    password = "let me in, please"
    database = "shop"
    in_transaction = "SELECT 1 FROM information_schema.innodb_trx"

    def __init__(self, product: str = "mariadb") -> None:
        self.product = product
        self._programs = mariadb() if product == "mariadb" else mysql()
        self.folder = Path(tempfile.mkdtemp(prefix=f"headgate-{product}-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        try:
            shutil.copytree(self._template(), self.folder / "data")
            self.start()
            self._grant()
        except BaseException:
            self.close()
            raise

    @property
    def url(self) -> str:
        return f"jdbc:{self.product}://127.0.0.1:{self.port}/{self.database}"

    @property
    def login(self) -> dict[str, str]:
        # MySQL sends passwords in the clear to nobody who has not its key
        key = {"allowPublicKeyRetrieval": "true"} if self.product == "mysql" else {}
        return {"user": self.user, "password": self.password, **key}

    def sql(self, *statements: str) -> None:
        """Run statements, each in a transaction of its own; raises if one fails."""
        with self._connected() as connection, connection.cursor() as cursor:
            for statement in ";".join(statements).split(";"):
                if statement.strip():
                    cursor.execute(statement)

    def rows(self, query: str) -> list[tuple[str | None, ...]]:
        """The rows of a query, values as text."""
        with self._connected() as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return [tuple(None if v is None else str(v) for v in row) for row in cursor.fetchall()]

    def records(self, table: str, order: Sequence[str] = ()) -> list[dict[str, Any]]:
        """The rows of a table by the names of its columns."""
        by = f" ORDER BY {', '.join(order)}" if order else ""
        with self._connected() as connection:
            with connection.cursor(pymysql.cursors.DictCursor) as cursor:
                cursor.execute(f"SELECT * FROM {table}{by}")
                return list(cursor.fetchall())

    def start(self) -> None:
        """Start the server, also after `kill`, and wait until it answers."""
        with open(self.folder / "server.log", "ab") as log:
            self._process = subprocess.Popen(
                [*self._programs.command, f"--datadir={self.folder / 'data'}",
                 f"--port={self.port}", f"--socket={self.folder / 's'}",
                 f"--pid-file={self.folder / 'pid'}"],
                env=self._programs.env, cwd="/", stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                start_new_session=True,
            )  # fmt: skip
        until = time.monotonic() + _WAIT_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > until:
                said = (self.folder / "server.log").read_text(errors="replace")[-2000:]
                raise RuntimeError(f"the server did not start: {said}")
            time.sleep(0.05)

    def kill(self) -> None:
        """kill -9."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """End the server and delete its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _connected(self) -> pymysql.Connection:
        return pymysql.connect(
            unix_socket=str(self.folder / "s"), user="root", database=self.database,
            autocommit=True,
            init_command="SET time_zone = '+00:00', sql_mode = 'ANSI_QUOTES,STRICT_ALL_TABLES'",
        )  # fmt: skip

    def _answers(self) -> bool:
        with suppress(pymysql.OperationalError):
            pymysql.connect(unix_socket=str(self.folder / "s"), user="root").close()
            return True
        return False

    def _grant(self) -> None:
        made = "CHARACTER SET utf8mb4 COLLATE utf8mb4_bin"
        with pymysql.connect(unix_socket=str(self.folder / "s"), user="root") as connection:
            with connection.cursor() as cursor:
                cursor.execute(f"CREATE USER '{self.user}'@'%' IDENTIFIED BY '{self.password}'")
                for database in (self.database, "page"):
                    cursor.execute(f"CREATE DATABASE {database} {made}")
                    cursor.execute(f"GRANT ALL ON {database}.* TO '{self.user}'@'%'")

    def _template(self) -> Path:
        """A folder of data without anything in it, made once: that takes seconds."""
        folder = _BUILT / f"{self.product}-data"
        _BUILT.mkdir(parents=True, exist_ok=True)
        with file_lock(_BUILT / f"{self.product}-data.lock", timeout=600):
            if not folder.exists():
                aside = folder.with_suffix(".new")
                shutil.rmtree(aside, ignore_errors=True)
                self._initialize(aside)
                aside.rename(folder)
        return folder

    def _initialize(self, data: Path) -> None:
        programs = self._programs
        if self.product == "mysql":
            command = [*programs.command, "--initialize-insecure", f"--datadir={data}"]
        else:
            script = programs.base / "scripts" / "mariadb-install-db"
            command = [
                str(script) if script.exists() else "mariadb-install-db", *programs.command[1:],
                "--auth-root-authentication-method=normal", "--force", f"--datadir={data}",
            ]  # fmt: skip
        ran = subprocess.run(
            command, env=programs.env, cwd="/", capture_output=True, text=True, check=False
        )
        if ran.returncode != 0:
            raise RuntimeError(f"{command[0]} failed: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
