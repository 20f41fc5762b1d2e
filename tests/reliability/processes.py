"""Real processes for crash tests: the command line's driver, and a Spark standalone cluster."""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pyspark

from headgate.brokers.process import free_port
from headgate.jvm.java import find_java
from headgate.jvm.launch import FIRST_COMPILER
from tests.class_archive import java_options
from tests.reliability.topics import INPUTS, OUTPUTS, Topics, topics_of

if TYPE_CHECKING:
    from tests.clusters.hosts import Host, Network


class Driver:
    """One `headgate run` process, or `headgate submit`."""

    def __init__(
        self, app: Path, data: Path | Topics, home: Path | str, *flags: str,
        spark: tuple[str, ...] = (),
        env: dict[str, str] | None = None, job: str = "store",
        names: tuple[str, ...] = (*INPUTS, *OUTPUTS), log: Path | None = None, verb: str = "run",
    ) -> None:  # fmt: skip
        topics = topics_of(data)
        sets = [word for name in names for word in ("--set", f"{name}={topics.address(name)}")]
        self.log = log or Path(home).parent / "driver.log"
        with open(self.log, "a") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "headgate.cli.main", verb, f"{app}:{job}", "--home",
                 str(home), *sets, *flags, *(("--", *spark) if spark else ())],
                stdout=said, stderr=said, stdin=subprocess.DEVNULL,
                env={**os.environ, **(env or {})}, start_new_session=True,
            )  # fmt: skip

    def kill(self) -> None:
        """kill -9 of the driver, wherever it is."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait(self, timeout: float) -> int:
        """The exit code; a driver that hangs is killed with its JVM."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            raise

    def text(self) -> str:
        """What all drivers of this home have said."""
        return self.log.read_text()


class Cluster:
    """A Spark standalone master with workers, from pyspark's own jars, on loopback.

    With a network the master is there, and workers can be on its hosts.
    """

    def __init__(self, folder: Path, workers: int, network: Network | None = None) -> None:
        self._folder = folder
        self._home = Path(pyspark.__file__).parent
        self._processes: list[subprocess.Popen[bytes]] = []
        self._address = network.address if network else "127.0.0.1"
        # of hosts that do not see this disk, none has the archive of classes
        self._java = shlex.join(FIRST_COMPILER) if network else java_options()
        port = free_port()
        self.url = f"spark://{self._address}:{port}"
        self._start("master", "org.apache.spark.deploy.master.Master", "--host", self._address,
                    "--port", str(port), "--webui-port", "0")  # fmt: skip
        self._wait_for("master", "I have been elected leader")
        self._workers = 0
        for _ in range(workers):
            self.add_worker()

    def add_worker(self, *hides: Path, host: Host | None = None, **env: str) -> int:
        """One more worker, on a host or here; its process, which leads those of its executors.

        It and its executors see empty disks of their own at `hides`, and have `env`.
        """
        number, self._workers = self._workers, self._workers + 1
        process = self._start(
            f"worker{number}", "org.apache.spark.deploy.worker.Worker", "--host",
            host.address if host else self._address, "--cores", "1", "--memory", "2g",
            "--webui-port", "0", "--work-dir", str(self._folder / f"work{number}"), self.url,
            hides=hides, host=host, own=env,
        )  # fmt: skip
        self._wait_for(f"worker{number}", "Successfully registered with master")
        return process.pid

    def _start(
        self,
        name: str,
        main: str,
        *arguments: str,
        hides: tuple[Path, ...] = (),
        host: Host | None = None,
        own: dict[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        java = str(Path(find_java().path) / "bin" / "java")
        # without the Scala version executors look for another jars folder and die at once
        env = {**os.environ, "SPARK_SCALA_VERSION": "2.13", "SPARK_HOME": str(self._home),
               "SPARK_LOCAL_IP": host.address if host else self._address,
               "JAVA_HOME": str(find_java().path), **(own or {})}  # fmt: skip
        command = [java, "-Xmx512m", *shlex.split(self._java),
                   "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
                   "--add-opens=java.base/java.nio=ALL-UNNAMED",
                   "--add-opens=java.base/java.lang=ALL-UNNAMED",
                   "--add-opens=java.base/java.util=ALL-UNNAMED",
                   "-cp", self._class_path(), main, *arguments]  # fmt: skip
        if hides:
            own = "".join(f"mount -t tmpfs tmpfs {shlex.quote(str(at))} && " for at in hides)
            command = ["unshare", "--mount", "sh", "-c", f'{own} exec "$0" "$@"', *command]
        if host:
            command = host.command(command)
        with open(self._folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env=env, start_new_session=True
            )
        self._processes.append(process)
        return process

    def _class_path(self) -> str:
        """As drivers have it: with another order the archive of classes is left out."""
        jars = self._home / "jars"
        (first,) = jars.glob("slf4j-api-*.jar")
        return os.pathsep.join(map(str, (self._home / "conf", first, jars / "*")))

    def _wait_for(self, name: str, text: str, seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        log = self._folder / f"{name}.log"
        while text not in log.read_text(errors="replace"):
            if time.monotonic() > until:
                raise TimeoutError(
                    f"{name} did not start:\n{log.read_text(errors='replace')[-2000:]}"
                )
            time.sleep(0.2)

    def executors(self) -> list[int]:
        """The processes of the cluster's executors."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                    folder = os.readlink(entry / "cwd")
                except OSError:
                    continue
                executor = b"org.apache.spark.executor.CoarseGrainedExecutorBackend" in words
                if executor and folder.startswith(str(self._folder)):
                    found.append(int(entry.name))
        return found

    def flags(self, fail_every: int) -> tuple[str, ...]:
        """Spark's options for a driver of this cluster, some of whose tasks fail after a commit."""
        java = f"-XX:+UseParallelGC {self._java}"
        return ("--master", self.url, "--conf", "spark.executor.memory=1g",
                "--conf", f"spark.driver.host={self._address}", "--conf", "spark.driver.memory=1g",
                "--conf", f"spark.executor.extraJavaOptions={java}",
                "--conf", f"spark.headgate.test.fail.after.state.commit={fail_every}")  # fmt: skip

    def kill_executors(
        self,
        driver: Driver,
        kills: int,
        *,
        pause: tuple[float, float],
        ready: Callable[[int], bool],
    ) -> None:
        """kill -9 of one after the other, each when the job is `ready` after so many."""
        pick, until, done = random.Random(6), time.monotonic() + 240, 0
        while done < kills and time.monotonic() < until:
            time.sleep(pick.uniform(*pause))
            assert driver.process.poll() is None, driver.text()[-3000:]
            executors = self.executors()
            if executors and ready(done):
                os.kill(pick.choice(executors), signal.SIGKILL)
                done += 1
        assert done == kills

    def stop(self) -> None:
        """End every process of the cluster."""
        for process in reversed(self._processes):
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        for pid in self.executors():
            os.kill(pid, signal.SIGKILL)
