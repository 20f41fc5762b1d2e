"""Whether a broker answers at all: one small request over a connection of its own.

Clients of brokers try again for a minute before they say anything. A probe needs no client, no
credentials and no topic, so it can run beside a job at any time.
"""

from __future__ import annotations

import socket
import ssl
import struct
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from headgate.connectors.base import Sink, Source

# ApiVersions of version 0: every broker answers it, also before a client has signed in.
_KAFKA = struct.pack(">ihhih", 18, 18, 0, 1, 8) + b"headgate"
# A frame with the command CONNECT: the client's name, and version 12 of the protocol.
_CONNECT = b"\x0a\x08headgate" + b"\x20\x0c"
_COMMAND = b"\x08\x02\x12" + bytes([len(_CONNECT)]) + _CONNECT
_PULSAR = struct.pack(">ii", len(_COMMAND) + 4, len(_COMMAND)) + _COMMAND
_REQUESTS = {"kafka": _KAFKA, "pulsar": _PULSAR}


@dataclass(frozen=True)
class Service:
    """A broker or cluster by the addresses that a job knows of it."""

    system: str
    """kafka or pulsar."""
    hosts: tuple[str, ...]
    """Each host:port."""
    tls: bool = False

    def __str__(self) -> str:
        return f"{self.system} broker{'s' * (len(self.hosts) > 1)} {', '.join(self.hosts)}"

    @staticmethod
    def of(connector: Source | Sink) -> Service | None:
        """The service that a source or sink lives in, if it lives in one.

        >>> from headgate.connectors.address import Topic
        >>> str(Service.of(Topic("kafka://a:9092,b:9092/orders")))
        'kafka brokers a:9092, b:9092'
        >>> Service.of(Topic("pulsar+ssl://c:6651/shop/live/orders"))
        Service(system='pulsar', hosts=('c:6651',), tls=True)
        """
        scheme, separator, rest = connector.describe().partition("://")
        system = scheme.removesuffix("+ssl")
        if not separator or system not in _REQUESTS:
            return None
        options: dict[str, Any] = dict(getattr(connector, "options", {}))
        protocol = options.get("security.protocol", options.get("kafka.security.protocol", ""))
        tls = scheme.endswith("+ssl") or "SSL" in str(protocol).upper().replace("SASL", "")
        return Service(system, tuple(rest.partition("/")[0].split(",")), tls)

    def answers(self, timeout: float) -> bool:
        """Whether one of the addresses answers within so many seconds."""
        with ThreadPoolExecutor(len(self.hosts)) as pool:
            return any(pool.map(lambda host: self._answers(host, timeout), self.hosts))

    def _answers(self, host: str, timeout: float) -> bool:
        name, _, port = host.rpartition(":")
        try:
            address = (name.strip("[]"), int(port))
            with socket.create_connection(address, timeout=timeout) as connection:
                connection.settimeout(timeout)
                if self.tls:
                    return _shakes_hands(connection)
                connection.sendall(_REQUESTS[self.system])
                return bool(connection.recv(1))
        except (OSError, ValueError):
            return False


def _shakes_hands(connection: socket.socket) -> bool:
    """Whether somebody speaks TLS there; whom we trust is for the job's own clients."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        with context.wrap_socket(connection):
            return True
    except ssl.SSLError:
        return True  # it answered, although it wants something else than we have


def nobody_at(service: str) -> str:
    """That no broker answers at an address, as the clients' own check says it.

    >>> nobody_at("kafka://a:9092")
    'no Kafka broker answers at a:9092'
    """
    system, _, servers = service.partition("://")
    if system == "kafka":
        return f"no Kafka broker answers at {servers}"
    return f"no Pulsar broker answers at {service}"
