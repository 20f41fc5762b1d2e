"""The store job between topics of a Kafka that other machines reach, with its home in S3."""

from __future__ import annotations

import os
import time
from pathlib import Path

from headgate.brokers import KafkaBroker
from headgate.brokers.process import free_port
from headgate.home.layout import Home
from tests.nemesis.jobs import replaced
from tests.reliability.processes import Driver
from tests.reliability.test_driver_kills import STORE


def kafka_at(address: str, folder: Path) -> tuple[KafkaBroker, str]:
    """A broker that serves this machine and those that reach an address, and its servers there."""
    inner, controller = free_port(), free_port()
    here, servers = f"127.0.0.1:{inner}", f"{address}:{free_port()}"
    broker = KafkaBroker(
        folder,
        settings={
            "listeners": f"PLAINTEXT://{here},OTHERS://{servers},"
            f"CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{here},OTHERS://{servers}",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,"
            "OTHERS:PLAINTEXT",
        },
    )
    broker.start(port=inner, quiet=True)
    return broker, servers


def quick_store(folder: Path) -> Path:
    """The store job with a batch every half second."""
    app = folder / "store.py"
    app.write_text(replaced(STORE.read_text(), ('every="5 seconds"', 'every="500 milliseconds"')))
    return app


def wait_until_read(home: str, orders: int, driver: Driver, seconds: float = 180) -> None:
    """Until a checkpoint has taken all orders."""
    until, read = time.monotonic() + seconds, 0
    while read < orders:
        assert driver.process.poll() is None, driver.text()[-3000:]
        assert time.monotonic() < until, f"{read} orders\n{driver.text()[-3000:]}"
        run = Home(home).job("store").current()
        record = run.latest_checkpoint() if run else None
        if record is not None:
            read = sum(int(str(end)) for end in record.sources["orders"].end.values())
        time.sleep(0.3)


def wait_for_freeze(pid: int, driver: Driver, seconds: float = 120) -> None:
    """Until a process has stopped itself (SIGSTOP)."""
    until = time.monotonic() + seconds
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert driver.process.poll() is None, driver.text()[-3000:]
        assert time.monotonic() < until, driver.text()[-3000:]
        time.sleep(0.1)


def members(group: int) -> list[int]:
    """The processes of a group."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if os.getpgid(int(entry.name)) == group:
                    found.append(int(entry.name))
            except ProcessLookupError:
                continue
    return found


def wait_for_a_batch(home: str, driver: Driver, seconds: float = 180) -> str:
    """Until a batch that was not there yet is planned; its entry in Spark's commit log."""
    files, until = Home(home).files, time.monotonic() + seconds
    spark = f"{Home(home).job('store').current().path}/spark"
    planned = set(files.list(f"{spark}/offsets"))
    while not (new := set(files.list(f"{spark}/offsets")) - planned):
        assert driver.process.poll() is None, driver.text()[-3000:]
        assert time.monotonic() < until, driver.text()[-3000:]
    return f"{spark}/commits/{max(new, key=int)}"
