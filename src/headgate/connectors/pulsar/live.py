"""Asking a Pulsar service about the topic of a source or sink."""

from __future__ import annotations

from pyspark.sql import SparkSession

from headgate import jvm
from headgate.connectors.base import Finding
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.names import PulsarTopicName, address_of
from headgate.failures import Reason, broker_reason


def java_access(access: PulsarAccess) -> dict[str, str]:
    """An access as the kernel's Java client gets it."""
    options = {name: value for name, value in access.options.items() if name != "admin_url"}
    return {"url": access.url, **options}


def find_pulsar_topics(spark: SparkSession, access: PulsarAccess, topic: str) -> list[Finding]:
    """Ask the service whether the topic is there; a topic that is missing is not created."""
    name = PulsarTopicName.parse(topic)
    about = address_of(access.url, name)
    answer = jvm.pulsar_topics(spark, java_access(access), [str(name)])[str(name)]
    if "error" not in answer:
        count = int(answer["partitions"])
        parts = f"{count} partition{'s' * (count != 1)}" if count else "not partitioned"
        return [Finding(about, f"{about}: {parts}")]
    reason = broker_reason(str(answer["error"]), Reason.PULSAR)
    if reason is Reason.TOPIC_MISSING:
        text = f"there is no topic {about}"
    elif reason is Reason.BROKER_UNREACHABLE:
        text = f"no Pulsar broker answers at {access.url}"
    else:
        text = f"{reason.text} ({about}): {answer.get('message')}"
    return [Finding(about, text, reason)]
