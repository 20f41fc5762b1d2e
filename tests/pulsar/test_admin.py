"""Pulsar's REST interface on a real broker: topics, policies, backlogs, and who is let in."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pulsar
import pytest

from headgate.base.errors import HeadgateError, NotFoundError
from headgate.connectors.pulsar.admin import PulsarAdmin, PulsarAdminError
from headgate.connectors.pulsar.client import PulsarAccess
from headgate.connectors.pulsar.names import PulsarTopicName
from headgate.connectors.topic_client import Retention
from headgate.failures import Reason

NOBODY = PulsarTopicName.parse("admin-nobody")


@pytest.fixture
def admin(pulsar_url: str) -> PulsarAdmin:
    return PulsarAdmin(PulsarAccess(pulsar_url))


def send(url: str, topic: PulsarTopicName, count: int) -> None:
    client = PulsarAccess(url).connect()
    producer = client.create_producer(str(topic), batching_enabled=True)
    for n in range(count):
        producer.send_async(b"%d" % n, None)
    producer.flush()
    client.close()


def test_a_topic_is_made_once_and_deleted(admin: PulsarAdmin) -> None:
    topic = PulsarTopicName.parse("admin-orders")
    assert admin.ready()
    assert admin.partitions(topic) is None
    assert admin.partitions(topic) is None, "asking does not make it"
    assert admin.create(topic, 3) is True
    assert admin.create(topic, 5) is False
    assert admin.partitions(topic) == 3
    admin.delete(topic)
    assert admin.partitions(topic) is None


def test_a_namespace_that_is_not_there_is_told(admin: PulsarAdmin) -> None:
    topic = PulsarTopicName.parse("shop/live/orders")
    assert admin.partitions(topic) is None
    with pytest.raises(NotFoundError, match="there is no namespace shop/live at http://127"):
        admin.create(topic, 1)


@pytest.mark.parametrize(
    "ask",
    [
        lambda admin: admin.delete(NOBODY),
        lambda admin: admin.deduplication(NOBODY),
        lambda admin: admin.set_deduplication(NOBODY, True),
        lambda admin: admin.retention(NOBODY),
        lambda admin: admin.set_retention(NOBODY, None, None),
        lambda admin: admin.backlog(NOBODY, "somebody"),
        lambda admin: admin.internal(NOBODY),
        lambda admin: admin.compact(NOBODY),
    ],
)
def test_whatever_is_asked_of_a_missing_topic_says_so(admin: PulsarAdmin, ask: object) -> None:
    assert callable(ask)
    with pytest.raises(NotFoundError, match=r"no topic at pulsar://\S+/admin-nobody: create it"):
        ask(admin)
    assert admin.partitions(NOBODY) is None


def test_a_topic_says_over_its_broker_whether_it_deduplicates(admin: PulsarAdmin) -> None:
    topic = PulsarTopicName.parse("admin-twice")
    admin.create(topic, 2)
    assert admin.deduplication(topic) is True, "as the broker has it"
    for on in (False, True):
        admin.set_deduplication(topic, on)
        assert admin.deduplication(topic) is on


def test_retention_is_kept_in_minutes_and_megabytes(admin: PulsarAdmin) -> None:
    topic = PulsarTopicName.parse("admin-kept")
    admin.create(topic, 1)
    assert admin.retention(topic) == Retention(), "for ever, as the broker has it"
    admin.set_retention(topic, timedelta(seconds=90), 1)
    assert admin.retention(topic) == Retention(timedelta(minutes=2), most_bytes=1024 * 1024)
    admin.set_retention(topic, None, None)
    assert admin.retention(topic) == Retention()


@pytest.mark.parametrize("partitions", [0, 2])
def test_a_backlog_counts_entries_and_if_asked_messages(
    pulsar_url: str, admin: PulsarAdmin, partitions: int
) -> None:
    topic = PulsarTopicName.parse(f"admin-backlog-{partitions}")
    if partitions:
        admin.create(topic, partitions)
    else:
        admin._ask("PUT", topic.path, what=topic)
    assert admin.partitions(topic) == partitions
    assert admin.backlog(topic, "mine") is None
    client = PulsarAccess(pulsar_url).connect()
    consumer = client.subscribe(
        str(topic), "mine", initial_position=pulsar.InitialPosition.Earliest
    )
    send(pulsar_url, topic, 100)
    entries = admin.backlog(topic, "mine")
    assert entries is not None
    assert 1 <= entries < 100
    assert admin.backlog_messages(topic, "mine") == 100
    for _ in range(100):
        consumer.acknowledge(consumer.receive(10_000))
    consumer.close()
    client.close()
    assert admin.backlog(topic, "mine") == 0
    assert admin.backlog_messages(topic, "mine") == 0
    part = topic.partition(0) if partitions else topic
    assert admin.internal(part)["cursors"]["mine"]
    assert admin.stats(topic)["msgInCounter"] == 100
    admin.compact(topic)


def test_where_nobody_answers_it_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    admin = PulsarAdmin(PulsarAccess(f"pulsar://127.0.0.1:{port - 1430}"))
    assert admin.ready() is False
    with pytest.raises(
        PulsarAdminError, match=f"127.0.0.1:{port} does not answer .Connection ref"
    ) as raised:
        admin.partitions(NOBODY)
    assert raised.value.reason is Reason.BROKER_UNREACHABLE


@contextmanager
def answering(answer: object) -> Iterator[str]:
    """Something that answers every request with what `answer` gives for it; gives its address."""
    assert callable(answer)

    class Handler(http.server.BaseHTTPRequestHandler):
        def _do(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, headers, text = answer(self, body)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        do_GET = do_PUT = do_POST = do_DELETE = _do

        def log_message(self, *said: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def other(url: str, **options: str) -> PulsarAdmin:
    return PulsarAdmin(PulsarAccess("pulsar://localhost:6650", {"admin_url": url, **options}))


def test_a_request_is_sent_on_to_the_broker_that_owns_the_topic() -> None:
    seen: list[tuple[str, str | None, bytes]] = []

    def owner(request: http.server.BaseHTTPRequestHandler, body: bytes) -> object:
        seen.append((request.command, request.headers.get("Authorization"), body))
        return 204, {}, ""

    with answering(owner) as second:
        away = lambda request, body: (307, {"Location": second + request.path}, "")  # noqa: E731
        with answering(away) as first:
            assert other(first, token="abc").create(NOBODY, 3) is True
    assert seen == [("PUT", "Bearer abc", b"3")]
    with answering(lambda request, body: (307, {"Location": request.path}, "")) as first:
        with pytest.raises(HeadgateError, match="keeps redirecting from broker to broker"):
            other(first).create(NOBODY, 3)


@pytest.mark.parametrize("status", [401, 403])
def test_whoever_is_not_let_in_is_told(status: int) -> None:
    said = json.dumps({"reason": "Unauthorized to look"})
    with answering(lambda request, body: (status, {}, said)) as url:
        for ask in (lambda: other(url).partitions(NOBODY), lambda: other(url).ready()):
            with pytest.raises(PulsarAdminError, match=r"Unauthorized to look.*token") as raised:
                ask()
            assert raised.value.reason is Reason.NOT_AUTHORISED


def test_another_web_server_is_not_taken_for_pulsar() -> None:
    with answering(lambda request, body: (200, {}, "<html>hello</html>")) as url:
        with pytest.raises(HeadgateError, match="is not Pulsar's REST interface: check"):
            other(url).partitions(NOBODY)
        assert other(url).ready() is False
    with answering(lambda request, body: (500, {}, "<html>oh</html>")) as url:
        with pytest.raises(HeadgateError, match=r"refused a request about .*HTTP 500"):
            other(url).partitions(NOBODY)
