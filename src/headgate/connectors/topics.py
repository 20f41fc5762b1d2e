"""Topics by their addresses: the client of whatever system one lives in."""

from __future__ import annotations

from collections.abc import Mapping

from headgate.base.errors import UsageError
from headgate.connectors.extras import need_extra
from headgate.connectors.missing import create_remedy
from headgate.connectors.topic_client import TopicClient

_SCHEMES = ("log", "kafka", "pulsar", "pulsar+ssl")


def is_topic(address: str) -> bool:
    """Whether a topic lives at an address, so that ``open_topic`` has a client for it.

    >>> is_topic("log:data/orders"), is_topic("files:data/orders")
    (True, False)
    """
    scheme, colon, rest = address.partition(":")
    return bool(colon and rest) and scheme in _SCHEMES


def open_topic(address: str, options: Mapping[str, str] | None = None) -> TopicClient:
    """The client for an address; `options` are settings of a broker's client.

    >>> open_topic("log:data/orders").exists()
    False
    """
    scheme, _, rest = address.partition(":")
    if scheme == "kafka" and rest:
        need_extra("kafka", f"the topic {address}")
        from headgate.connectors.kafka.topic import KafkaTopic

        return KafkaTopic(address, options or {})
    if scheme in ("pulsar", "pulsar+ssl") and rest:
        need_extra("pulsar", f"the topic {address}")
        from headgate.connectors.pulsar.topic import PulsarTopic

        return PulsarTopic(address, options or {})
    if scheme != "log" or not rest:
        raise UsageError(
            "a topic's address must be log:PATH, kafka://host:port/topic or "
            "pulsar://host:port/topic",
            got=repr(address),
            remedy=f"did you mean log:{address}?" if not rest else "name a folder: log:data/orders",
        )
    from headgate.connectors.log.topic import LogTopic

    if options:
        raise UsageError(
            "a log topic has no client options",
            remedy="leave out --option, which is for brokers",
        )
    return LogTopic(rest)


def missing_topic(address: str, options: Mapping[str, str] | None = None) -> str:
    """What to do about a topic that is not there.

    >>> missing_topic("log:nowhere/orders")
    'create it with `headgate topic create log:nowhere/orders`'
    """
    return create_remedy(address, lambda: open_topic(address, options).neighbours())
