"""Owns the look at a Kafka cluster from outside: its id, and the brokers that take requests."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import Any

from headgate.connectors.extras import need_extra

_POLL_SECONDS = 0.005
# librdkafka writes to standard error by itself, at any log level, unless somebody takes its lines.
_NOWHERE = logging.getLogger(f"{__name__}.librdkafka")
_NOWHERE.addHandler(logging.NullHandler())
_NOWHERE.propagate = False


@dataclass(frozen=True)
class Cluster:
    """What a broker says about its cluster."""

    id: str | None
    ports: tuple[int, ...]
    """Those of the brokers that take requests: one that is still starting is not among them."""


def describe_cluster(server: str, *, timeout: float = 5.0) -> Cluster | None:
    """The cluster at host:port; None if nobody answers there, or somebody else than Kafka.

    The client would try again until the timeout. Its first error ends the wait instead, so that
    whoever polls a broker that is starting sees it serve as soon as it does.
    """
    need_extra("kafka", f"a look at the Kafka broker {server}")
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient

    errors: list[KafkaError] = []
    settings: dict[str, Any] = {  # the client's own types leave out those that are code
        "bootstrap.servers": server,
        "client.id": "headgate",
        "error_cb": errors.append,
        "log_level": 0,
        "logger": _NOWHERE,
    }
    admin = AdminClient(settings)
    answer = admin.describe_cluster(request_timeout=timeout)
    until = time.monotonic() + timeout
    while not answer.done() and not errors and time.monotonic() < until:
        admin.poll(_POLL_SECONDS)
    if not answer.done():
        return None
    try:
        found = answer.result()
    except KafkaException:
        return None
    return Cluster(found.cluster_id, tuple(node.port for node in found.nodes))
