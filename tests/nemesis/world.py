"""What a round runs in: a broker behind a proxy, a home, and a job that is kept up."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol

from headgate.base.errors import HeadgateError
from headgate.brokers import KafkaBroker, PulsarBroker
from headgate.brokers.process import HOST, free_port
from headgate.connectors.pulsar.names import web_address
from headgate.home.layout import Home
from tests.nemesis.proxy import Proxy
from tests.reliability.processes import Cluster, Driver
from tests.reliability.topics import KafkaTopics, LogTopics, PulsarTopics, Topics

_PATIENCE = 240.0
"""Seconds after which a job that does nothing is stuck."""


class System(Protocol):
    """Where topics are, and what can be broken there."""

    name: str
    proxies: list[Proxy]
    broker: KafkaBroker | PulsarBroker | None

    def topics(self, prefix: str) -> tuple[Topics, Topics]:
        """For the tests, straight; and for the job, through the proxy."""


class Logs:
    """Embedded topics: there is no broker."""

    name = "log"
    broker: KafkaBroker | PulsarBroker | None = None

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.proxies: list[Proxy] = []

    def __enter__(self) -> Logs:
        return self

    def __exit__(self, *ended: object) -> None: ...

    def topics(self, prefix: str) -> tuple[Topics, Topics]:
        made = LogTopics(self.folder / f"topics-{prefix}")
        return made, made


class ProxiedKafka:
    """A broker with a listener that names the proxy's address to whoever comes through it."""

    name = "kafka"

    def __init__(self, folder: Path, **settings: str) -> None:
        inner, outer, controller = free_port(), free_port(), free_port()
        self.proxy = Proxy(outer, kafka=True)
        self.proxies = [self.proxy]
        self.direct = f"{HOST}:{inner}"
        self.broker: KafkaBroker | PulsarBroker | None = KafkaBroker(folder, settings={
            "listeners": f"PLAINTEXT://{self.direct},CONTROLLER://{HOST}:{controller},"
            f"PROXIED://{HOST}:{outer}",
            "advertised.listeners": f"PLAINTEXT://{self.direct},PROXIED://{HOST}:{self.proxy.port}",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
            "listener.security.protocol.map":
                "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,PROXIED:PLAINTEXT",
            **{name.replace("_", "."): value for name, value in settings.items()},
        })  # fmt: skip
        self._inner = inner

    def __enter__(self) -> ProxiedKafka:
        assert self.broker is not None
        self.broker.start(port=self._inner, quiet=True)
        self.proxy.__enter__()
        return self

    def __exit__(self, *ended: object) -> None:
        self.proxy.__exit__()
        assert self.broker is not None
        self.broker.stop()

    def topics(self, prefix: str) -> tuple[Topics, Topics]:
        through = f"{HOST}:{self.proxy.port}"
        return KafkaTopics(self.direct, prefix), KafkaTopics(through, prefix)


class ProxiedPulsar:
    """A broker with a second address, which it names to whoever came to it."""

    name = "pulsar"

    def __init__(self, folder: Path) -> None:
        def web(port: int) -> dict[str, int]:
            return {"web": int(web_address(f"pulsar://{HOST}:{port}").rpartition(":")[2])}

        inner, outer, shown = free_port(together=web), free_port(), free_port(together=web)
        self.direct, self.through = f"pulsar://{HOST}:{inner}", f"pulsar://{HOST}:{shown}"
        self.proxies = [
            Proxy(outer, port=shown),
            Proxy(web(inner)["web"], port=web(shown)["web"]),
        ]
        self.broker: KafkaBroker | PulsarBroker | None = PulsarBroker(folder, settings={
            "bindAddresses": f"proxied:pulsar://{HOST}:{outer}",
            "advertisedListeners": f"internal:{self.direct},proxied:{self.through}",
            "internalListenerName": "internal",
        })  # fmt: skip
        self._inner = inner

    def __enter__(self) -> ProxiedPulsar:
        assert self.broker is not None
        self.broker.start(port=self._inner, quiet=True)
        for proxy in self.proxies:
            proxy.__enter__()
        return self

    def __exit__(self, *ended: object) -> None:
        for proxy in self.proxies:
            proxy.__exit__()
        assert self.broker is not None
        self.broker.stop()

    def topics(self, prefix: str) -> tuple[Topics, Topics]:
        return PulsarTopics(self.direct, prefix), PulsarTopics(self.through, prefix)


class Disk(Protocol):
    """A file system whose power can be cut."""

    path: Path

    def cut(self, processes: Iterable[int]) -> Path: ...


Start = Callable[..., Driver]
"""Starts a driver with Spark's options, as `spark=`, and the command's own."""


class World:
    """A job that runs, and is started again whenever it ends, until the world ends."""

    def __init__(
        self, system: System, folder: Path, home: Path, job: str, start: Start
    ) -> None:  # fmt: skip
        self.system, self.folder, self.home, self.job = system, folder, home, job
        self.start = start
        self.disk: Disk | None = None
        self.cluster: Cluster | None = None
        self.conf: dict[str, str] = {}
        self.feeding = threading.Lock()
        """Held while somebody writes to the broker, and while the broker is down."""
        self.exits: list[int] = []
        self._known = 0
        self.driver: Driver | None = None
        self.keeping = threading.RLock()
        """Held by a fault that wants the job down for a while."""
        self._ends = threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)

    def __enter__(self) -> World:
        self._keeper.start()
        return self

    def __exit__(self, *ended: object) -> None:
        """Stop keeping the job up, and leave nothing of it."""
        self._ends.set()
        self._keeper.join()
        if self.driver is not None:
            self.wake()
            self.kill_all()

    # the job

    def checkpoints(self) -> int:
        """How many checkpoints the job has; as many as before while nobody can read them."""
        # a home may be away, full or half put back at this moment
        with contextlib.suppress(OSError, HeadgateError):
            runs = Home(str(self.home)).job(self.job).runs() if self.home.exists() else []
            self._known = sum(len(run.checkpoint_ids()) for run in runs)
        return self._known

    def works(self, seconds: float, more: int = 1) -> bool:
        """Wait for checkpoints; False if there are none in time."""
        before, until = self.checkpoints(), time.monotonic() + seconds
        while self.checkpoints() < before + more:
            if time.monotonic() > until:
                return False
            time.sleep(0.1)
        return True

    def begin(self) -> Driver:
        """Start the job as a user does: plainly."""
        conf = {**self.conf}
        spark: tuple[str, ...] = ()
        if self.cluster is not None:
            spark = ("--master", self.cluster.url)
            conf |= {"spark.executor.memory": "1g", "spark.driver.host": HOST}
        spark += tuple(w for k, v in conf.items() for w in ("--conf", f"{k}={v}"))
        self.driver = self.start(spark=spark)
        return self.driver

    def _keep(self) -> None:
        while not self._ends.wait(0.1):
            with self.keeping:
                driver = self.driver
                if driver is not None and driver.process.poll() is None:
                    continue
                if driver is not None:
                    self.exits.append(driver.process.returncode)
                    self.kill_all()
                    if driver.process.returncode > 0:  # it said no, or gave up: not at once again
                        self._ends.wait(1.0)
                self.begin()

    @contextlib.contextmanager
    def down(self) -> Iterator[None]:
        """Have the job killed and not started again for a while."""
        with self.keeping:
            self.kill_all()
            # executors outlive their driver for a moment, and would write into a home that is moved
            for pid in self.cluster.executors() if self.cluster else ():
                send(pid, signal.SIGKILL)
            yield

    def kill_all(self) -> None:
        """kill -9 of the driver with all that belongs to it."""
        if self.driver is None:
            return
        for pid in [self.driver.process.pid, *descendants(self.driver.process.pid)]:
            send(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.driver.process.pid, signal.SIGKILL)
        self.driver.process.wait()

    def wake(self) -> None:
        """Let go on whatever was stopped."""
        if self.driver is not None:
            for pid in [self.driver.process.pid, *descendants(self.driver.process.pid)]:
                send(pid, signal.SIGCONT)

    # its processes

    def pids(self, what: str) -> list[int]:
        """Of the driver, its JVM, executors or Python workers that are there at this moment."""
        driver = self.driver
        if driver is None or driver.process.poll() is not None:
            return []
        if what == "driver":
            return [driver.process.pid]
        if what == "executor":
            return self.cluster.executors() if self.cluster else []
        below = descendants(driver.process.pid)
        if what == "jvm":
            return [pid for pid in below if _command(pid)[:1] == ["java"]][:1]
        assert what == "worker"
        daemons = [pid for pid in below if "pyspark.daemon" in _command(pid)]
        return [pid for daemon in daemons for pid in children(daemon)]

    def broker_pid(self) -> int:
        assert self.system.broker is not None
        record = self.system.broker.status().record
        assert record is not None and record.process is not None
        return record.process.pid


def send(pid: int, number: signal.Signals) -> bool:
    """Whether there was somebody to send it to."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    return True


def children(pid: int) -> list[int]:
    try:
        return [int(word) for task in Path(f"/proc/{pid}/task").iterdir()
                for word in (task / "children").read_text().split()]  # fmt: skip
    except OSError:
        return []


def descendants(pid: int) -> list[int]:
    """Children first, then theirs."""
    found = children(pid)
    return found + [below for child in found for below in descendants(child)]


def _command(pid: int) -> list[str]:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []
    return [Path(words[0]).name, *words[1:]]


def wait_for(process_ends: Driver, seconds: float = _PATIENCE) -> int | None:
    """The exit code; None if it does not end, and then it is killed."""
    try:
        return process_ends.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
