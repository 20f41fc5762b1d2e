"""A Kafka client for tests: the broker's own kafka-clients in a JVM, driven through py4j."""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any

from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway

from headgate.brokers.kafka import LOCK
from headgate.jvm.jars import fetch
from headgate.jvm.java import find_java
from headgate.jvm.spark_jars import find_spark_jars

_SERIALIZER = "org.apache.kafka.common.serialization.StringSerializer"


class KafkaClient:
    """Makes topics, writes transactions and reads what is committed."""

    def __init__(self) -> None:
        bridge = next(find_spark_jars(honour_spark_home=False).folder.glob("py4j-*.jar"))
        port, token = launch_gateway(
            jarpath=str(bridge),
            classpath=os.pathsep.join(str(jar) for jar in fetch(LOCK)),
            java_path=str(find_java().executable),
            javaopts=["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
            die_on_exit=True,
            enable_auth=True,
        )

        self._gateway = JavaGateway(
            gateway_parameters=GatewayParameters(port=port, auth_token=token)
        )
        self._java: Any = self._gateway.jvm
        self._kafka: Any = self._gateway.jvm.org.apache.kafka

    def __enter__(self) -> KafkaClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._gateway.shutdown()

    def create(self, servers: str, topic: str) -> None:
        """Make a topic as the broker's defaults have it."""
        admin = self._kafka.clients.admin.AdminClient.create(self._properties(servers))
        empty = self._java.java.util.Optional.empty()
        wanted = self._list(self._kafka.clients.admin.NewTopic(topic, empty, empty))
        admin.createTopics(wanted).all().get()
        admin.close()

    def produce(self, servers: str, topic: str, *values: str) -> None:
        """Write records in one transaction."""
        producer = self._kafka.clients.producer.KafkaProducer(
            self._properties(
                servers, **{"key.serializer": _SERIALIZER, "value.serializer": _SERIALIZER,
                            "transactional.id": "test"},
            )
        )  # fmt: skip
        producer.initTransactions()
        producer.beginTransaction()
        for value in values:
            producer.send(self._kafka.clients.producer.ProducerRecord(topic, value))
        producer.commitTransaction()
        producer.close()

    def read(self, servers: str, topic: str, *, count: int) -> list[str]:
        """So many committed records from the beginning of partition 0; fewer after 30 s."""
        reader = _SERIALIZER.replace("Serializer", "Deserializer")
        consumer = self._kafka.clients.consumer.KafkaConsumer(
            self._properties(
                servers, **{"key.deserializer": reader, "value.deserializer": reader,
                            "isolation.level": "read_committed"},
            )
        )  # fmt: skip
        partitions = self._list(self._kafka.common.TopicPartition(topic, 0))
        consumer.assign(partitions)
        consumer.seekToBeginning(partitions)
        found: list[str] = []
        for _ in range(30):
            records = consumer.poll(self._java.java.time.Duration.ofSeconds(1)).iterator()
            while records.hasNext():
                found.append(records.next().value())
            if len(found) >= count:
                break
        consumer.close()
        return found

    def _properties(self, servers: str, **others: str) -> Any:
        properties = self._java.java.util.Properties()
        for name, value in {"bootstrap.servers": servers, **others}.items():
            properties.setProperty(name, value)
        return properties

    def _list(self, *items: Any) -> Any:
        made = self._java.java.util.ArrayList()
        for item in items:
            made.add(item)
        return made
