"""A real Pulsar broker on this machine: standalone on loopback, in a folder of its own."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headgate.base.errors import HeadgateError
from headgate.brokers.base import LOCKS, RESOURCES, LocalBroker
from headgate.brokers.process import HOST, BrokerRecord
from headgate.connectors.pulsar.admin import PulsarAdmin
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.names import web_address
from headgate.home.files import read_json, write_json
from headgate.home.versions import check_version

RELEASE = "4.2.4"
LOCK = LOCKS / f"pulsar-{RELEASE}.lock"

_STORAGE = "data/storage.json"
_ANSWER_SECONDS = 5.0
_OPENED = (
    "java.base/java.io", "java.base/java.util.zip", "java.base/java.nio", "java.base/java.lang",
    "java.base/jdk.internal.misc", "java.base/jdk.internal.platform", "java.base/sun.net",
    "java.management/sun.management", "jdk.management/com.sun.management.internal",
)  # fmt: skip
# Without the second compiler a start takes half the CPU time, and even a million messages later
# the broker has used less of it.
_JVM = (
    "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC",
    "-Xms128m", "-Xmx512m", "-XX:MaxDirectMemorySize=512m",
    "-Djava.awt.headless=true", "-Dlog4j2.configurationFile=log4j2.properties",
    "-Dio.netty.tryReflectionSetAccessible=true",
    *(f"--add-opens={name}=ALL-UNNAMED" for name in _OPENED),
)  # fmt: skip

_SETTINGS = {
    "bindAddress": HOST,
    "advertisedAddress": HOST,
    "allowLoopback": "true",
    # else the bookie takes any port, and not the one that it is given
    "allowEphemeralPorts": "true",
    # A wrong topic name is an error, not a new topic.
    "allowAutoTopicCreation": "false",
    # Messages stay, whether somebody has read them or not, as in an embedded topic.
    "defaultRetentionTimeInMinutes": "-1",
    "defaultRetentionSizeInMB": "-1",
    "ttlDurationDefaultInSeconds": "0",
    "backlogQuotaDefaultLimitBytes": "-1",
    "brokerDeduplicationEnabled": "true",
    "acknowledgmentAtBatchIndexLevelEnabled": "true",
    "transactionCoordinatorEnabled": "true",
    "systemTopicEnabled": "true",
    "topicLevelPoliciesEnabled": "true",
    "managedLedgerDefaultEnsembleSize": "1",
    "managedLedgerDefaultWriteQuorum": "1",
    "managedLedgerDefaultAckQuorum": "1",
    # What is acknowledged is in the journal, and outlives a kill; the disk is not waited for.
    "journalWriteData": "true",
    "journalSyncData": "false",
    # A disk that others have almost filled is no reason to refuse to write.
    "diskUsageThreshold": "0.999",
    "diskUsageWarnThreshold": "0.99",
    "loadBalancerEnabled": "false",
}


class PulsarBroker(LocalBroker):
    """A Pulsar broker in a folder; its process outlives the one that started it.

    `settings` are more lines of its `standalone.conf`.

    >>> with PulsarBroker(Path("/tmp/pulsar")) as broker:  # doctest: +SKIP
    ...     print(broker.servers, broker.web)
    pulsar://127.0.0.1:27411 http://127.0.0.1:28841
    """

    kind = "pulsar"
    release = RELEASE
    lock = LOCK
    harmless = ("this is okay", "/ledgers already exists")

    @property
    def web(self) -> str:
        """The address of its REST interface."""
        return str(self._record().web)

    def _ports(self, port: int) -> dict[str, int]:
        return {"web": int(web_address(f"pulsar://{HOST}:{port}").rpartition(":")[2])}

    def _others(self) -> dict[str, int | None]:
        # What the bookie stores belongs to its address, and so to the port it had first.
        stored = self._stored()
        return {"bookie": int(stored["bookie"]) if stored else None}

    def _prepare(
        self, jars: list[Path], ports: Mapping[str, int], settings: Mapping[str, str]
    ) -> tuple[str, list[str]]:
        stored = self._stored()
        if stored is None:
            self._files.delete_tree("data")
            name = f"standalone-{uuid.uuid4().hex[:12]}"
            stored = {"version": 1, "cluster": name, "bookie": ports["bookie"]}
            write_json(self._files, _STORAGE, stored)
        own = {
            "clusterName": stored["cluster"],
            "listeningInterface": _loopback(),
            "brokerServicePort": str(ports[""]),
            "webServicePort": str(ports["web"]),
        }
        lines = [f"{name}={value}\n" for name, value in {**_SETTINGS, **own, **settings}.items()]
        head = "# Written at every start by headgate broker start.\n"
        self._files.write_text("standalone.conf", head + "".join(lines))
        log_settings = (RESOURCES / "pulsar-log4j2.properties").read_text(encoding="utf-8")
        self._files.write_text("log4j2.properties", log_settings)
        return stored["cluster"], [
            *_JVM, "-cp", os.pathsep.join(str(jar) for jar in jars),
            "org.apache.pulsar.PulsarStandaloneStarter", "--config", "standalone.conf",
            # as a folder it would become absolute, and a URI, which cannot have spaces
            "--metadata-url", "rocksdb:data/metadata", "--bookkeeper-dir", "data/bookkeeper",
            "--bookkeeper-port", str(ports["bookie"]), "--num-bookies", "1",
            "--no-functions-worker", "--no-stream-storage", "--advertised-address", HOST,
        ]  # fmt: skip

    def _stored(self) -> dict[str, Any] | None:
        """What the storage says about itself; it may outlive `broker.json`."""
        found = read_json(self._files, _STORAGE)
        if found is None and (self.folder / "data").exists():
            raise HeadgateError(
                f"{self.folder / 'data'} is in the way and is not the storage of a Pulsar broker",
                code="LOCAL_BROKER",
                remedy="choose another folder with --dir, or move that one away",
            )
        if found is not None:
            check_version(found, _STORAGE)
        # A bookie that was killed before it had written this cannot start again, nor had a message.
        return found if (self.folder / "data/bookkeeper/current/VERSION").exists() else None

    def _serves(self, record: BrokerRecord) -> bool:
        # Where clients need tokens, the broker has one of its own to talk to itself.
        given = record.settings.get("brokerClientAuthenticationParameters", "")
        options = {"token": given.removeprefix("token:")} if given.startswith("token:") else {}
        admin = PulsarAdmin(PulsarAccess(record.servers, options), timeout=_ANSWER_SECONDS)
        try:
            # In the order in which a first start makes them: whoever asks too early makes the
            # broker write errors into its log.
            return (
                record.cluster_id in admin.clusters()
                and "public" in admin.tenants()
                and "public/default" in admin.namespaces("public")
            )
        except HeadgateError:
            return False


def _loopback() -> str:
    """What this system calls the interface without which a bookie would listen on all of them."""
    names = [name for _, name in socket.if_nameindex()]
    return next((name for name in names if name.startswith("lo")), "lo")
