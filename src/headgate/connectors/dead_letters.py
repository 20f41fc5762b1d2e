"""The topic of a job's dead letters, and the one beside it through which they are replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pyspark.sql import SparkSession

from headgate import jvm
from headgate.base.errors import HeadgateError
from headgate.connectors.address import Topic, split_address
from headgate.connectors.base import Finding
from headgate.connectors.kafka.client import split_kafka_address
from headgate.connectors.letters import can_replay, replay_address
from headgate.connectors.log.files import TopicFiles

_RECORD = "CASE WHEN {0} LIKE 'base64:%' THEN unbase64(substr({0}, 8)) ELSE CAST({0} AS BINARY) END"
"""The bytes of a key or value, of which text is shown as it is and others in base64."""


def as_bytes(name: str) -> str:
    """The bytes, in SQL, of a key or value as it is shown."""
    return _RECORD.format(name)


class DeadLetterTopic(Topic):
    """Where dead letters go; a run makes the topic of their replays."""

    @staticmethod
    def of(topic: Topic) -> DeadLetterTopic:
        """The topic as it is written: key, value and headers are columns of the letters."""
        scheme, _ = split_address(topic.address)
        options = dict(topic.options)
        if scheme == "kafka":
            options |= {"value": as_bytes("value"), "headers": "headers"}
        elif scheme != "log":
            options |= {"value": as_bytes("value"), "properties": "headers"}
        # keys of Pulsar's messages are texts: others are shown in base64
        key = as_bytes("key") if scheme == "kafka" else "key"
        return DeadLetterTopic(topic.address, None, key, options=options)

    def prepare(self, spark: SparkSession) -> Sequence[str]:
        said = list(super().prepare(spark))
        address = replay_address(self.address)
        if can_replay(self.address) and _made(spark, address, self._client):
            said.append(f"created {address}, through which dead letters can be replayed")
        return said

    @property
    def _client(self) -> dict[str, str]:
        return {name: value for name, value in self.options.items() if "." in name}

    @property
    def replays(self) -> ReplayTopic | None:
        """The topic from which the job reads letters again; None if it cannot."""
        if not can_replay(self.address):
            return None
        # what is there when a job begins was meant for one before it
        return ReplayTopic(
            replay_address(self.address), "value STRING", start="latest", options=self._client
        )


class ReplayTopic(Topic):
    """Letters that are given to their step again; the topic is made when a run begins."""

    def check(self) -> None:
        with_topic = replace(self, schema=None)
        with_topic._sink.check()

    def live(self, spark: SparkSession) -> Sequence[Finding]:
        return ()

    def earliest(self, spark: SparkSession) -> Mapping[str, int | str] | None:
        return None


def _made(spark: SparkSession, address: str, client: Mapping[str, str]) -> bool:
    scheme, rest = split_address(address)
    if scheme == "kafka":
        servers, name = split_kafka_address(rest)
        try:
            return jvm.kafka_create_lasting(spark, {"bootstrap.servers": servers, **client}, name)
        except Exception as error:
            failure = jvm.explain_failure(error)
            raise HeadgateError(
                f"cannot create {address}, through which dead letters are replayed:"
                f" {failure.sentence}",
                code=failure.reason.name,
                remedy=f"create it with `headgate topic create {address}`, or let the job do so",
            ) from error
    return TopicFiles(rest).ensure()
