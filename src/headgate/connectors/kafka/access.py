"""How commands reach a Kafka cluster: its address, its clients, and its errors in words."""

from __future__ import annotations

import logging
import re
import socket
import time
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from headgate.base.errors import HeadgateError, NotFoundError, UsageError
from headgate.connectors.kafka.names import are_servers, is_topic

T = TypeVar("T")

ANSWER_SECONDS = 10.0
# A broker that was started just now listens by then.
_LISTEN_SECONDS = 7.0
_LISTEN_AGAIN_SECONDS = 0.25
# Answers come on another thread and end no poll, and a command has several requests in a row.
_POLL_SECONDS = 0.005

_FORM = "kafka://host:port[,host2:port2]/topic"

# What the command itself decides, and what says so.
_DECIDED = {
    "bootstrap.servers": "the address names the servers",
    "metadata.broker.list": "the address names the servers",
    "isolation.level": "use --committed or --uncommitted",
    "enable.partition.eof": "the command needs it to find a topic's end",
    "transactional.id": "records are sent without transactions",
}
# Settings of the Python client that are code, and no text.
_CODE = ("logger", "on_commit", "on_delivery")
_AFTER = re.compile(r" \(after \d+ms in state \w+.*\)$")
# librdkafka writes to standard error by itself, at any log level, unless somebody takes its lines.
_NOWHERE = logging.getLogger(f"{__name__}.librdkafka")
_NOWHERE.addHandler(logging.NullHandler())
_NOWHERE.propagate = False
_UNREACHABLE = (
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._MSG_TIMED_OUT,
    KafkaError.REQUEST_TIMED_OUT,
)
_REJECTED = (
    KafkaError._AUTHENTICATION,
    KafkaError._SSL,
    KafkaError.SASL_AUTHENTICATION_FAILED,
    KafkaError.UNSUPPORTED_SASL_MECHANISM,
)
_FORBIDDEN = (
    KafkaError.TOPIC_AUTHORIZATION_FAILED,
    KafkaError.CLUSTER_AUTHORIZATION_FAILED,
    KafkaError.GROUP_AUTHORIZATION_FAILED,
)
_UNKNOWN = (
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_TOPIC,
    KafkaError._UNKNOWN_PARTITION,
)
_UNFIT = (
    KafkaError.INVALID_REPLICATION_FACTOR,
    KafkaError.INVALID_PARTITIONS,
    KafkaError.INVALID_CONFIG,
    KafkaError.POLICY_VIOLATION,
    KafkaError.TOPIC_EXCEPTION,
)


@dataclass(frozen=True)
class KafkaAddress:
    """Where a Kafka topic is.

    >>> KafkaAddress.parse("kafka://a:9092,b:9092/orders")
    KafkaAddress(servers='a:9092,b:9092', topic='orders')
    """

    servers: str
    topic: str

    def __str__(self) -> str:
        return f"kafka://{self.servers}/{self.topic}"

    @staticmethod
    def parse(address: str) -> KafkaAddress:
        """Read an address; one that is not whole is refused."""
        servers, slash, topic = address.removeprefix("kafka://").partition("/")
        if not address.startswith("kafka://") or not slash or not topic:
            wrong = "names no topic" if address.startswith("kafka://") else "is not Kafka's"
        elif not are_servers(servers):
            wrong = "has a server without a port"
        elif not is_topic(topic):
            raise UsageError(
                "a Kafka topic's name must be letters, digits, '.', '_' and '-', at most 249",
                got=repr(topic),
                remedy="choose another name",
            )
        else:
            return KafkaAddress(servers, topic)
        raise UsageError(
            f"the address {address} {wrong}",
            expected=_FORM,
            remedy="write it in full, for instance kafka://localhost:9092/orders",
        )


class KafkaAccess:
    """Makes the clients of one address and says in words what goes wrong with them."""

    def __init__(self, address: KafkaAddress, options: Mapping[str, str]) -> None:
        for name in options:
            if name in _CODE or name.endswith("_cb"):
                raise _unfit(f'No such configuration property: "{name}"')
            if name in _DECIDED:
                raise UsageError(
                    f"--option {name} is set by Headgate",
                    remedy=f"leave it out: {_DECIDED[name]}",
                )
        self.address = address
        self._options = dict(options)
        self._heard: KafkaError | None = None
        self.admin: AdminClient = self._make(AdminClient, {})
        self._await_listener()

    def _await_listener(self) -> None:
        """Raise soon if nobody listens at any of the servers, where the client would try on."""
        until = time.monotonic() + _LISTEN_SECONDS
        while (why := _nobody_listens(self.address.servers)) is not None:
            if time.monotonic() > until:
                raise self._unreachable(why)
            time.sleep(_LISTEN_AGAIN_SECONDS)

    def producer(self, *, transactional_id: str | None = None) -> Producer:
        """A producer whose keys land where Java's producers put them, and that sends once."""
        own: dict[str, Any] = {
            "enable.idempotence": True,
            "partitioner": "murmur2_random",
            "message.timeout.ms": 30_000,
        }
        if transactional_id is not None:
            own["transactional.id"] = transactional_id
        # librdkafka knows one setting by two names
        if "delivery.timeout.ms" in self._options:
            del own["message.timeout.ms"]
        return self._make(Producer, own)

    def consumer(self, *, committed: bool) -> Consumer:
        """A consumer for assigned partitions, that tells when it is at the end of one."""
        own = {
            # There must be one, but with assigned partitions it is not used.
            "group.id": "headgate-topic-read",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
            # The end of a topic is known when a fetch finds nothing there: it waits this long.
            "fetch.wait.max.ms": 50,
            "isolation.level": "read_committed" if committed else "read_uncommitted",
            # A reader may stop at a page of `less` for hours.
            "max.poll.interval.ms": 86_400_000,
        }
        return self._make(Consumer, own)

    def _make(self, kind: type[T], own: Mapping[str, Any]) -> T:
        settings = {
            **own, **self._options,
            "bootstrap.servers": self.address.servers, "error_cb": self._hear,
        }  # fmt: skip
        if "debug" not in self._options:
            settings |= {"log_level": 0, "logger": _NOWHERE}
        try:
            return kind(settings)  # type: ignore[call-arg]
        except (KafkaException, TypeError, ValueError) as error:
            cause = error.args[0] if error.args else error
            said = cause.str() if isinstance(cause, KafkaError) else str(cause)
            raise _unfit(said) from error

    def _hear(self, error: KafkaError) -> None:
        # A password that was refused says more than the connection that was lost by it.
        if self._heard is None or self._heard.code() not in _REJECTED:
            self._heard = error

    def answer(self, future: Future[T]) -> T:
        """The result of a request; one that cannot succeed any more is not waited for."""
        until = time.monotonic() + ANSWER_SECONDS + 2
        while not future.done() and time.monotonic() < until:
            self.admin.poll(_POLL_SECONDS)
            if self._heard is not None and self._heard.code() in _REJECTED:
                raise self.error(self._heard)
        try:
            return future.result(timeout=0)
        except TimeoutError:
            raise self.error(KafkaError(KafkaError._TIMED_OUT)) from None

    def _unreachable(self, said: str) -> HeadgateError:
        return HeadgateError(
            f"no Kafka broker is reachable at {self.address.servers} ({said})",
            code="BROKER_UNREACHABLE",
            remedy="check the address, or start one with headgate broker start kafka",
        )

    def error(self, error: KafkaError) -> HeadgateError:
        """An error of Kafka as one that a person can act on."""
        code, where = error.code(), self.address
        if self._heard is not None and code in _UNREACHABLE:
            error = self._heard
        said = _AFTER.sub("", error.str()).rstrip(".")
        if error.code() in _REJECTED:
            return HeadgateError(
                f"the Kafka servers {where.servers} refused the login ({said})",
                code="NOT_AUTHORISED",
                remedy="correct --option security.protocol, sasl.mechanism, sasl.username, "
                "sasl.password or ssl.ca.location",
            )
        if code in _UNREACHABLE:
            return self._unreachable(said)
        if code in _FORBIDDEN:
            return HeadgateError(
                f"not authorised for {where} ({said})",
                code="NOT_AUTHORISED",
                remedy="ask for access to the topic, or give another user with --option",
            )
        if code in _UNKNOWN:
            return NotFoundError(
                f"there is no topic at {where}",
                remedy=f"create it with headgate topic create {where}",
            )
        if code in _UNFIT:
            return UsageError(
                f"the broker refuses {where} ({said})",
                remedy="correct the topic's name or settings",
            )
        return HeadgateError(
            f"Kafka failed at {where} ({error.name()}: {said})",
            code="KAFKA",
            remedy="see the broker's log",
        )


def _nobody_listens(servers: str) -> str | None:
    """Why nobody can be reached at any of these host:port; None if one may answer."""
    why = None
    for server in servers.split(","):
        host, _, port = server.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=1.0).close()
            return None
        except (ConnectionRefusedError, socket.gaierror) as error:
            why = error.strerror
        except OSError:
            return None  # it may be slow: the client is more patient
    return why


def _unfit(said: str) -> UsageError:
    return UsageError(
        f"Kafka's client does not accept these options ({said.strip().rstrip('.')})",
        remedy="correct --option; the names are those of librdkafka, such as security.protocol",
    )
