"""What names a Pulsar service, its web address and a topic: jobs and commands ask the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from headgate.base.errors import GraphError

_SERVICE = re.compile(r"pulsar(?P<tls>\+ssl)?://(?P<hosts>[^/\s?#]+)")
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:/,\[\]]+):(\d{1,5})")
_TOPIC = re.compile(r"(?:persistent://)?(?:(?P<tenant>[^/]+)/(?P<space>[^/]+)/)?(?P<name>[^/]+)")
_PART = re.compile(r"[\w=:.-]+", re.ASCII)
# Pulsar's own ports: 6650 with 8080 for the web, and 6651 with 8443 where there is TLS.
_WEB_IS_AFTER = {False: 8080 - 6650, True: 8443 - 6651}


@dataclass(frozen=True)
class PulsarTopicName:
    """A topic with its tenant and namespace.

    >>> name = PulsarTopicName.parse("orders")
    >>> str(name), name.short, PulsarTopicName.parse("shop/live/orders").short
    ('persistent://public/default/orders', 'orders', 'shop/live/orders')
    """

    tenant: str
    namespace: str
    name: str

    @staticmethod
    def parse(text: str) -> PulsarTopicName:
        """Read `topic`, `tenant/namespace/topic` or the same behind `persistent://`."""
        found = _TOPIC.fullmatch(text)
        parts = [part for part in found.groups() if part is not None] if found else []
        if not found or not all(_PART.fullmatch(part) for part in parts):
            raise GraphError(
                "a Pulsar topic's name must be topic or tenant/namespace/topic, of letters, "
                "digits and -_.:=",
                got=repr(text),
                remedy="a topic that is not persistent cannot be used"
                if text.startswith("non-persistent:")
                else "correct it",
            )
        return PulsarTopicName(
            found["tenant"] or "public", found["space"] or "default", found["name"]
        )

    def __str__(self) -> str:
        return f"persistent://{self.tenant}/{self.namespace}/{self.name}"

    @property
    def short(self) -> str:
        """As one would type it."""
        usual = (self.tenant, self.namespace) == ("public", "default")
        return self.name if usual else f"{self.tenant}/{self.namespace}/{self.name}"

    def partition(self, number: int) -> PulsarTopicName:
        """One partition of a partitioned topic, which is a topic of its own.

        >>> PulsarTopicName.parse("orders").partition(3).short
        'orders-partition-3'
        """
        return PulsarTopicName(self.tenant, self.namespace, f"{self.name}-partition-{number}")

    @property
    def path(self) -> str:
        """Where it is in Pulsar's REST interface."""
        parts = (self.tenant, self.namespace, self.name)
        return "persistent/" + "/".join(quote(part, safe="") for part in parts)


def check_service(url: str) -> None:
    """Raise if this is not the address of a Pulsar service.

    >>> check_service("pulsar://localhost:6650")
    """
    found = _SERVICE.fullmatch(url)
    hosts = [_HOST.fullmatch(host) for host in found["hosts"].split(",")] if found else [None]
    if not all(host is not None and 0 < int(host[2]) < 65536 for host in hosts):
        raise GraphError(
            "the address of a Pulsar service must be pulsar://host:port or "
            "pulsar+ssl://host:port, several hosts with commas",
            got=repr(url),
            remedy="write host and port, for example pulsar://localhost:6650",
        )


def web_address(url: str) -> str:
    """Where the REST interface of a service is, if nobody says otherwise.

    The web port is as far from the service's port as Pulsar's own two are from each other.

    >>> web_address("pulsar://localhost:6650"), web_address("pulsar+ssl://a:6651,b:6651")
    ('http://localhost:8080', 'https://a:8443')
    """
    check_service(url)
    found = _SERVICE.fullmatch(url)
    assert found is not None
    tls = found["tls"] is not None
    host, _, port = found["hosts"].split(",")[0].rpartition(":")
    return f"{'https' if tls else 'http'}://{host}:{int(port) + _WEB_IS_AFTER[tls]}"


def address_of(url: str, topic: str | PulsarTopicName) -> str:
    """A topic, or a partition of one, as people recognise it.

    >>> address_of("pulsar://localhost:6650", "persistent://public/default/orders-partition-0")
    'pulsar://localhost:6650/orders-partition-0'
    """
    name = PulsarTopicName.parse(topic) if isinstance(topic, str) else topic
    return f"{url}/{name.short}"


def split_pulsar_address(address: str) -> tuple[str, str]:
    """Service and topic of an address.

    >>> split_pulsar_address("pulsar://localhost:6650/shop/live/users")
    ('pulsar://localhost:6650', 'shop/live/users')
    """
    scheme, _, rest = address.partition("://")
    service, slash, topic = rest.partition("/")
    if not slash or not topic:
        raise GraphError(
            "a Pulsar address must be pulsar://host:port/topic or "
            "pulsar://host:port/tenant/namespace/topic",
            got=repr(address),
            remedy="write the topic after the service",
        )
    return f"{scheme}://{service}", topic
