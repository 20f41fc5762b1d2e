"""The doctor's look at brokers: do those that the home's jobs use answer?"""

from __future__ import annotations

import socket
from collections.abc import Iterator

from headgate.brokers.kafka_wire import ask_cluster
from headgate.doctor_check import Check
from headgate.errors import HeadgateError
from headgate.snapshots.home import Home

_PATIENCE = 5.0


def broker_checks(home: str) -> Iterator[Check]:
    """One check for each group of servers that a job of the home names."""
    for servers, jobs in sorted(_servers(home).items()):
        yield _kafka(servers, ", ".join(sorted(jobs)))


def _servers(home: str) -> dict[str, set[str]]:
    """Kafka servers by the jobs whose newest graph has them."""
    found: dict[str, set[str]] = {}
    for job in Home(home).jobs():
        try:
            run = job.current()
            steps = run.graph()["steps"] if run else []
        except HeadgateError:
            continue  # a damaged job is for `headgate show` to tell
        for step in steps:
            address = str(step.get("detail", {}).get("address", ""))
            if address.startswith("kafka://"):
                servers = address.removeprefix("kafka://").partition("/")[0]
                found.setdefault(servers, set()).add(job.name)
    return found


def _kafka(servers: str, jobs: str) -> Check:
    name = f"kafka {servers}"
    for server in servers.split(","):
        host, _, port = server.rpartition(":")
        if cluster := ask_cluster(host, int(port), timeout=_PATIENCE):
            return Check(name, True, f"cluster {cluster.id} answers (used by {jobs})")
        if _connects(host, int(port)):
            return Check(
                name, True, f"{server} takes connections, but no plain requests (used by {jobs})",
                "if it is secured that is right: headgate check APP --live asks with the job's "
                "credentials",
            )  # fmt: skip
    return Check(
        name, False, f"nobody answers (used by {jobs})",
        "see that the broker runs; headgate broker status kafka, for one of this machine",
    )  # fmt: skip


def _connects(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=_PATIENCE):
            return True
    except OSError:
        return False
