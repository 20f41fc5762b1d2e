"""One PostgreSQL server for all tests of the folder; each has tables of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.jdbc.server import Postgres


@pytest.fixture(scope="package")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()
