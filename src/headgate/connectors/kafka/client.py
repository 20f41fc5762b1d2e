"""What Kafka's source and sink share: addresses, options, and asking the broker about topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import SparkSession

from headgate import jvm
from headgate.base.errors import GraphError
from headgate.connectors.base import Finding
from headgate.connectors.kafka.names import are_servers
from headgate.failures import Reason, broker_reason


def split_kafka_address(rest: str) -> tuple[str, str]:
    """Servers and topic of an address behind its scheme.

    >>> split_kafka_address("//a:9092,b:9092/orders")
    ('a:9092,b:9092', 'orders')
    """
    servers, _, topic = rest.removeprefix("//").partition("/")
    if not servers or not topic:
        raise GraphError(
            "the Kafka address must be kafka://host:port/topic",
            got=repr(f"kafka:{rest}"),
            remedy=f"write its {'topic' if servers else 'servers'}",
        )
    return servers, topic


def check_servers(servers: str) -> None:
    """Raise if these are not Kafka's bootstrap servers."""
    if not are_servers(servers):
        raise GraphError(
            "the Kafka servers must be host:port, or several separated by commas",
            got=repr(servers),
            remedy="write host and port, for example localhost:9092",
        )


def split_options(
    options: Mapping[str, str], *, known: Sequence[str], reserved: Iterable[str], what: str
) -> tuple[dict[str, str], dict[str, str]]:
    """Our own options, and those of Kafka's client, which have a dot in their names.

    >>> split_options({"max_records": "10", "security.protocol": "SSL"},
    ...     known=["max_records"], reserved=[], what="source")
    ({'max_records': '10'}, {'security.protocol': 'SSL'})
    """
    own: dict[str, str] = {}
    client: dict[str, str] = {}
    for given, value in options.items():
        name = given.removeprefix("kafka.")
        if name in reserved:
            raise GraphError(
                f"'{given}' of a Kafka {what} is set by Headgate: its guarantees rest on it",
                remedy="leave it out",
            )
        if given in known:
            own[given] = str(value)
        elif "." in name:
            client[name] = str(value)
        else:
            raise GraphError(
                f"a Kafka {what} has no option '{given}'",
                expected=", ".join(known) + ", or a client setting such as security.protocol",
                remedy="correct or remove the option",
            )
    return own, client


def find_topics(
    spark: SparkSession, client: Mapping[str, str], names: Sequence[str], *, right: str
) -> list[Finding]:
    """Ask the broker whether the topics are there, and whether we may do with them what we must."""
    findings = []
    servers = client["bootstrap.servers"]
    for name, answer in jvm.kafka_topics(spark, client, names).items():
        about = f"kafka://{servers}/{name}"
        if "error" in answer:
            reason = broker_reason(str(answer["error"]), Reason.KAFKA)
            findings.append(Finding(about, _why(about, servers, reason, answer), reason))
            continue
        rights = answer.get("operations")
        if rights is not None and not {right, "ALL"} & set(rights):
            findings.append(
                Finding(about, f"may not {right.lower()} {about}", Reason.NOT_AUTHORISED)
            )
            continue
        count = int(answer["partitions"])
        findings.append(Finding(about, f"{about}: {count} partition{'s' * (count != 1)}"))
    return findings


def _why(about: str, servers: str, reason: Reason, answer: Mapping[str, object]) -> str:
    if reason is Reason.TOPIC_MISSING:
        return f"there is no topic {about}"
    if reason is Reason.BROKER_UNREACHABLE:
        return f"no Kafka broker answers at {servers}"
    return f"{reason.text} ({about}): {answer.get('message')}"
