"""A real Kafka broker on this machine: one KRaft node on loopback, in a folder of its own."""

from __future__ import annotations

import base64
import contextlib
import os
import re
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from headgate.brokers.jars import fetch
from headgate.brokers.kafka_wire import ask_cluster
from headgate.brokers.process import (
    HOST,
    BrokerRecord,
    BrokerState,
    BrokerStatus,
    NotInTimeError,
    Process,
    free_port,
    is_free,
    read_record,
    write_record,
)
from headgate.errors import HeadgateError, RefusedError
from headgate.java import find_java
from headgate.snapshots.files import LocalFiles
from headgate.snapshots.model import now
from headgate.spark_jars import find_spark_jars

RELEASE = "4.3.1"
LOCK = Path(__file__).resolve().parent / "locks" / f"kafka-{RELEASE}.lock"

_LOG_SETTINGS = Path(__file__).resolve().parent.parent / "resources" / "kafka-log4j2.properties"
# Kafka comes without anything that writes its log. Spark's four jars do it, and go before Kafka's
# own slf4j 1.7, for which there is no writer here.
_LOG_JARS = ("slf4j-api", "log4j-slf4j2-impl", "log4j-api", "log4j-core")
_JVM = ("-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-Djava.awt.headless=true",
        "-Dlog4j2.configurationFile=log4j2.properties")  # fmt: skip

_START_SECONDS = 120.0
_STOP_SECONDS = 30.0
_POLL_SECONDS = 0.1

# Paths are relative: the process runs in the broker's folder, and Kafka splits them at commas.
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "log.dirs": "data",
    # A wrong topic name is told, and not made.
    "auto.create.topics.enable": "false",
    # Records with times of long ago stay, as in an embedded topic.
    "log.retention.ms": "-1",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    # By default the cleaner of compacted topics takes a third of this heap.
    "log.cleaner.dedupe.buffer.size": "16777216",
}


class Started(StrEnum):
    """What a start found, and did."""

    NEW = "started"
    AGAIN = "restarted"
    """It had crashed; it goes on with its data."""
    ALREADY = "running"


@dataclass(frozen=True)
class Start:
    """A broker that serves, and how that came about."""

    record: BrokerRecord
    how: Started


class KafkaBroker:
    """A Kafka broker in a folder; its process outlives the one that started it.

    >>> with KafkaBroker(Path("/tmp/kafka")) as broker:  # doctest: +SKIP
    ...     print(broker.servers)
    127.0.0.1:27411
    """

    def __init__(self, folder: Path, *, settings: Mapping[str, str] | None = None) -> None:
        self._files = LocalFiles(folder)
        self._settings = settings
        self._log_began = 0
        self.folder = self._files.root

    @property
    def servers(self) -> str:
        """The address for clients, `host:port`."""
        record = read_record(self._files)
        if record is None:
            raise HeadgateError(f"there is no broker in {self.folder}", remedy="start it first")
        return record.servers

    def __enter__(self) -> KafkaBroker:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *ended: object) -> None:
        self.stop()

    def status(self) -> BrokerStatus:
        """How the broker is at this moment."""
        record = read_record(self._files)
        if record is None:
            return BrokerStatus(BrokerState.ABSENT, self.folder)
        return BrokerStatus(_state(record), self.folder, record)

    def start(
        self, *, port: int | None = None, timeout: float = _START_SECONDS, quiet: bool = False
    ) -> Start:
        """Start the broker, unless it runs, and wait until it serves.

        1. The jars are fetched, if they are not in the cache.
        2. A new folder gets its storage; one that had a broker keeps its data and its port.
        3. The process starts in a session of its own and is written down in `broker.json`.
        4. The broker is asked who is in its cluster until it names itself.
        """
        record = read_record(self._files)
        jars = [] if record and record.alive else fetch(LOCK, quiet=quiet)
        with self._files.locked("broker.lock", timeout=timeout + 2 * _STOP_SECONDS):
            record = read_record(self._files)
            if record is not None and record.alive:
                if port not in (None, record.port):
                    raise RefusedError(
                        f"the broker in {self.folder} runs on port {record.port}",
                        remedy="stop it first, or choose another folder with --dir",
                    )
                self._wait(record, timeout)
                return Start(record, Started.ALREADY)
            crashed = record is not None and record.process is not None
            record = self._launch(record, port, jars or fetch(LOCK, quiet=quiet))
            try:
                self._wait(record, timeout)
            except NotInTimeError:
                raise
            except BaseException:  # it failed, or somebody pressed Ctrl-C: nothing stays behind
                self._end(record, patience=0.0)
                raise
            return Start(record, Started.AGAIN if crashed else Started.NEW)

    def stop(self, *, timeout: float = _STOP_SECONDS) -> bool:
        """End the broker in order; kill it if it does not end. False if none was running."""
        if read_record(self._files) is None:
            return False
        with self._files.locked("broker.lock", timeout=_START_SECONDS + timeout):
            record = read_record(self._files)
            if record is None:
                return False
            was = record.alive
            self._end(record, patience=timeout)
            return was

    def _end(self, record: BrokerRecord, *, patience: float) -> None:
        if record.process is not None:
            record.process.end(patience=patience)
        write_record(self._files, replace(record, process=None))

    def _launch(self, old: BrokerRecord | None, port: int | None, jars: list[Path]) -> BrokerRecord:
        wanted = port or (old.port if old else None)
        if wanted is not None and not is_free(wanted):
            told = "say another --port" if port else "end what listens there, or say --port"
            raise HeadgateError(f"port {wanted} of {HOST} is taken", remedy=told)
        chosen = wanted or free_port()
        settings = dict(old.settings if old and self._settings is None else self._settings or {})
        java = [str(find_java().executable), *_JVM, "-cp", _class_path(jars)]
        cluster_id = self._stored_id()
        self._write_settings(chosen, settings)
        if cluster_id is None:
            cluster_id = _new_id()
            self._format(java, cluster_id)
        log = self.folder / "kafka.log"
        self._log_began = log.stat().st_size if log.exists() else 0
        # What the JVM says beside the log: that it cannot start, or how it died.
        with open(self.folder / "kafka.out", "wb") as out:
            child = subprocess.Popen(
                [*java, "kafka.Kafka", "server.properties"],
                cwd=self.folder, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                start_new_session=True,
            )  # fmt: skip
        process = Process.of(child.pid)
        # Takes its exit code whenever that comes: else it would stay as a zombie of ours.
        threading.Thread(target=child.wait, daemon=True).start()
        record = BrokerRecord(
            "kafka", RELEASE, cluster_id, chosen, str(log), now(), process, settings
        )
        try:
            write_record(self._files, record)
        except BaseException:
            process.end(patience=0.0)  # nobody could find it any more
            raise
        return record

    def _stored_id(self) -> str | None:
        """The cluster's id in the storage itself, which may outlive `broker.json`."""
        text = self._files.read_text("data/meta.properties")
        if text is None:
            return None
        found = re.search(r"^cluster\.id=(\S+)$", text, re.MULTILINE)
        if found is None:
            raise HeadgateError(
                f"{self.folder / 'data'} is not the storage of a Kafka broker",
                remedy="choose another folder with --dir, or move that one away",
            )
        return found.group(1)

    def _write_settings(self, port: int, settings: Mapping[str, str]) -> None:
        controller = free_port(port)
        own = {
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
        }
        lines = [f"{name}={value}\n" for name, value in {**_SETTINGS, **own, **settings}.items()]
        head = "# Written at every start by headgate broker start.\n"
        self._files.write_text("server.properties", head + "".join(lines))
        self._files.write_text("log4j2.properties", _LOG_SETTINGS.read_text(encoding="utf-8"))

    def _format(self, java: list[str], cluster_id: str) -> None:
        """Make new storage aside, so that storage that was cut short does not count."""
        aside = ".format"
        self._files.delete_tree(aside)
        text = (self.folder / "server.properties").read_text(encoding="utf-8")
        text = text.replace("\nlog.dirs=data\n", f"\nlog.dirs={aside}/data\n")
        self._files.write_text(f"{aside}/server.properties", text)
        ran = subprocess.run(
            [*java, "-XX:TieredStopAtLevel=1", "kafka.tools.StorageTool", "format",
             "-t", cluster_id, "-c", f"{aside}/server.properties"],
            cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", check=False,
        )  # fmt: skip
        if ran.returncode != 0:
            lines = (ran.stdout + ran.stderr).strip().splitlines()
            raise HeadgateError(
                f"the broker's storage in {self.folder} could not be made "
                f"({lines[-1] if lines else f'exit code {ran.returncode}'})",
                remedy="check that the disk has room, then try again",
            )
        try:
            os.rename(self.folder / aside / "data", self.folder / "data")
        except OSError as error:
            raise HeadgateError(
                f"{self.folder / 'data'} is in the way and is not the storage of a Kafka broker",
                remedy="choose another folder with --dir, or move that one away",
            ) from error
        shutil.rmtree(self.folder / aside, ignore_errors=True)

    def _wait(self, record: BrokerRecord, timeout: float) -> None:
        until = time.monotonic() + timeout
        while not _serves(record):
            if not record.alive:
                raise HeadgateError(
                    f"the broker ended while it was starting ({self._last_words(record)})",
                    remedy=f"see {record.log}",
                )
            if time.monotonic() > until:
                raise NotInTimeError(
                    f"the broker does not answer at {record.servers} after {timeout:.0f} s",
                    remedy=f"start it once more to wait on, or stop it; its log is {record.log}",
                )
            time.sleep(_POLL_SECONDS)

    def _last_words(self, record: BrokerRecord) -> str:
        """The first error in the log of this start, else what the JVM printed."""
        said = ""
        with contextlib.suppress(OSError), open(record.log, errors="replace") as log:
            log.seek(self._log_began)
            said = log.read()
        lines = said.splitlines()
        for number, line in enumerate(lines):
            words = line.split(maxsplit=2)
            if len(words) == 3 and words[1] in ("ERROR", "FATAL"):
                # the exception is on the line after the message
                cause = lines[number + 1] if number + 1 < len(lines) else ""
                return f"{words[2]} {cause}".strip() if "Exception" in cause else words[2]
        with contextlib.suppress(OSError):
            said = (self.folder / "kafka.out").read_text(errors="replace")
        return next((line.strip() for line in said.splitlines() if line.strip()), "it said nothing")


def _state(record: BrokerRecord) -> BrokerState:
    if record.process is None:
        return BrokerState.STOPPED
    if not record.alive:
        return BrokerState.CRASHED
    if _serves(record):
        return BrokerState.RUNNING
    young = (now() - record.started_at).total_seconds() < _START_SECONDS
    return BrokerState.STARTING if young else BrokerState.UNRESPONSIVE


def _serves(record: BrokerRecord) -> bool:
    """Whether this very broker takes requests: another one may have its port meanwhile."""
    cluster = ask_cluster(HOST, record.port)
    return cluster is not None and cluster.id == record.cluster_id and record.port in cluster.ports


def _class_path(jars: list[Path]) -> str:
    folder = find_spark_jars(honour_spark_home=False).folder
    log_jars = [next(iter(folder.glob(f"{name}-[0-9]*.jar")), None) for name in _LOG_JARS]
    if None in log_jars:
        raise HeadgateError(
            f"{folder} lacks one of {', '.join(_LOG_JARS)}", remedy="install pyspark again"
        )
    return os.pathsep.join(str(jar) for jar in [*log_jars, *jars])


def _new_id() -> str:
    """A cluster's id as Kafka writes it; one that begins with a dash would look like an option."""
    while True:
        made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not made.startswith("-"):
            return made
