"""Jobs between topics whose schemas a registry keeps, beside Confluent's own clients."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from pyspark.sql import SparkSession

import headgate as hg
from headgate.base.errors import GraphError, HeadgateError
from headgate.connectors.log.files import TopicFiles
from headgate.failures import Reason
from headgate.runtime.broker_check import check_live
from headgate.runtime.run import run
from tests.kafka.client import Kafka, Send
from tests.registry.records import framed, record
from tests.registry.server import RegistryServer

LOGIN = "app:loopback-word"
ORDER = record(
    "shop.Order", ("id", "long"), ("user", ["null", "string"], None),
    ("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    ("tags", {"type": "array", "items": "string"}),
)  # fmt: skip
ORDER_2 = {**ORDER, "fields": [*ORDER["fields"], {"name": "note", "type": "string", "default": ""}]}
COLUMNS = "id BIGINT, user STRING, price DECIMAL(9,2), tags ARRAY<STRING>, note STRING"


def _orders(numbers: Sequence[int]) -> list[dict[str, Any]]:
    return [
        {"id": n * 1_000_003, "user": f"grüße {n}" if n % 3 else None,
         "price": Decimal(n).scaleb(-2), "tags": ["a"] * (n % 3)}
        for n in numbers
    ]  # fmt: skip


@pytest.fixture
def kafka(kafka_servers: str) -> Kafka:
    return Kafka(kafka_servers, calm=True)


NO_PASSWORD = "(?s)^(?!.*s3same).*registry must be http://host:port.*'there:8081'"


def _go(spark: SparkSession, folder: Path, job: hg.JobDef, **params: str) -> None:
    outcome = run(job, home=str(folder / "home"), bounded=True, spark=spark, params=params)
    if outcome.error is not None:
        raise outcome.error


def test_should_exchange_records_with_confluents_clients(
    spark: SparkSession, tmp_path: Path, kafka: Kafka
) -> None:
    orders, copies, texts = kafka.topic(2), kafka.topic(2), kafka.topic(1)
    with RegistryServer(login=LOGIN) as registry:
        client = SchemaRegistryClient({"url": registry.url, "basic.auth.user.info": LOGIN})
        place = SerializationContext(orders, MessageField.VALUE)
        old, new = (AvroSerializer(client, json.dumps(s)) for s in (ORDER, ORDER_2))
        first, then = _orders(range(40)), _orders(range(40, 80))
        for one in then:
            one["note"] = f"n{one['id']}"
        kafka.send(orders, [Send(old(one, place), str(one["id"])) for one in first])
        kafka.send(orders, [Send(new(one, place), str(one["id"])) for one in then])

        @hg.job("copy")
        def copy(job: hg.Job) -> None:
            address = f"kafka://{kafka.servers}/"
            known = {"registry": registry.url, "registry_credentials": job.secret("login")}
            rows = job.source(
                "orders", hg.topic(address + orders, schema=COLUMNS, format="avro", **known)
            )
            rows.sink(
                "copies",
                hg.topic(
                    address + copies,
                    key="id",
                    format="avro",
                    record_name="shop.Copy",
                    subject_strategy="topic-record-name",
                    **known,
                ),
            )
            rows.drop("price").sink(
                "texts",
                hg.topic(
                    address + texts,
                    key="id",
                    registry=registry.url,
                    registry_credentials=LOGIN,
                    format="json",
                ),
            )

        _go(spark, tmp_path, copy, login=LOGIN)
        truth = [{"note": None, **one} for one in first] + then
        read = AvroDeserializer(client)
        place = SerializationContext(copies, MessageField.VALUE)
        found = [read(value, place) for value in binary(kafka, copies)]
        assert sorted(found, key=_id) == truth
        assert set(registry.subjects) == {
            f"{copies}-shop.Copy", f"{orders}-value", f"{texts}-value"
        }  # fmt: skip
        text_id = registry.subjects[f"{texts}-value"][0]
        bodies = [
            value.removeprefix(bytes([0, 0, 0, 0, text_id])) for value in binary(kafka, texts)
        ]
        assert sorted((json.loads(body) for body in bodies), key=_id) == [
            {k: v for k, v in one.items() if v is not None and k != "price"} for one in truth
        ]
        schema = json.loads(registry.schemas[text_id - 1].text)
        assert schema["properties"]["tags"]["type"] == "array"
        written = b"".join(f.read_bytes() for f in (tmp_path / "home").rglob("*") if f.is_file())
        assert b"loopback-word" not in written


def binary(kafka: Kafka, topic: str) -> list[bytes]:
    """The values of a topic, which are no text."""
    return [(value or "").encode("utf-8", "surrogateescape") for value in kafka.values(topic)]


def _id(row: dict[str, Any]) -> int:
    return int(row["id"])


def test_should_refuse_rows_that_the_subject_does_not_take(
    spark: SparkSession, tmp_path: Path, kafka: Kafka, registry: RegistryServer
) -> None:
    texts, out = kafka.topic(1), kafka.topic(1)
    kafka.send(texts, ['{"id": 1}'])

    def job(**options: str) -> hg.JobDef:
        @hg.job("copy")
        def copy(job: hg.Job) -> None:
            address = f"kafka://{kafka.servers}/"
            rows = job.source("in", hg.topic(address + texts, schema="id BIGINT"))
            rows.sink(
                "out",
                hg.topic(
                    address + out,
                    format="avro",
                    registry=registry.url,
                    record_name="Row",
                    **options,
                ),
            )

        return copy

    with pytest.raises(HeadgateError, match=f"the subject {out}-value of the registry .* does not"):
        _go(spark, tmp_path, job(register="false"))
    registry.add(f"{out}-value", record("Row", ("id", "string")))
    with pytest.raises(HeadgateError, match="incompatible with an earlier schema") as error:
        _go(spark, tmp_path, job())
    assert error.value.remedy == Reason.SCHEMA_MISFIT.remedy
    assert kafka.values(out) == []
    registry.add("rows", record("Row", ("id", ["null", "long"], None)))
    # what a proxy says for the registry is not taken for an id
    registry.pages = [b"<html>We will be back</html>", b'{"id": 0}', b'{"id": "7"}']
    _go(spark, tmp_path, job(register="false", subject="rows"))
    assert registry.pages == []
    assert [value[4] for value in binary(kafka, out)] == [2]
    kafka.send(texts, ['{"id": 2}'])
    registry.pages = [b"<html>We will be back</html>", b"{}"]
    _go(spark, tmp_path, job(subject="news"))
    assert registry.pages == []
    assert [value[4] for value in binary(kafka, out)] == [2, registry.subjects["news"][0]]


def test_should_ask_the_brokers_when_the_registry_is_silent(
    spark: SparkSession, tmp_path: Path, kafka: Kafka, registry: RegistryServer
) -> None:
    orders, out, address = kafka.topic(1), kafka.topic(1), f"kafka://{kafka.servers}/"

    @hg.job("copy")
    def copy(job: hg.Job) -> None:
        how = {"format": "avro", "registry": registry.url}
        rows = job.source("in", hg.topic(address + orders, schema="id BIGINT", **how))
        rows.sink("out", hg.topic(address + out))
        rows.sink("none", hg.topic(f"{address}{out}.none"))

    built = copy.build(spark=spark)
    registry.fail_next = 1_000_000
    found = check_live(built, spark, "copy").findings
    assert [(step.id, finding.reason) for step, finding in found] == [
        ("in", None), ("in", Reason.REGISTRY_UNREACHABLE), ("out", None),
        ("none", Reason.TOPIC_MISSING),
    ]  # fmt: skip


@pytest.mark.slow
def test_should_go_on_where_it_was_when_the_registry_is_back(
    spark: SparkSession, tmp_path: Path, kafka: Kafka, registry: RegistryServer
) -> None:
    orders, out = kafka.topic(1), kafka.topic(1)
    schema = record("Order", ("id", "long"))
    kafka.send(orders, [Send(framed(registry.add(f"{orders}-value", schema), b"\x02"))])

    @hg.job("copy")
    def copy(job: hg.Job) -> None:
        address, how = f"kafka://{kafka.servers}/", {"format": "avro", "registry": registry.url}
        rows = job.source(
            "in", hg.topic(address + orders, schema="id BIGINT", **how), malformed="side"
        )
        rows.sink("out", hg.topic(address + out, **how))
        rows.malformed.sink("bad", hg.topic(f"log:{tmp_path}/bad"))

    registry.fail_next = 1_000_000
    with pytest.raises(HeadgateError, match="the schema registry does not answer") as error:
        _go(spark, tmp_path, copy)
    assert error.value.remedy == Reason.REGISTRY_UNREACHABLE.remedy
    registry.fail_next = 0
    _go(spark, tmp_path, copy)
    kafka.send(orders, [Send(framed(1, b"\x04"))])
    _go(spark, tmp_path, copy)
    assert binary(kafka, out) == [framed(2, b"\x02\x02"), framed(2, b"\x02\x04")]
    assert not (tmp_path / "bad").exists() or not list(TopicFiles(tmp_path / "bad").read())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"format": "avro"}, "a sink of Avro must have the registry"),
        ({"subject": "x"}, "'subject' is for a sink with a registry"),
        ({"registry": "there:8081"}, "registry must be http://host:port"),
        ({"registry": "app:s3same-open@there:8081"}, NO_PASSWORD),
        ({"registry": "http://app:s3same/open@there:8081"}, NO_PASSWORD),
        ({"registry": "http://app:1/s3same@there:8081"}, NO_PASSWORD),
        ({"registry": "http://[there:8081"}, "registry must be http://host:port"),
        ({"registry": "http://there:port"}, "registry must be http://host:port"),
        ({"registry_credentials": "a:b"}, "'registry_credentials' must stand beside the registry"),
        ({"registry": "http://a", "registry_credentials": "ab"}, "must be user:password"),
        ({"registry": "http://a", "registry_ca": "/nowhere.pem"}, "must be a file of cert"),
        ({"registry": "http://a", "value": "'x'"}, "value and registry exclude each other"),
        ({"registry": "http://a", "subject_strategy": "x"}, "'subject_strategy' must be"),
        ({"registry": "http://a", "format": "avro", "avro_schema": '"int"'},
         "the rows cannot be written as Avro: it is of type int, and a record is needed"),
        ({"registry": "http://a", "format": "avro",
          "avro_schema": json.dumps(record("R", ("id", "string")))},
         "the rows cannot be written as Avro: .*'id'"),
    ],
)  # fmt: skip
def test_should_refuse_options_that_cannot_be(
    spark: SparkSession, options: dict[str, str], sentence: str
) -> None:
    @hg.job("copy")
    def copy(job: hg.Job) -> None:
        rows = job.source("in", hg.topic("log:in", schema="id BIGINT"))
        rows.sink("out", hg.topic("kafka://h:9092/out", **options))

    with pytest.raises(GraphError, match=sentence):
        copy.build(spark=spark, check_connectors=False).nodes[-1].operation.check()
