"""Jobs on a Pulsar broker that wants a token and knows who may do what."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pulsar
import pytest

import headgate as hg
from headgate.base.errors import HeadgateError
from headgate.brokers import PulsarBroker
from headgate.brokers.process import free_port
from tests.pulsar import certificates
from tests.pulsar.client import Pulsar, Send
from tests.pulsar.secured import settings, token
from tests.reading import Reading


@dataclass(frozen=True)
class Secured:
    """A broker with the roles admin (may do all) and reader (may consume, and nothing else)."""

    url: str
    options: dict[str, str]
    """What TLS needs, where there is an openssl to make certificates with."""
    admin: Pulsar


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("secured")
    own, tls = settings(), shutil.which("openssl") is not None
    if tls:
        ports = {"brokerServicePortTls": str(free_port()), "webServicePortTls": str(free_port())}
        own |= {**certificates.make(folder), **ports}
    with PulsarBroker(folder / "pulsar", settings=own) as broker:
        admin = Pulsar(broker.servers, authentication=pulsar.AuthenticationToken(token("admin")))
        admin.headers["Authorization"] = f"Bearer {token('admin')}"
        admin.ask("/namespaces/public/default/permissions/reader", "POST", ["consume"])
        if tls:
            options = {
                "tls_trust_certs": own["tlsTrustCertsFilePath"],
                "admin_url": f"https://127.0.0.1:{own['webServicePortTls']}",
            }
            yield Secured(f"pulsar+ssl://127.0.0.1:{own['brokerServicePortTls']}", options, admin)
        else:
            yield Secured(broker.servers, {}, admin)
        admin.close()


@pytest.mark.slow
def test_should_read_and_write_with_a_token_and_tls_and_say_what_a_role_may_not(
    secured: Secured, reading: Reading, tmp_path: Path
) -> None:
    orders, out = secured.admin.topic(2), secured.admin.topic(2)
    secured.admin.send(orders, [Send(json.dumps({"id": n}), str(n)) for n in range(0, 90, 3)])
    file = tmp_path / "token"
    file.write_text(token("reader") + "\n")

    def copy(options: dict[str, str]) -> hg.JobDef:
        @hg.job("copy")
        def copying(job: hg.Job) -> None:
            source = hg.PulsarSource(
                secured.url, orders, "id BIGINT", subscription="copy",
                options={**secured.options, "token_file": str(file)},
            )  # fmt: skip
            sink = hg.PulsarSink(secured.url, out, key="id", options={**secured.options, **options})
            job.source("in", source).sink("out", sink)

        return copying

    with pytest.raises(HeadgateError, match="broker denied the job access"):
        reading.go(hg.PulsarSource(secured.url, orders, "id BIGINT", options=secured.options))
    wrong = {**secured.options, "token": token("reader")[:-4] + "AAAA"}
    with pytest.raises(HeadgateError, match="broker denied the job access"):
        reading.go(hg.PulsarSource(secured.url, orders, "id BIGINT", options=wrong))
    with pytest.raises(HeadgateError) as refused:
        reading.run(copy({"token": token("reader")}))
    assert token("reader") not in str(refused.value)
    reading.run(copy({"token": token("admin")}))
    assert secured.admin.ids(out) == [*range(0, 90, 3)]
    kept = [path.read_text(errors="replace") for path in (tmp_path / "home").rglob("*.json")]
    assert kept and not any(token("admin") in text for text in kept), "no secret is kept"
