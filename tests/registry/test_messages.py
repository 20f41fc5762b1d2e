"""Jobs that write messages of Protobuf, which Google's and Confluent's own libraries read."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2
from pyspark.sql import SparkSession

import headgate as hg
from headgate.base.errors import GraphError, HeadgateError
from headgate.runtime.run import run
from tests.kafka.client import Kafka, Send
from tests.kernel.protobuf_messages import COLUMNS, FILES, Order, order_of
from tests.registry.server import RegistryServer


def _descriptor(folder: Path) -> dict[str, str]:
    file = folder / "shop.desc"
    file.write_bytes(FILES.SerializeToString())
    return {"format": "protobuf", "descriptor": str(file), "message": "shop.Order"}


def _go(spark: SparkSession, folder: Path, job: hg.JobDef) -> None:
    outcome = run(job, home=str(folder / "home"), bounded=True, spark=spark)
    if outcome.error is not None:
        raise outcome.error


def _values(kafka: Kafka, topic: str) -> list[bytes]:
    return [(value or "").encode("utf-8", "surrogateescape") for value in kafka.values(topic)]


def _sorted(orders: list[Any]) -> list[bytes]:
    return sorted(one.SerializeToString(deterministic=True) for one in orders)


def test_should_write_what_other_libraries_read(
    spark: SparkSession, tmp_path: Path, kafka_servers: str, registry: RegistryServer
) -> None:
    kafka, how = Kafka(kafka_servers, calm=True), _descriptor(tmp_path)
    orders, copies, plain = kafka.topic(2), kafka.topic(2), kafka.topic(1)
    sent = [order_of(seed) for seed in range(150)]
    kafka.send(orders, [Send(one.SerializeToString(), str(n)) for n, one in enumerate(sent)])

    @hg.job("copy")
    def copy(job: hg.Job) -> None:
        address = f"kafka://{kafka.servers}/"
        rows = job.source("orders", hg.topic(address + orders, schema=COLUMNS, **how))
        rows.sink("copies", hg.topic(address + copies, registry=registry.url,
                                     subject_strategy="topic-record-name", **how))  # fmt: skip
        rows.sink("plain", hg.topic(address + plain, **how))

    _go(spark, tmp_path, copy)
    for one in sent:
        one.ClearField("nobody_asks")
    assert _sorted([Order.FromString(value) for value in _values(kafka, plain)]) == _sorted(sent)

    # Confluent's client takes the schema from the registry, and the message that the bytes name
    client = SchemaRegistryClient({"url": registry.url})
    read = ProtobufDeserializer(Order, {"use.deprecated.format": False}, client)
    place = SerializationContext(copies, MessageField.VALUE)
    assert _sorted([read(value, place) for value in _values(kafka, copies)]) == _sorted(sent)
    assert list(registry.subjects) == [f"{copies}-shop.Order"]
    (kept,) = registry.schemas
    file = descriptor_pb2.FileDescriptorProto.FromString(base64.b64decode(kept.text))
    assert kept.kind == "PROTOBUF" and file == FILES.file[0]


def test_should_refuse_what_the_message_cannot_hold(
    spark: SparkSession, tmp_path: Path, kafka_servers: str
) -> None:
    kafka, how = Kafka(kafka_servers, calm=True), _descriptor(tmp_path)
    texts, out = kafka.topic(1), kafka.topic(1)
    kafka.send(texts, ['{"n": 7}', '{"n": -1}'])

    def job(*select: str, **more: Any) -> hg.JobDef:
        @hg.job("write")
        def write(job: hg.Job) -> None:
            address = f"kafka://{kafka.servers}/"
            rows = job.source("in", hg.topic(address + texts, schema="n BIGINT")).select(*select)
            rows.sink("out", hg.topic(address + out, **{**how, **more}))

        return write

    for select, sentence in {
        "n": "the message shop.Order has no field for the column 'n', only 'v_int32'",
        "n AS v_int32": "the field 'v_int32' cannot be written from BIGINT",
        "n AS packed": "the field 'packed' cannot be written from BIGINT",
    }.items():
        with pytest.raises(GraphError, match=sentence):
            job(select).build(spark=spark, check_connectors=False)
    for more, sentence in (
        ({"message": ""}, "the descriptor has no message"),
        ({"format": "json"}, "'descriptor' is for a sink of the format protobuf"),
        ({"descriptor": "/nowhere"}, "descriptor must be a file that is there"),
        ({"subject": "x"}, "'subject' is for a sink with a registry"),
    ):
        with pytest.raises(GraphError, match=sentence):
            job("n AS v_int64", **more).build(spark=spark).nodes[-1].operation.check()
    with pytest.raises(HeadgateError, match="'v_uint32' cannot hold a number: it is too large or"):
        _go(spark, tmp_path, job("n AS v_uint32"))
    assert kafka.values(out) == []
