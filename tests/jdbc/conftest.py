"""One server of each product for all tests of the folder; each test has tables of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.jdbc.server import PRODUCTS, Postgres, Server, started


@pytest.fixture(scope="package")
def server_of() -> Iterator[Callable[[str], Server]]:
    """The server of a product, started when it is first asked for."""
    servers: dict[str, Server] = {}

    def server_of(product: str) -> Server:
        if product not in servers:
            servers[product] = started(product)
        return servers[product]

    yield server_of
    for server in servers.values():
        server.close()


@pytest.fixture(params=PRODUCTS)
def server(request: pytest.FixtureRequest, server_of: Callable[[str], Server]) -> Server:
    """A server of each product in turn."""
    return server_of(request.param)


@pytest.fixture
def postgres(server_of: Callable[[str], Server]) -> Postgres:
    found = server_of("postgresql")
    assert isinstance(found, Postgres)
    return found
