"""Addresses whose servers are only a way into a cluster, which may be reached by others as well."""

from __future__ import annotations

_SCHEME = "kafka"


def servers_of(address: str) -> str:
    """The servers of an address that lead into a cluster with an id; nothing of another.

    >>> servers_of("kafka://a:9092,b:9092/orders"), servers_of("log:data/orders")
    ('a:9092,b:9092', '')
    """
    scheme, _, rest = address.partition("://")
    return rest.partition("/")[0] if scheme == _SCHEME else ""


def with_servers(address: str, servers: str) -> str:
    """The same topic by other servers of its cluster.

    >>> with_servers("kafka://a:9092/orders", "b:9092")
    'kafka://b:9092/orders'
    """
    topic = address.partition("://")[2].partition("/")[2]
    return f"{_SCHEME}://{servers}/{topic}"
