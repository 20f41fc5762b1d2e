"""Values behind the id of a schema: what is asked of the registry, and what it answers."""

from __future__ import annotations

import json
import socket
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from pyspark.sql import Row, SparkSession

from headgate import jvm
from headgate.failures import Reason
from tests.kernel.kafka_records import decode, decoded, kafka, reasons
from tests.registry.records import avro, framed, record
from tests.registry.server import RegistryServer, Schema

ORDER = record("Order", ("id", "long"), ("user", ["null", "string"]))
COLUMNS = "id BIGINT, user STRING"


def _order(id: int, user: str | None = "ann", *, schema: int = 1) -> bytes:
    return framed(schema, avro(ORDER, {"id": id, "user": user}))


def _read(spark: SparkSession, registry: RegistryServer, *values: bytes, **more: Any) -> list[Row]:
    told = {"format": "avro", "registry": registry.access, **more}
    return decoded(spark, COLUMNS, *values, **told)


def test_should_ask_once_for_a_schema(spark: SparkSession, registry: RegistryServer) -> None:
    registry.add("orders-value", ORDER)
    for _ in range(2):
        rows = _read(spark, registry, *(_order(n) for n in range(500)))
        assert [(row.id, row.user) for row in rows] == [(n, "ann") for n in range(500)]
    assert registry.requests == ["/schemas/ids/1"]


def test_should_take_what_the_registry_does_not_know_as_malformed(
    spark: SparkSession, registry: RegistryServer
) -> None:
    registry.add("orders-value", ORDER)
    registry.add("texts-value", '"string"')
    registry.add("docs-value", '{"type": "object"}', "JSON")
    rows = _read(
        spark, registry, _order(1), _order(2, schema=9), framed(2, b"\x02a"), framed(3, b"{}"),
        b"\x01" + _order(3)[1:], b"\x00\x00", _order(4, schema=9), _order(5)[:-1], _order(6),
        _order(7, schema=0), _order(8, schema=0xFFFF_FFFE),
    )  # fmt: skip
    assert reasons(rows) == [
        None,
        "the registry has no schema with the id 9",
        "schema 2 of the registry is of type string, and a record is needed",
        "schema 3 of the registry is of type JSON, not AVRO",
        "not in Confluent's framing: the first byte is 0x01, not 0x00",
        "not in Confluent's framing: 2 bytes are less than its 5",
        "the registry has no schema with the id 9",
        "not valid Avro: it ends too early",
        None,
        "the registry has no schema with the id 0",
        "the registry has no schema with the id -2",
    ]
    assert [row.id for row in rows if row["__hg_bad"] is None] == [1, 6]
    assert sorted(registry.requests) == [f"/schemas/ids/{id}" for id in (1, 2, 3, 9)]
    # one that is added later is found in the next batch
    while registry.add("more-value", record(f"M{len(registry.schemas)}", ("id", "long"))) < 8:
        pass
    assert registry.add("orders-value", {**ORDER, "doc": "again"}) == 9
    assert [row.id for row in _read(spark, registry, _order(7, schema=9))] == [7]


def test_should_follow_the_references_of_a_schema(
    spark: SparkSession, registry: RegistryServer
) -> None:
    user = record("shop.User", ("name", "string"))
    registry.add("user", user)
    order = record("Order", ("id", "long"), ("user", "shop.User"))
    id = registry.register(
        "orders-value", Schema("AVRO", json.dumps(order), (("shop.User", "user", 1),))
    )
    body = avro(record("Order", ("id", "long"), ("user", user)), {"id": 7, "user": {"name": "ann"}})
    [row] = decoded(
        spark, "id BIGINT, user STRUCT<name: STRING>", framed(id, body), format="avro",
        registry=registry.access,
    )  # fmt: skip
    assert (row.id, row.user) == (7, Row(name="ann"))


def test_should_read_json_behind_an_id(spark: SparkSession, registry: RegistryServer) -> None:
    registry.add("orders-value", '{"type": "object"}', "JSON")
    registry.add("others-value", ORDER)
    values = (
        framed(1, b'{"id": 1, "user": "ann"}'), framed(1, b'{"id": {}}'), framed(2, b"{}"),
        framed(7, b"{}"), b'{"id": 1}', framed(1, b'{"user": "b\\u00e9", "id": 2}'),
    )  # fmt: skip
    rows = decoded(spark, COLUMNS, *values, format="json", registry=registry.access)
    assert [(row.id, row.user) for row in (rows[0], rows[-1])] == [(1, "ann"), (2, "bé")]
    assert reasons(rows) == [
        None,
        "field 'id' is not a BIGINT: {",
        "schema 2 of the registry is of type AVRO, not JSON",
        "the registry has no schema with the id 7",
        "not in Confluent's framing: the first byte is 0x7b, not 0x00",
        None,
    ]


def test_should_try_again_when_the_registry_is_busy(
    spark: SparkSession, registry: RegistryServer
) -> None:
    registry.add("orders-value", ORDER)
    registry.fail_next = 2
    assert [row.id for row in _read(spark, registry, _order(1))] == [1]
    assert registry.asked("/schemas/ids/1") == 3


PAGES = [b"<html>We will be back</html>", b"", b"[]", b'{"schema": null}']


def test_should_keep_no_page_of_a_proxy_for_a_schema(
    spark: SparkSession, registry: RegistryServer
) -> None:
    registry.add("orders-value", ORDER)
    registry.pages = PAGES[:3]
    assert [row.id for row in _read(spark, registry, _order(1))] == [1]
    assert registry.asked("/schemas/ids/1") == 4
    registry.add("more-value", {**ORDER, "doc": "again"})
    registry.pages = list(PAGES)
    reason, sentence = _why(spark, registry.access, _order(2, schema=2))
    assert reason is Reason.REGISTRY_UNREACHABLE
    assert sentence == (
        f"the schema registry does not answer ({registry.url}): "
        "it answered 200 to GET /schemas/ids/2 without a schema"
    )
    assert [row.id for row in _read(spark, registry, _order(2, schema=2))] == [2]


def _why(
    spark: SparkSession, access: dict[str, Any], value: bytes | None = None
) -> tuple[Reason, str]:
    with pytest.raises(Exception) as error:
        decoded(spark, COLUMNS, value or _order(1), format="avro", registry=access)
    failure = jvm.explain_failure(error.value)
    return failure.reason, failure.sentence


def test_should_fail_for_a_while_if_nobody_answers(spark: SparkSession) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    reason, sentence = _why(spark, {"urls": [url], "login": "app:hidden-word", "ca": None})
    assert reason is Reason.REGISTRY_UNREACHABLE and reason.retryable
    assert sentence == f"the schema registry does not answer ({url}): Connection refused"


def test_should_say_who_is_refused_without_the_password(spark: SparkSession) -> None:
    with RegistryServer(login="app:right-word") as registry:
        registry.add("orders-value", ORDER)
        assert [row.id for row in _read(spark, registry, _order(1))] == [1]
        reason, sentence = _why(spark, {**registry.access, "login": "app:wrong-word"})
        assert reason is Reason.REGISTRY_REFUSED and not reason.retryable
        assert sentence == (
            f"the schema registry refused a request ({registry.url}): 401 for /schemas/ids/1: "
            "User cannot access the resource"
        )
        told = {"format": "avro", "registry": registry.access}
        frame = decode(kafka(spark), COLUMNS, **told)
        plan = frame._jdf.queryExecution()
        assert registry.url in plan.toString()  # type: ignore[operator]
        assert "right-word" not in plan.toString()  # type: ignore[operator]


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key, and a certificate for 127.0.0.1 that vouches for itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "registry")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1)).not_valid_after(now + timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    file = tmp_path_factory.mktemp("tls") / "registry.pem"
    pem, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    file.write_bytes(
        made.public_bytes(pem) + key.private_bytes(pem, form, serialization.NoEncryption())
    )
    return file


def test_should_trust_the_authority_that_is_named(spark: SparkSession, certificate: Path) -> None:
    with RegistryServer(tls=certificate) as registry:
        registry.add("orders-value", ORDER)
        pem = certificate.read_text().partition("-----BEGIN PRIVATE")[0]
        assert [
            row.id
            for row in decoded(
                spark, COLUMNS, _order(1), format="avro", registry={**registry.access, "ca": pem}
            )
        ] == [1]
        reason, sentence = _why(spark, {**registry.access, "ca": None})
        assert reason is Reason.REGISTRY_UNREACHABLE
        assert "PKIX path building failed" in sentence
