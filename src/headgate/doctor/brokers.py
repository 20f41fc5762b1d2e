"""The doctor's look at brokers: do those that the home's jobs use answer?"""

from __future__ import annotations

import socket
from collections.abc import Iterator

from headgate.base.errors import HeadgateError
from headgate.brokers.kafka_cluster import describe_cluster
from headgate.brokers.kafka_features import TRANSACTION_VERSION, read_features
from headgate.connectors.extras import has_extra
from headgate.connectors.pulsar.admin import PulsarAdmin, PulsarAdminError
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.doctor.check import Check
from headgate.home.layout import Home

_PATIENCE = 5.0


def broker_checks(home: str) -> Iterator[Check]:
    """One check for each group of servers that a job of the home names."""
    for servers, jobs in sorted(_servers(home).items()):
        used = ", ".join(sorted(jobs))
        if servers.startswith("kafka://"):
            yield _kafka(servers.removeprefix("kafka://"), used)
        else:
            yield _pulsar(servers, used)


def _servers(home: str) -> dict[str, set[str]]:
    """The servers that jobs' newest graphs have, with the names of those jobs."""
    found: dict[str, set[str]] = {}
    for job in Home(home).jobs():
        try:
            run = job.current()
            steps = run.graph()["steps"] if run else []
        except HeadgateError:
            continue  # a damaged job is for `headgate show` to tell
        for step in steps:
            address = str(step["address"])
            scheme, _, rest = address.partition("://")
            if scheme in ("kafka", "pulsar", "pulsar+ssl"):
                servers = f"{scheme}://{rest.partition('/')[0].rpartition('@')[2]}"
                found.setdefault(servers, set()).add(job.name)
    return found


def _kafka(servers: str, jobs: str) -> Check:
    name = f"kafka {servers}"
    for server in servers.split(","):
        host, _, port = server.rpartition(":")
        client = has_extra("kafka")
        if client and (cluster := describe_cluster(server, timeout=_PATIENCE)):
            version = _transaction_version(host, int(port))
            return Check(name, True, f"cluster {cluster.id} answers{version} (used by {jobs})")
        if _connects(host, int(port)):
            if not client:
                return Check(
                    name, True, f"{server} takes connections (used by {jobs})",
                    "to see more, and for `headgate topic`: pip install 'headgate[kafka]'",
                )  # fmt: skip
            return Check(
                name, True, f"{server} takes connections, but no plain requests (used by {jobs})",
                "if it is secured that is right: headgate check APP --live asks with the job's "
                "credentials",
            )  # fmt: skip
    return Check(
        name, False, f"nobody answers (used by {jobs})",
        "see that the broker runs; headgate broker status kafka, for one of this machine",
    )  # fmt: skip


def _transaction_version(host: str, port: int) -> str:
    features = read_features(host, port, timeout=_PATIENCE)
    if features is None:
        return ""
    return f", transaction version {features.get(TRANSACTION_VERSION, 0)}"


def _pulsar(url: str, jobs: str) -> Check:
    admin = PulsarAdmin(PulsarAccess(url), timeout=_PATIENCE)
    try:
        if admin.ready():
            return Check(url, True, f"the service answers (used by {jobs})")
        closed = "the REST interface does not"
    except PulsarAdminError:
        closed = "it asks who we are"
    for server in url.partition("://")[2].split(","):
        host, _, port = server.rpartition(":")
        if _connects(host.strip("[]"), int(port)):
            return Check(
                url, True, f"{server} takes connections, but {closed} (used by {jobs})",
                "headgate check APP --live asks with the job's options, such as token and "
                "admin_url",
            )  # fmt: skip
    return Check(
        url, False, f"nobody answers (used by {jobs})",
        "see that the service runs; headgate broker status pulsar, for one of this machine",
    )  # fmt: skip


def _connects(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_PATIENCE):
            return True
    except OSError:
        return False
