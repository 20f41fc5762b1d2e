"""The proxy between a socket and an echo, and between a real client and a real Kafka broker."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
import time
from collections.abc import Iterator

import pytest

from headgate.brokers.process import HOST
from tests.kafka.client import Kafka
from tests.nemesis.proxy import WAYS, Do, Proxy, Rule


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        with contextlib.suppress(ConnectionError):
            while data := self.request.recv(65536):
                self.request.sendall(data)


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with socketserver.ThreadingTCPServer((HOST, 0), _Echo) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Proxy(server.server_address[1]) as made:
            yield made
        server.shutdown()


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection((HOST, proxy.port), timeout=10)


def said(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return received(connection, len(data))


def ended(connection: socket.socket) -> bool:
    """Whether the other side has hung up, however it does that."""
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


def refused(proxy: Proxy) -> bool:
    """Whether a new connection fails, before it is made or after."""
    try:
        with connect(proxy) as made:
            return ended(made)
    except ConnectionError:
        return True


def received(connection: socket.socket, count: int) -> bytes:
    got = b""
    while len(got) < count and (more := connection.recv(count - len(got))):
        got += more
    return got


def test_bytes_pass_and_wait_while_a_way_is_shut(proxy: Proxy) -> None:
    with connect(proxy) as one:
        assert said(one, b"x" * 300_000) == b"x" * 300_000
        for way in WAYS:
            proxy.shut(way)
            one.sendall(b"later")
            one.settimeout(0.3)
            with pytest.raises(TimeoutError):
                one.recv(5)
            proxy.heal()
            one.settimeout(10)
            assert received(one, 5) == b"later"


def test_a_reset_breaks_connections_and_a_refusal_every_new_one(proxy: Proxy) -> None:
    with connect(proxy) as one, connect(proxy) as two:
        assert said(one, b"a") == said(two, b"a") == b"a"
        assert proxy.reset() == 2
        for each in (one, two):
            assert ended(each)
    proxy.refuse()
    assert refused(proxy)
    proxy.heal()
    with connect(proxy) as four:
        assert said(four, b"c") == b"c"


def test_delays_and_limits_keep_the_bytes_and_their_order(proxy: Proxy) -> None:
    with connect(proxy) as one:
        began = time.monotonic()
        proxy.delay(0.2, 0.2)
        assert said(one, b"one") == b"one"
        assert time.monotonic() - began >= 0.4
        proxy.heal()
        proxy.limit(50_000)
        data = bytes(range(256)) * 100
        assert said(one, data) == data


RULES = [Do.LOSE_ANSWER, Do.DELAY_ANSWER, Do.REPEAT_ANSWER, Do.LOSE_REQUEST, Do.DELAY_REQUEST]


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Kafka, Proxy]]:
    from tests.nemesis.world import ProxiedKafka

    with ProxiedKafka(tmp_path_factory.mktemp("kafka")) as kafka:
        yield Kafka(kafka.direct), kafka.proxy


@pytest.mark.slow
@pytest.mark.parametrize("do", RULES)
def test_a_client_of_a_real_broker_lives_with_each_rule(
    behind: tuple[Kafka, Proxy], do: Do
) -> None:
    kafka, proxy = behind
    topic = kafka.topic(1)
    rule = proxy.add(Rule(0, do, seconds=0.5))
    Kafka(f"{HOST}:{proxy.port}").send(topic, ["one", "two"])
    assert rule.met == 1, "the request came through the proxy"
    assert kafka.values(topic) == ["one", "two"]


@pytest.mark.slow
def test_a_request_that_was_held_back_can_be_delivered_later(behind: tuple[Kafka, Proxy]) -> None:
    kafka, proxy = behind
    topic = kafka.topic(1)
    proxy.held.clear()
    proxy.add(Rule(0, Do.HOLD_REQUEST))
    Kafka(f"{HOST}:{proxy.port}").send(topic, ["one"])
    (held,) = proxy.held
    proxy.deliver(held)
    assert kafka.values(topic) == ["one"], "the broker knows the number of the repeated record"
