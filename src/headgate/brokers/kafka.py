"""A real Kafka broker on this machine: one KRaft node on loopback, in a folder of its own."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from headgate.base.errors import HeadgateError
from headgate.brokers.base import LOCKS, RESOURCES, LocalBroker
from headgate.brokers.kafka_cluster import describe_cluster
from headgate.brokers.process import HOST, BrokerRecord
from headgate.connectors.extras import need_extra
from headgate.jvm.java import find_java
from headgate.jvm.spark_jars import find_spark_jars

RELEASE = "4.3.1"
LOCK = LOCKS / f"kafka-{RELEASE}.lock"

# Kafka comes without anything that writes its log. Spark's four jars do it, and go before Kafka's
# own slf4j 1.7, for which there is no writer here.
_LOG_JARS = ("slf4j-api", "log4j-slf4j2-impl", "log4j-api", "log4j-core")
# Without the second compiler a start takes 2.6 s of CPU time instead of 4.5, and half a million
# records later the broker has still used less of it.
_JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms128m", "-Xmx384m",
        "-Djava.awt.headless=true", "-Dlog4j2.configurationFile=log4j2.properties")  # fmt: skip

# Paths are relative: the process runs in the broker's folder, and Kafka splits them at commas.
_SETTINGS = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "log.dirs": "data",
    # A wrong topic name is an error, not a new topic.
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


class KafkaBroker(LocalBroker):
    """A Kafka broker in a folder; its process outlives the one that started it.

    >>> with KafkaBroker(Path("/tmp/kafka")) as broker:  # doctest: +SKIP
    ...     print(broker.servers)
    127.0.0.1:27411
    """

    kind = "kafka"
    release = RELEASE
    lock = LOCK

    def _need(self) -> None:
        need_extra("kafka", "a Kafka broker on this machine")

    def _others(self) -> dict[str, int | None]:
        return {"controller": None}

    def _prepare(
        self, jars: list[Path], ports: Mapping[str, int], settings: Mapping[str, str]
    ) -> tuple[str, list[str]]:
        java = [*_JVM, "-cp", _class_path(jars)]
        cluster_id = self._stored_id()
        self._write_settings(ports[""], ports["controller"], settings)
        if cluster_id is None:
            cluster_id = _new_id()
            self._format(java, cluster_id)
        return cluster_id, [*java, "kafka.Kafka", "server.properties"]

    def _serves(self, record: BrokerRecord) -> bool:
        found = describe_cluster(record.servers)
        return found is not None and found.id == record.cluster_id and record.port in found.ports

    def _stored_id(self) -> str | None:
        """The cluster's id in the storage itself, which may outlive `broker.json`."""
        text = self._files.read_text("data/meta.properties")
        if text is None:
            return None
        found = re.search(r"^cluster\.id=(\S+)$", text, re.MULTILINE)
        if found is None:
            raise HeadgateError(
                f"{self.folder / 'data'} is not the storage of a Kafka broker",
                code="LOCAL_BROKER",
                remedy="choose another folder with --dir, or move that one away",
            )
        return found.group(1)

    def _write_settings(self, port: int, controller: int, settings: Mapping[str, str]) -> None:
        own = {
            "listeners": f"PLAINTEXT://{HOST}:{port},CONTROLLER://{HOST}:{controller}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{port}",
            "controller.quorum.voters": f"1@{HOST}:{controller}",
        }
        lines = [f"{name}={value}\n" for name, value in {**_SETTINGS, **own, **settings}.items()]
        head = "# Written at every start by headgate broker start.\n"
        self._files.write_text("server.properties", head + "".join(lines))
        log_settings = (RESOURCES / "kafka-log4j2.properties").read_text(encoding="utf-8")
        self._files.write_text("log4j2.properties", log_settings)

    def _format(self, java: list[str], cluster_id: str) -> None:
        """Make new storage aside, so that storage that was cut short does not count."""
        aside = ".format"
        self._files.delete_tree(aside)
        text = (self.folder / "server.properties").read_text(encoding="utf-8")
        text = text.replace("\nlog.dirs=data\n", f"\nlog.dirs={aside}/data\n")
        self._files.write_text(f"{aside}/server.properties", text)
        program = str(find_java().executable)
        ran = subprocess.run(
            [program, *java, "kafka.tools.StorageTool", "format",
             "-t", cluster_id, "-c", f"{aside}/server.properties"],
            cwd=self.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
            errors="replace", check=False,
        )  # fmt: skip
        if ran.returncode != 0:
            # Of a Java stack trace the last cause says what is wrong, its frames do not.
            said = (ran.stdout + ran.stderr).splitlines()
            lines = [line for line in said if not re.match(r"\s*(at |\.\.\. |$)", line)]
            raise HeadgateError(
                f"the broker's storage in {self.folder} could not be created "
                f"({lines[-1] if lines else f'exit code {ran.returncode}'})",
                code="LOCAL_BROKER",
                remedy="check that the disk has room, then try again",
            )
        try:
            os.rename(self.folder / aside / "data", self.folder / "data")
        except OSError as error:
            raise HeadgateError(
                f"{self.folder / 'data'} is in the way and is not the storage of a Kafka broker",
                code="LOCAL_BROKER",
                remedy="choose another folder with --dir, or move that one away",
            ) from error
        shutil.rmtree(self.folder / aside, ignore_errors=True)


def _class_path(jars: list[Path]) -> str:
    folder = find_spark_jars(honour_spark_home=False).folder
    log_jars = [next(iter(folder.glob(f"{name}-[0-9]*.jar")), None) for name in _LOG_JARS]
    if None in log_jars:
        raise HeadgateError(
            f"{folder} lacks one of {', '.join(_LOG_JARS)}",
            code="INSTALLATION",
            remedy="install pyspark again",
        )
    return os.pathsep.join(str(jar) for jar in [*log_jars, *jars])


def _new_id() -> str:
    """A cluster's id as Kafka writes it; one that begins with a dash would look like an option."""
    while True:
        made = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not made.startswith("-"):
            return made
